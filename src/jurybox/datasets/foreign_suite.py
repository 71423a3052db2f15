"""The contents of another tool's file, before they are written as a suite."""

import itertools
import math
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, cast

import msgspec

from jurybox.datasets.dataset import DatasetError, survey
from jurybox.datasets.open_dataset import open_dataset
from jurybox.datasets.ratings import read_verdicts
from jurybox.datasets.row_reader import Record
from jurybox.errors import Finding, InputError
from jurybox.rubric.checks import read_check
from jurybox.suite import SuiteError, parse_suite
from jurybox.text_format import as_text, counted, printable

_ROLES: Final = ("system", "user", "assistant")
_MISSING: Final = "missing-field"
_TOO_MANY: Final = "too-many"


class ForeignSuite(msgspec.Struct, kw_only=True):
    """Rows, recorded judgments, targets and judges, and counts of parts without a counterpart."""

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
    at: int | None = None  # the number of the part that is being read, from 0

    def each(self, parts: object) -> Iterator[Any]:
        """Yield the parts of a file, and remember which one is being read."""
        for self.at, part in enumerate(listing(parts)):
            yield part
        self.at = None

    def lose(self, noun: str, which: str, what: str, count: int = 1) -> None:
        """Count something that can't be carried over unchanged."""
        self.lost[noun, f"{which}: {what}"] += count

    def losses(self) -> list[str]:
        """Return a line for each kind of thing that can't be carried over."""
        counts = self.lost.items()
        return [printable(f"{counted(count, noun)} {which}") for (noun, which), count in counts]

    def keep_readable(self) -> None:
        """Leave out and count whatever jurybox couldn't read."""
        recorded = not self.targets and all("response" in row for row in self.rows)
        self.rows = self._readable(
            "row", self.rows, lambda path: survey(open_dataset(path), needs_response=recorded)
        )
        self.verdicts = self._readable("verdict", self.verdicts, read_verdicts)
        self.targets = [
            each for each in self.targets if self._accepts("targets", each["model"], [each])
        ]
        if len(self.targets) == 1:
            self.targets = [{key: self.targets[0][key] for key in self.targets[0] if key != "name"}]
        self.judges = [each for each in self.judges if self._accepts("judge", each, each)]
        rated: dict[tuple[object, ...], dict[str, Any]] = {}
        for each in self.ratings:
            rated.setdefault((each.get("criterion"), each["item"], each["rater"]), each)
        if twice := len(self.ratings) - len(rated):
            self.lose("rating", "given twice by the same rater", "the first counts", twice)
        self.ratings = [*rated.values()]

    def _readable(
        self, noun: str, rows: list[dict[str, Any]], read: Callable[[Path], object]
    ) -> list[dict[str, Any]]:
        """Return the rows that a reader accepts from a file."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "rows.jsonl"
            while rows:
                path.write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))
                try:
                    read(path)
                except DatasetError as error:
                    refused = _refused(rows, error.findings)
                except InputError:
                    # Verdicts without any winner; the commands that read them report it.
                    break
                else:
                    break
                if len(refused) == len(rows) and {x.code for x in refused.values()} == {_MISSING}:
                    finding = refused[1]
                    self.lose("column", f"is missing, {finding.problem}", finding.hint)
                    break
                for finding in refused.values():
                    self.lose(noun, "left out", finding.problem)
                rows = [row for line, row in enumerate(rows, 1) if line not in refused]
        return rows

    def _accepts(self, key: str, name: str, value: object) -> bool:
        """Return whether a suite accepts a target or a judge."""
        usual = {"suite": "imported", "rubric": "general", "dataset": "rows.jsonl"}
        try:
            parse_suite(msgspec.json.encode({**usual, key: value}), key)
        except SuiteError as error:
            self.lose("model", f"`{name}`", f"left out, {error.findings[0].problem}")
            return False
        if "latest" in name:
            self.lose("model", f"`{name}`", "left out, name its version instead of `latest`")
            return False
        return True


def _refused(rows: list[dict[str, Any]], findings: Sequence[Finding]) -> dict[int, Finding]:
    """Return the finding of each refused row; a missing column is reported once for all rows."""
    missing = {_columns(rows[each.line - 1]): each for each in findings if each.code == _MISSING}
    lines = [(line, _columns(row)) for line, row in enumerate(rows, 1)]
    found = {line: missing[columns] for line, columns in lines if columns in missing}
    return found | {each.line: each for each in findings if each.code != _TOO_MANY}


def _columns(row: Record) -> frozenset[str]:
    return frozenset(key for key, value in row.items() if value not in (None, ""))


def is_number(value: object) -> bool:
    """Return whether a value is a finite number."""
    return isinstance(value, int | float) and math.isfinite(value)


def mapping(value: object) -> dict[str, Any]:
    """Return an object; anything else counts as an empty one."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def listing(value: object) -> list[Any]:
    """Return a list; a single value becomes a list of one, None an empty list."""
    if value is None:
        return []
    return cast("list[Any]", value) if isinstance(value, list) else [value]


def asked(value: object) -> dict[str, object] | None:
    """Return a question as a text, or as turns that end with the user's; else None."""
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
    """Read each result as a row with its response; assertions without a check become ratings."""
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
        _add_ratings(read, row, mapping(result.get("gradingResult")), variables)


def _add_ratings(
    read: ForeignSuite, row: Record, grading: Mapping[str, Any], variables: Record
) -> None:
    """Add the scores of assertions without a check; equal assertions are one criterion."""
    scores: dict[str, object] = {}
    for part in listing(grading.get("componentResults")):
        assertion = mapping(part.get("assertion"))
        if assertion and _check_of(assertion, variables) is None:
            value = assertion.get("value")
            kind = as_text(assertion.get("type"))
            scores[kind if value is None else f"{kind}: {as_text(value)}"] = part.get("score")
    for criterion, given in scores.items():
        score = given if is_number(given) else None
        rating = {"item": row["id"], "rater": "promptfoo", "criterion": criterion, "score": score}
        read.ratings.append(rating)


def _add_test(test: Record, default: Record, prompts: list[str], read: ForeignSuite) -> None:
    """Add a row for each prompt and each combination of variables that are lists."""
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
                read.lose("assertion", "with a `weight`", "all checks count alike")
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
        rest = _PLACEHOLDER.sub("", text)
        if text.startswith(_ELSEWHERE) or _PATH.fullmatch(text) or text.lstrip().startswith("["):
            read.lose(
                "prompt", "in another file or as chat turns", "write it as a target's `prompt`"
            )
        elif "{{" in rest or "{%" in rest:
            read.lose("prompt", "with logic of its template", "write it as a target's `prompt`")
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
