"""promptfoo's configs and results: tests as rows, assertions as their checks."""

import itertools
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

from jurybox.datasets.foreign_suite import ForeignSuite, is_number, listing, mapping
from jurybox.datasets.row_reader import Record
from jurybox.rubric.checks import read_check
from jurybox.text_format import as_text

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
    """Read each result as a row with its response; what no check does becomes a rating."""
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
    """Take the scores of assertions that no check does; equal assertions are one criterion."""
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
        # As in promptfoo, a variable that the test hasn't is empty.
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
    """Return the check that does what an assertion does; None where there is none."""
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
    """Add a provider as a target, if it is one that jurybox calls by name."""
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
