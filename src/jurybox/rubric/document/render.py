"""A rubric as its canonical text, which parses back to the same rubric, or as plain data."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

import msgspec

from jurybox.documents.field_reader import fields_of
from jurybox.documents.numbers import show_number
from jurybox.documents.plain_yaml import as_yaml
from jurybox.rubric.document import outline
from jurybox.rubric.document.criteria import snake_case
from jurybox.rubric.document.front_matter import front_matter_of
from jurybox.rubric.rubric_model import Criterion, Level, Rubric
from jurybox.rubric.rules import Adjustment, Lexicon, Rules
from jurybox.rubric.scale import Scale

_TWO_COLUMNS = 2
_PLAIN_TEXT = re.compile(r"[A-Za-z][A-Za-z0-9_ -]*[A-Za-z0-9]|[A-Za-z]|[0-9][0-9.]*(-[0-9.]+)?")


def render_rubric(rubric: Rubric) -> str:
    """Return the canonical Markdown of ``rubric``."""
    texts = {section.title: section.text for section in rubric.sections}
    front = _as_data(front_matter_of(rubric))
    for band in front.get("bands", ()):
        band["from"] = f"{band['from']:.{rubric.band_decimals}f}"
    blocks = [
        "\n".join(["---", *_lines(front), "---", f"# {rubric.title}"]),
        rubric.description,
        f"## {outline.CRITERIA}",
        texts.get(outline.CRITERIA, ""),
        *(block for criterion in rubric.criteria for block in _criterion(criterion)),
    ]
    if rubric.lexicons:
        shared = "\n".join(_lines(_lexicons(rubric.lexicons)))
        blocks += [
            f"## {outline.LEXICONS}",
            texts.get(outline.LEXICONS, ""),
            _fence(outline.LEXICONS_INFO, shared),
        ]
    if rubric.template is not None:
        prompt = _fence("text", rubric.template.text)
        blocks += [f"## {outline.JUDGE_PROMPT}", texts.get(outline.JUDGE_PROMPT, ""), prompt]
    for section in rubric.sections:
        if section.title not in (outline.CRITERIA, outline.LEXICONS, outline.JUDGE_PROMPT):
            blocks += [f"## {section.title}".rstrip(), section.text]
    return "\n\n".join(block for block in blocks if block) + "\n"


def _as_data(value: Any, *, whole: bool = False) -> Any:  # noqa: ANN401 - any value
    """Return a value as the document writes it, without defaults unless ``whole``."""
    match value:
        case msgspec.Struct() if type(value).__str__ is object.__str__:
            given = [(each, getattr(value, each.name)) for each in fields_of(type(value))]
            return {
                field.encode_name: _as_data(each, whole=whole)
                for field, each in given
                if whole or each != _default(field)
            }
        case msgspec.Struct():
            return str(value)
        case dict():
            return {
                key: _as_data(v, whole=whole) for key, v in cast("dict[str, Any]", value).items()
            }
        case tuple():
            return [_as_data(each, whole=whole) for each in cast("tuple[Any, ...]", value)]
        case _:
            return value


def _default(field: msgspec.structs.FieldInfo) -> object:
    made = field.default_factory
    return field.default if made is msgspec.NODEFAULT else made()


def _lines(data: Mapping[str, Any]) -> Iterator[str]:
    """Yield YAML: a line for each key, and for each entry of complex lists and some mappings."""
    for key, value in data.items():
        entries = cast("list[Any]", value) if isinstance(value, list) else []
        if any(not isinstance(each, str) or not _PLAIN_TEXT.fullmatch(each) for each in entries):
            yield f"{key}:"
            yield from (f"  - {_flow(each)}" for each in entries)
        elif isinstance(value, dict) and key in {"components", "metrics", "lexicons"}:
            yield f"{key}:"
            pairs = cast("dict[str, Any]", value).items()
            yield from (f"  {name}: {_flow(each)}" for name, each in pairs)
        else:
            yield f"{key}: {_flow(value)}"


def _flow(value: Any) -> str:  # noqa: ANN401 - plain data
    """Write a value on one line that YAML reads back unchanged."""
    if isinstance(value, dict):
        pairs = cast("dict[str, Any]", value).items()
        return "{" + ", ".join(f"{key}: {_flow(each)}" for key, each in pairs) + "}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_flow, cast('list[Any]', value)))}]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return value if _PLAIN_TEXT.fullmatch(value) else as_yaml(value)
    return show_number(value)


def _criterion(criterion: Criterion) -> Iterator[str]:
    named = snake_case(criterion.name) == criterion.id and "`" not in criterion.name
    yield f"### {criterion.name}" if named else f"### {criterion.name} `{criterion.id}`"
    yield criterion.definition
    if criterion.levels:
        yield "\n".join(_levels(criterion))
    for indicators in criterion.indicators:
        yield f"#### {indicators.label}"
        yield indicators.text
        yield "\n".join(_item(item) for item in indicators.items)
    if criterion.rules is not None:
        yield _fence(outline.RULES_INFO, "\n".join(_lines(_rules(criterion.rules))))
    if criterion.checks:
        yield _fence(outline.CHECKS_INFO, "\n".join(f"- {each.entry}" for each in criterion.checks))


def _levels(criterion: Criterion) -> Iterator[str]:
    labeled = len(criterion.level_columns) > _TWO_COLUMNS
    yield _table_row(criterion.level_columns)
    yield _table_row(["---"] * len(criterion.level_columns))
    for level in criterion.levels:
        score = _score(level, criterion.scale, criterion.level_decimals)
        yield _table_row([score, *([level.label] if labeled else []), level.meaning])


def _table_row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _score(level: Level, scale: Scale, decimals: int) -> str:
    ends = [
        f"{end:.{decimals}f}" if scale.continuous else show_number(end)
        for end in (level.low, level.high)
    ]
    return ends[0] if level.low == level.high else (".." if level.low < 0 else "-").join(ends)


def _item(item: str) -> str:
    first, *rest = item.split("\n")
    # Dashes after a dash would be a horizontal rule.
    mark = "-" if first.strip(" \t-") else "*"
    return "\n".join([f"{mark} {first}", *(f"  {line}" if line else "" for line in rest)])


def _lexicons(lexicons: Iterable[Lexicon]) -> dict[str, Any]:
    return {
        each.name: each.phrases
        if each.match == "word-start"
        else {"match": each.match, "phrases": each.phrases}
        for each in lexicons
    }


def _rules(rules: Rules) -> dict[str, Any]:
    """Return the rules of a criterion as the document writes them."""
    data: dict[str, Any] = {"base": rules.base}
    data |= {"lexicons": _lexicons(rules.lexicons)} if rules.lexicons else {}
    data |= {"adjust": [*map(_adjustment, rules.adjustments)]} if rules.adjustments else {}
    return data


def _adjustment(adjustment: Adjustment) -> dict[str, Any]:
    sets = [dict(each.written() for each in conditions) for conditions in adjustment.when]
    data: dict[str, Any] = {
        "add" if adjustment.add > 0 else "subtract": abs(adjustment.add),
        "when": sets[0] if len(sets) == 1 else sets,
    }
    return data | ({"why": adjustment.why} if adjustment.why else {})


def _fence(info: str, content: str) -> str:
    longest = max((len(run) for run in re.findall(r"`+", content)), default=0)
    ticks = "`" * max(3, longest + 1)
    return f"{ticks}{info}\n{content}\n{ticks}"


def rubric_as_data(rubric: Rubric) -> dict[str, Any]:
    """Return all contents of ``rubric``; scales, comparisons and formulas as strings."""
    return _as_data(rubric, whole=True)
