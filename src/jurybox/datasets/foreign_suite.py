"""The contents of another tool's file, and the readers for promptfoo and OpenAI."""

import itertools
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, cast

import msgspec
from msgspec.structs import replace

from jurybox.datasets.fields import Columns
from jurybox.datasets.row_reader import Record
from jurybox.errors import InputError, RubricError
from jurybox.rubric import Criterion, Level, Rubric, Scale, parse_rubric, render_rubric
from jurybox.rubric.checks import Check, read_check
from jurybox.rubric.metrics import Comparison
from jurybox.text_format import as_text, counted, printable

_ROLES: Final = ("system", "user", "assistant")


class ForeignSuite(msgspec.Struct, kw_only=True):
    """The contents of another tool's file, with counts of the parts without a counterpart."""

    name: str = ""
    format: str = ""
    rows: list[dict[str, Any]] = []
    verdicts: list[dict[str, Any]] = []
    ratings: list[dict[str, Any]] = []
    scale: str = "0-1"
    targets: list[dict[str, Any]] = []
    judges: list[str] = []
    rubric: str = ""
    lost: Counter[tuple[str, str]] = msgspec.field(default_factory=Counter[tuple[str, str]])
    at: int | None = None  # the number of the part that is being read, from 1

    def each(self, parts: object) -> Iterator[Any]:
        """Yield the parts of a file, and remember which one is being read."""
        for self.at, part in enumerate(listing(parts), start=1):
            yield part
        self.at = None

    def lose(self, noun: str, which: str, what: str, count: int = 1) -> None:
        """Count something that can't be carried over unchanged."""
        self.lost[noun, f"{which}: {what}"] += count

    def losses(self) -> list[str]:
        """Return a line for each kind of thing that can't be carried over."""
        counts = self.lost.items()
        return [printable(f"{counted(count, noun)} {which}") for (noun, which), count in counts]

    def rate(self, item: object, rater: str, score: object, **criterion: str) -> None:
        """Add a rating; a score that isn't a number counts as missing."""
        given = score if is_number(score) else None
        self.ratings.append({"item": item, "rater": rater, **criterion, "score": given})


def is_number(value: object) -> bool:
    """Return whether a value is a finite number."""
    return isinstance(value, int | float) and math.isfinite(value)


def mapping(value: object) -> dict[str, Any]:
    """Return a value that is a JSON object; for any other value, an empty object."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def listing(value: object) -> list[Any]:
    """Return a list; a single value becomes a list of one, None an empty list."""
    if value is None:
        return []
    return cast("list[Any]", value) if isinstance(value, list) else [value]


def asked(value: object) -> dict[str, object] | None:
    """Return a question as a row's ``task`` or ``messages``; None if no user's turn ends it."""
    if isinstance(value, str):
        return {"task": value} if value.strip() else None
    turns: list[dict[str, str]] = []
    for turn in map(mapping, listing(value)):
        content = content_of(turn.get("content"))
        if content is None or turn.get("role") not in _ROLES:
            return None
        turns.append({"role": turn["role"], "content": content})
    if not turns or turns[-1]["role"] != "user":
        return None
    return {"task": turns[0]["content"]} if len(turns) == 1 else {"messages": turns}


def content_of(value: object) -> str | None:
    """Return the text of a turn; None if it isn't only text."""
    if isinstance(value, str):
        return value
    parts = [mapping(part).get("text") for part in listing(value)]
    texts = [part for part in parts if isinstance(part, str)]
    return "\n".join(texts) if texts and len(texts) == len(parts) else None


_PLACEHOLDER: Final = re.compile(r"\{\{\s*(\w+)\s*\}\}")
_ELSEWHERE: Final = "file://"
_PATH: Final = re.compile(r"\S+\.(txt|md|json|ya?ml|js|py|csv|j2)")
_LOGIC: Final = re.compile(r"\{\{|\{%|^\s*\[")
_GENERATION: Final = ("temperature", "top_p", "max_tokens", "seed")
_PROVIDER: Final = re.compile(r"(openai|anthropic):(?:(?:chat|messages):)?([^:]+)")
# Each kind of assertion on a text, with its check and whether case is ignored.
_TEXT_CHECKS: Final = {
    "equals": ("equals", False),
    "contains": ("contains", False),
    "contains-all": ("contains", False),
    "icontains": ("contains", True),
    "icontains-all": ("contains", True),
    "not-contains": ("not_contains", False),
    "not-contains-any": ("not_contains", False),
    "not-icontains": ("not_contains", True),
    "not-icontains-any": ("not_contains", True),
    "regex": ("regex", False),
}
_LIMITS: Final = {"latency": "latency_e2e_ms", "cost": "cost"}


def read_promptfoo_config(config: Mapping[str, Any], read: ForeignSuite) -> None:
    """Read each test with each prompt as a row, and providers as targets."""
    read.name = as_text(config.get("description") or "")
    default = mapping(config.get("defaultTest"))
    prompts = [*_prompts(config["prompts"], read)]
    for test in read.each(config["tests"]):
        if mapping(test) and "path" not in test:
            _add_test(test, default, prompts, read)
        else:
            read.lose("test list", "in another file", "import it as a dataset")
    if config.get("scenarios"):
        read.lose("scenario list", "in the config", "write them as tests")
    for provider in listing(config.get("providers") or config.get("targets")):
        _add_target(provider, read)


def read_promptfoo_results(output: Mapping[str, Any], read: ForeignSuite) -> None:
    """Read each result as a row with a response; assertions without a check become ratings."""
    read.name = as_text(mapping(output.get("config")).get("description") or "")
    results: object = output["results"]["results"]
    groups = {(each["provider"]["id"], each["promptIdx"]) for each in read.each(results)}
    for number, result in enumerate(read.each(results), start=1):
        test, variables = mapping(result.get("testCase")), mapping(result.get("vars"))
        response = mapping(result.get("response"))
        row: dict[str, Any] = {"id": str(number), "task": result["prompt"]["raw"]}
        answer = response.get("output")
        row["response"] = "" if answer is None else as_text(answer)
        if not row["response"]:
            read.lose("result", "without an output", "the response is empty")
        elif result.get("latencyMs") and not response.get("cached"):
            row["latency_e2e_ms"] = result["latencyMs"]
        if len(groups) > 1:
            row["scenario"] = f"{result['provider']['id']}, prompt {result['promptIdx'] + 1}"
        row["metadata"] = {**variables, "provider": result["provider"]["id"]}
        if test.get("description"):
            row["metadata"]["test"] = test["description"]
        _add_checks(row, listing(test.get("assert")), variables, read, recorded=True)
        read.rows.append(row)
        # Identical assertions share a criterion.
        scores: dict[str, object] = {}
        for part in listing(mapping(result.get("gradingResult")).get("componentResults")):
            assertion = mapping(part.get("assertion"))
            if assertion and _check_of(assertion, variables) is None:
                words = [assertion.get("type"), assertion.get("value")]
                name = ": ".join(as_text(each) for each in words if each is not None)
                scores[name] = part.get("score")
        for criterion, score in scores.items():
            read.rate(row["id"], "promptfoo", score, criterion=criterion)


def _add_test(test: Record, default: Record, prompts: list[str], read: ForeignSuite) -> None:
    """Add a row for each prompt and each combination of the values of list variables."""
    variables = {**mapping(default.get("vars")), **mapping(test.get("vars"))}
    assertions = [*listing(default.get("assert")), *listing(test.get("assert"))]
    for key in ("threshold", "options", "provider"):
        if test.get(key):
            read.lose("test", f"with `{key}`", "no counterpart")
    choices = [listing(value) or [value] for value in variables.values()]
    asked = [*enumerate(prompts, start=1)] or [(1, "\n".join(f"{{{{{n}}}}}" for n in variables))]
    for values, (number, prompt) in itertools.product(itertools.product(*choices), asked):
        filled = dict(zip(variables, values, strict=True))
        if any(str(value).startswith(_ELSEWHERE) for value in values):
            read.lose("test", "with a variable in another file", "left out")
            continue
        # As in promptfoo, a missing variable is empty.
        task = _PLACEHOLDER.sub(lambda m, now=filled: as_text(now.get(m[1], "")), prompt)
        if not task.strip():
            read.lose("test", "without a prompt and variables", "left out")
            continue
        row: dict[str, Any] = {"id": str(len(read.rows) + 1), "task": task}
        row |= {"scenario": f"prompt {number}"} if len(prompts) > 1 else {}
        named = {"test": test["description"]} if test.get("description") else {}
        row |= {"metadata": {**filled, **named}} if filled or named else {}
        _add_checks(row, assertions, filled, read, recorded=False)
        read.rows.append(row)


def _add_checks(
    row: dict[str, Any],
    assertions: list[Any],
    variables: Record,
    read: ForeignSuite,
    *,
    recorded: bool,
) -> None:
    checks: list[Record] = []
    for assertion in map(mapping, assertions):
        kind = as_text(assertion.get("type"))
        check = _check_of(assertion, variables)
        if check is None:
            read.lose("assertion", f"of kind `{kind}`", "no counterpart; write a criterion")
        elif recorded and kind == "cost":
            read.lose("assertion", "of kind `cost`", "a recorded response has no cost")
        else:
            checks.append(check)
            if assertion.get("weight") not in (None, 1):
                read.lose("assertion", "with a `weight`", "all checks have the same weight")
    if checks:
        row["checks"] = checks


def _check_of(assertion: Mapping[str, Any], variables: Record) -> Record | None:
    """Return the check that is equivalent to an assertion; None if there is none."""
    if assertion.get("transform"):
        return None
    kind, value = as_text(assertion.get("type")), _filled(assertion.get("value"), variables)
    check: Record
    if kind in _TEXT_CHECKS:
        name, ignore_case = _TEXT_CHECKS[kind]
        value = as_text(value) if isinstance(value, int | float) else value
        check = {name: value, "ignore_case": True} if ignore_case else {name: value}
    elif kind == "is-json":
        check = {"json": "valid"} if value is None else {"json_schema": value}
    elif kind in _LIMITS:
        check = {_LIMITS[kind]: f"<= {assertion.get('threshold')}"}
    else:
        return None
    if kind.endswith(("-all", "-any")) and not isinstance(value, list):
        return None
    texts = [as_text(part) for part in listing(cast("object", value))]
    is_elsewhere = any(_ELSEWHERE in text or "{{" in text for text in texts)
    return None if is_elsewhere or read_check(check)[1] else check


def _filled(value: object, variables: Record) -> Any:  # noqa: ANN401 - as it was given
    """Fill variables into texts; template expressions stay unchanged."""
    if isinstance(value, list):
        return [_filled(each, variables) for each in cast("list[object]", value)]
    if not isinstance(value, str):
        return value
    return _PLACEHOLDER.sub(lambda m: as_text(variables.get(m[1], m[0])), value)


def _prompts(prompts: object, read: ForeignSuite) -> Iterator[str]:
    for prompt in listing(prompts):
        given = prompt if isinstance(prompt, str) else mapping(prompt).get("raw")
        text = given if isinstance(given, str) else _ELSEWHERE
        if _ELSEWHERE in text or _PATH.fullmatch(text) or _LOGIC.search(_PLACEHOLDER.sub("", text)):
            what = "in another file, with logic, or as chat turns"
            read.lose("prompt", what, "write it as a target's `prompt`")
        else:
            yield text


def _add_target(provider: object, read: ForeignSuite) -> None:
    """Add a provider as a target, if jurybox supports it."""
    given = mapping(provider) or {"id": provider}
    name = as_text(given.get("id"))
    known = _PROVIDER.fullmatch(name)
    if known is None:
        read.lose("provider", f"`{name}`", "name a model or a command as `target`")
        return
    config = mapping(given.get("config"))
    generation = {key: config[key] for key in _GENERATION if key in config}
    if len(generation) < len(config):
        read.lose("provider", f"`{name}` with other settings", "see the keys of a target")
    target = {"model": f"{known[1]}/{known[2]}"}
    if any(each["model"] == target["model"] for each in read.targets):
        target["name"] = f"{known[2]}-{len(read.targets) + 1}"
    read.targets.append({**target, "generation": generation} if generation else target)


_GRADER_VALUE: Final = re.compile(r"\{\{\s*(item|sample)\.([^{}\s]+)\s*\}\}")
_RESPONSE: Final = re.compile(r"\s*\{\{\s*sample\.output_text\s*\}\}\s*")
# The parts of a row that a judge sees, in words.
_SHOWN: Final = {"task": "the task", "reference": "the reference answer", "context": "the context"}
_FILLED: Final = (*_SHOWN, "id", "scenario")
_YES_OR_NO: Final = Scale(low=0, high=1)
_OPERATIONS: Final = {"eq": "equals", "like": "contains", "ilike": "contains"}


def read_openai_graders(value: Mapping[str, Any], read: ForeignSuite) -> None:
    """Read an eval's graders, or a single grader, as a rubric document."""
    read.name = as_text(value.get("name") or "graders")
    criteria: dict[str, Criterion] = {}
    rules: list[Comparison] = []
    for grader in read.each(value.get("testing_criteria", value)):
        named = {as_text(grader.get("name") or "grader"): grader}
        several = grader["type"] == "multi"
        if several:
            formula = f"with `{as_text(grader.get('calculate_output'))}`"
            read.lose("multi grader", formula, "write `weights` and `pass` in the rubric")
            named = mapping(grader.get("graders"))
        for name, part in named.items():
            plain = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_") or "grader"
            key = plain if plain not in criteria else f"{plain}_{len(criteria) + 1}"
            # All but score models pass with 1; a score model may have no threshold.
            least = part.get("pass_threshold") if part["type"] == "score_model" else 1
            rule = Comparison(name=key, operator=">=", number=least or 0)
            rule = () if several or least is None else (rule,)
            try:
                criterion = _criterion(part, key, name, read)
                parse_rubric(_document("Grader", [criterion], rule))
            except InputError as error:
                found = error.findings[0] if isinstance(error, RubricError) else error
                read.lose("grader", f"`{name}`", f"left out, {found.problem}")
            else:
                criteria[key] = criterion
                rules += rule
    read.rubric = _document(read.name, criteria.values(), rules) if criteria else ""


def _criterion(grader: Mapping[str, Any], key: str, name: str, read: ForeignSuite) -> Criterion:
    """Return a grader as a criterion; raise an error if there is no counterpart."""
    kind = as_text(grader["type"])
    criterion = Criterion(id=key, name=_plain(name), scale=_YES_OR_NO)
    if kind in {"string_check", "text_similarity"}:
        check = _check(grader)
        if check is not None:
            return replace(criterion, checks=(check,))
    elif kind in {"label_model", "score_model"}:
        model = f"openai/{as_text(grader['model'])}"
        read.judges = read.judges or [model]
        if read.judges != [model]:
            read.lose("grader", f"`{name}` with another model", "the first model judges")
        criterion = replace(criterion, definition=_fenced(_instructions(grader, name, read)))
        if kind == "score_model":
            low, high = map(float, grader.get("range") or (0, 1))
            return replace(criterion, scale=Scale.parse(f"{low}..{high}"))
        passing = listing(grader["passing_labels"])
        failing = [label for label in listing(grader["labels"]) if label not in passing]
        levels = tuple(
            Level(low=score, high=score, meaning=f"labeled {', '.join(map(_plain, labels))}")
            for score, labels in ((1, passing), (0, failing or ["otherwise"]))
        )
        return replace(criterion, levels=levels, level_columns=("Score", "Meaning"))
    how = grader.get("operation") or grader.get("evaluation_metric")
    which = f"`{kind}`" + (f" with `{as_text(how)}`" if how else "")
    raise InputError(f"{which} has no counterpart; write a criterion", "")


def _check(grader: Mapping[str, Any]) -> Check | None:
    """Return the check that is equivalent to a grader, if there is one."""
    given, wanted = as_text(grader["input"]), as_text(grader["reference"])
    operation = as_text(grader.get("operation"))
    if operation == "eq" and _RESPONSE.fullmatch(wanted):
        given, wanted = wanted, given
    value = _GRADER_VALUE.sub(_row_value, wanted)
    check: Record | None = None
    if operation in _OPERATIONS:
        check = {_OPERATIONS[operation]: value}
        check |= {"ignore_case": True} if operation == "ilike" else {}
    elif grader.get("evaluation_metric") == "fuzzy_match":
        check = {"similarity": value, "at_least": grader.get("pass_threshold")}
    unreadable = _GRADER_VALUE.search(value) or not _RESPONSE.fullmatch(given)
    return None if check is None or unreadable else read_check(check)[0]


def _row_value(found: re.Match[str]) -> str:
    """Return the placeholder for a row's field or column; other text is unchanged."""
    space, name = found.groups()
    field = Columns().field(name)
    if space == "sample" or not name.isidentifier() or field not in (None, *_FILLED):
        return found[0]
    return f"{{{{{field or f'metadata.{name}'}}}}}"


def _instructions(grader: Mapping[str, Any], name: str, read: ForeignSuite) -> str:
    """Return the grader's prompt, with words such as "the task" instead of the row's values."""

    def in_words(found: re.Match[str]) -> str:
        space, column = found.groups()
        if (space, column) == ("sample", "output_text"):
            return "the response"
        words = _SHOWN.get(Columns().field(column) or "") if space == "item" else None
        if words is None:
            read.lose("grader", f"`{name}` that reads `{space}.{column}`", "no judge sees it")
        return words or f"`{space}.{column}`"

    turns = [content_of(turn.get("content")) for turn in listing(grader["input"])]
    if left := turns.count(None):
        read.lose("turn", f"of `{name}` with more than text", "left out", left)
    return _GRADER_VALUE.sub(in_words, "\n\n".join(turn for turn in turns if turn))


def _fenced(text: str) -> str:
    """Return a text as a fenced block, so that none of its lines is read as Markdown."""
    fence = "~" * max(4, *(len(run) + 1 for run in re.findall("~+", text) or [""]))
    return f"{fence}text\n{text}\n{fence}"


def _document(title: str, criteria: Iterable[Criterion], rules: Iterable[Comparison]) -> str:
    """Return the rubric document."""
    return render_rubric(
        Rubric(
            id="imported",
            version="1.0.0",
            title=_plain(title),
            scale=_YES_OR_NO,
            criteria=tuple(criteria),
            votes=1,
            pass_rules=tuple(rules),
        )
    )


def _plain(name: object) -> str:
    """Return a name without Markdown syntax."""
    return re.sub(r"[^\w .,:()-]+", " ", as_text(name)).strip(" .-") or "Grader"
