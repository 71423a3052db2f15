"""Reads OpenAI evals: graders as criteria, items as rows, results as ratings."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from jurybox.datasets.fields import Columns
from jurybox.datasets.foreign_suite import ForeignSuite, content_of, is_number, listing, mapping
from jurybox.datasets.row_reader import Record
from jurybox.documents.numbers import show_number
from jurybox.documents.plain_yaml import as_yaml
from jurybox.errors import RubricError
from jurybox.rubric import parse_rubric
from jurybox.rubric.checks import read_check
from jurybox.text_format import as_text

_PLACEHOLDER: Final = re.compile(r"\{\{\s*(item|sample)\.([^{}\s]+)\s*\}\}")
_RESPONSE: Final = re.compile(r"\s*\{\{\s*sample\.output_text\s*\}\}\s*")
_TERM: Final = re.compile(r"\s*([0-9.]+)\s*\*\s*(\w+)\s*")
# The parts of a row that a judge sees, in words.
_SHOWN: Final = {"task": "the task", "reference": "the reference answer", "context": "the context"}
_FILLED: Final = (*_SHOWN, "id", "scenario")
_OPERATIONS: Final = {"eq": "equals", "like": "contains", "ilike": "contains"}
_BAND: Final = [0, 1]


class _Criterion(msgspec.Struct, kw_only=True):
    """A grader as a part of a rubric document."""

    name: str
    text: str
    scale: str = "0-1"
    least: float | None = 1
    """The passing threshold; None if the grader doesn't have one."""


def read_openai_graders(value: Mapping[str, Any], read: ForeignSuite) -> None:
    """Read an eval's graders, or a single grader, as a rubric document."""
    read.name = as_text(value.get("name") or "graders")
    criteria: dict[str, _Criterion] = {}
    weights: dict[str, float] = {}
    for grader in read.each(value.get("testing_criteria", value)):
        parts = mapping(grader.get("graders")) if grader["type"] == "multi" else {"": grader}
        named: dict[str, str] = {}
        for key, part in parts.items():
            criterion = _criterion(part, key or as_text(part.get("name") or "grader"), read)
            if criterion is not None:
                criterion.least = None if key else criterion.least
                plain = _new_id(criterion.name, criteria)
                # A name may be taken by a metric.
                problems = {name: _problem(name, criterion) for name in (plain, f"{plain}_grader")}
                accepted = next((name for name, each in problems.items() if each is None), None)
                if accepted is None:
                    read.lose("grader", f"`{criterion.name}`", f"left out, {problems[plain]}")
                else:
                    named[key] = accepted
                    criteria[accepted] = criterion
        if grader["type"] == "multi" and named:
            weights |= _weights(as_text(grader.get("calculate_output")), named, read)
    read.rubric = _document(read.name, criteria, weights) if criteria else ""


def read_openai_items(lines: list[dict[str, Any]], read: ForeignSuite) -> None:
    """Read the items of an eval's data, with their recorded responses."""
    for number, line in enumerate(read.each(lines), start=1):
        answer = mapping(line.get("sample")).get("output_text")
        recorded = {} if answer is None else {"response": as_text(answer)}
        item = {**line["item"]}
        if recorded:
            # The recorded response is used, even if the item has a right answer of that name.
            own = {key: item.pop(key) for key in [*item] if Columns().field(key) == "response"}
            item |= {"metadata": {**mapping(item.get("metadata")), **own}} if own else {}
        read.rows.append({"id": str(number), **item, **recorded})


def read_openai_results(listed: Mapping[str, Any], read: ForeignSuite) -> None:
    """Read the output items of an eval's run: rows with responses, and graders as raters."""
    for each in read.each(listed["data"]):
        item = as_text(each["datasource_item_id"])
        turns = listing(mapping(each.get("sample")).get("output"))
        said = [content_of(mapping(turn).get("content")) for turn in turns]
        answer = {"response": (said and said[-1]) or ""}
        read.rows.append({**mapping(each["datasource_item"]), "id": item, **answer})
        for result in listing(each["results"]):
            score = result.get("score") if is_number(result.get("score")) else None
            read.ratings.append({"item": item, "rater": as_text(result["name"]), "score": score})


def _problem(name: str, criterion: _Criterion) -> str | None:
    """Return why jurybox would refuse a criterion; None if it wouldn't."""
    try:
        parse_rubric(_document("Grader", {name: criterion}, {}))
    except RubricError as error:
        return error.findings[0].problem
    return None


def _criterion(grader: Mapping[str, Any], name: str, read: ForeignSuite) -> _Criterion | None:
    """Return a grader as a criterion; None, with a noted loss, if there is no counterpart."""
    kind = as_text(grader["type"])
    if kind in {"string_check", "text_similarity"}:
        check = _check(grader)
        if check is not None:
            return _Criterion(name=name, text=f"```yaml checks\n- {as_yaml(check)}\n```")
    elif kind in {"label_model", "score_model"}:
        model = f"openai/{as_text(grader['model'])}"
        read.judges = read.judges or [model]
        if read.judges != [model]:
            read.lose("grader", f"`{name}` with another model", "the first one judges")
        text = _fenced(_instructions(grader, name, read))
        if kind == "score_model":
            ends, least = listing(grader.get("range") or _BAND), grader.get("pass_threshold")
            if len(ends) == len(_BAND) and all(map(is_number, [*ends, least or 0])):
                low, high = map(float, ends)
                return _Criterion(name=name, text=text, scale=f"{low}..{high}", least=least)
            which = f"`{name}` whose `range` or `pass_threshold` aren't numbers"
            read.lose("grader", which, "left out")
            return None
        passing, labels = listing(grader.get("passing_labels")), listing(grader.get("labels"))
        if not passing or any(label not in labels for label in passing):
            which = f"`{name}` whose `passing_labels` aren't some of its `labels`"
            read.lose("grader", which, "left out")
            return None
        failing = [label for label in labels if label not in passing]
        return _Criterion(name=name, text=f"{text}\n\n{_levels(passing, failing)}")
    how = grader.get("operation") or grader.get("evaluation_metric")
    which = f"`{name}` of type `{kind}`" + (f" with `{as_text(how)}`" if how else "")
    read.lose("grader", which, "no counterpart; write a criterion")
    return None


def _check(grader: Mapping[str, Any]) -> Record | None:
    """Return the check that is equivalent to a grader, if there is one."""
    given, wanted = as_text(grader["input"]), as_text(grader["reference"])
    operation = as_text(grader.get("operation"))
    if operation == "eq" and _RESPONSE.fullmatch(wanted):
        given, wanted = wanted, given
    value = _PLACEHOLDER.sub(_row_value, wanted)
    check: Record | None = None
    if operation in _OPERATIONS:
        check = {_OPERATIONS[operation]: value}
        check |= {"ignore_case": True} if operation == "ilike" else {}
    elif grader.get("evaluation_metric") == "fuzzy_match":
        check = {"similarity": value, "at_least": grader.get("pass_threshold")}
    unreadable = check is None or _PLACEHOLDER.search(value) or read_check(check)[1]
    return None if unreadable or not _RESPONSE.fullmatch(given) else check


def _row_value(found: re.Match[str]) -> str:
    """Return the placeholder of a row's field or column; other text is unchanged."""
    space, name = found.groups()
    field = Columns().field(name)
    if space == "sample" or not name.isidentifier() or field not in (None, *_FILLED):
        return found[0]
    return f"{{{{{field or f'metadata.{name}'}}}}}"


def _instructions(grader: Mapping[str, Any], name: str, read: ForeignSuite) -> str:
    """Return the grader's prompt, naming the row's values, which a judge sees anyway."""

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
    return _PLACEHOLDER.sub(in_words, "\n\n".join(turn for turn in turns if turn))


def _fenced(text: str) -> str:
    """Return a text as a fenced block, so that none of its lines is read as Markdown."""
    fence = "~" * max(4, *(len(run) + 1 for run in re.findall("~+", text) or [""]))
    return f"{fence}text\n{text}\n{fence}"


def _levels(passing: list[str], failing: list[str]) -> str:
    lines = ["| Score | Meaning |", "| --- | --- |"]
    for score, labels in ((1, passing), (0, failing)):
        named = ", ".join(re.sub(r"[\s|`\\]+", " ", as_text(label)) for label in labels)
        lines += [f"| {score} | labeled {named or 'otherwise'} |"]
    return "\n".join(lines)


def _weights(formula: str, named: Mapping[str, str], read: ForeignSuite) -> dict[str, float]:
    """Return the weights of a plain weighted sum."""
    terms = [_TERM.fullmatch(part) for part in formula.split("+")]
    found = {term[2]: float(term[1]) for term in terms if term}
    if len(found) == len(terms) and found.keys() == named.keys() and any(found.values()):
        return {named[key]: weight for key, weight in found.items()}
    read.lose("multi grader", f"with `{formula}`", "every criterion weighs the same")
    return {}


def _new_id(name: str, taken: Mapping[str, object]) -> str:
    plain = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
    plain = plain if plain[:1].isalpha() else f"grader_{plain}".rstrip("_")
    return plain if plain not in taken else f"{plain}_{len(taken) + 1}"


def _document(title: str, criteria: Mapping[str, _Criterion], weights: Record) -> str:
    """Return the rubric document."""
    rules = [
        f"{key} >= {show_number(each.least)}"
        for key, each in criteria.items()
        if each.least is not None
    ]
    scales = {key: each.scale for key, each in criteria.items()}
    front = {"id": "imported", "version": "1.0.0", "scale": "0-1", "scales": scales, "votes": 1}
    front |= ({"weights": weights} if weights else {}) | ({"pass": rules} if rules else {})
    return "\n".join([*_lines(front, title, criteria), ""])


def _lines(front: Record, title: str, criteria: Mapping[str, _Criterion]) -> Iterator[str]:
    yield from ("---", *(f"{key}: {as_yaml(value)}" for key, value in front.items()), "---")
    yield from (f"# {_plain(title)}", "", "## Criteria")
    for key, each in criteria.items():
        yield from ("", f"### {_plain(each.name)} `{key}`", "", each.text)


def _plain(name: str) -> str:
    """Return a name without Markdown syntax."""
    return re.sub(r"[^\w .,:()-]+", " ", name).strip(" .-") or "Grader"
