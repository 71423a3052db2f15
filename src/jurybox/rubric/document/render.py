"""A rubric as its canonical text, which parses back to the same rubric, or as plain data."""

import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from jurybox.documents.numbers import show_number
from jurybox.documents.plain_yaml import as_yaml
from jurybox.rubric.checks import Check
from jurybox.rubric.document.criteria import SEPARATOR, is_label, snake_case
from jurybox.rubric.document.outline import (
    CHECKS_INFO,
    CRITERIA,
    JUDGE_PROMPT,
    LEXICONS,
    LEXICONS_INFO,
    RULES_INFO,
)
from jurybox.rubric.rubric_model import Band, Component, Criterion, Decision, Level, Rubric
from jurybox.rubric.rules import (
    Adjustment,
    Condition,
    HasPhrase,
    HasSignal,
    Lexicon,
    Rules,
    SignalWithin,
    WordCount,
)
from jurybox.rubric.scale import Scale

_TWO_COLUMNS = 2
_PLAIN_TEXT = re.compile(r"[A-Za-z][A-Za-z0-9_ -]*[A-Za-z0-9]|[A-Za-z]")


def render_rubric(rubric: Rubric) -> str:
    """Return the canonical Markdown of ``rubric``."""
    texts = {section.title: section.text for section in rubric.sections}
    blocks = [
        "\n".join(["---", *_front_matter(rubric), "---", f"# {rubric.title}"]),
        rubric.description,
        f"## {CRITERIA}",
        texts.get(CRITERIA, ""),
        *(block for criterion in rubric.criteria for block in _criterion(criterion)),
    ]
    if rubric.lexicons:
        shared = lexicons_text(rubric.lexicons)
        blocks += [f"## {LEXICONS}", texts.get(LEXICONS, ""), _fence(LEXICONS_INFO, shared)]
    if rubric.template is not None:
        prompt = _fence("text", rubric.template.text)
        blocks += [f"## {JUDGE_PROMPT}", texts.get(JUDGE_PROMPT, ""), prompt]
    for section in rubric.sections:
        if section.title not in (CRITERIA, LEXICONS, JUDGE_PROMPT):
            blocks += [f"## {section.title}".rstrip(), section.text]
    return "\n\n".join(block for block in blocks if block) + "\n"


def front_matter(rubric: Rubric) -> str:
    """Return the canonical front matter, without its fences."""
    return "\n".join(_front_matter(rubric))


def lexicons_text(lexicons: Iterable[Lexicon]) -> str:
    """Return the canonical YAML of shared lexicons."""
    return "\n".join(f"{each.name}: {_lexicon(each)}" for each in lexicons)


def rules_text(rules: Rules) -> str:
    """Return the canonical YAML of a criterion's rules."""
    return "\n".join(_rules(rules))


def checks_text(checks: Iterable[Check]) -> str:
    """Return the canonical YAML of a criterion's checks."""
    return "\n".join(f"- {each.entry}" for each in checks)


def _front_matter(rubric: Rubric) -> Iterator[str]:
    yield f"id: {rubric.id}"
    yield f"version: {rubric.version}"
    yield f"scale: {rubric.scale}"
    own = [each for each in rubric.criteria if each.scale != rubric.scale]
    if own:
        yield f"scales: {_flow((each.id, str(each.scale)) for each in own)}"
    weighted = [each for each in rubric.criteria if each.weight != 1]
    if weighted:
        yield f"weights: {_flow((each.id, show_number(each.weight)) for each in weighted)}"
    evident = [each for each in rubric.criteria if each.evidence != "levels"]
    if evident:
        yield f"evidence: {_flow((each.id, each.evidence) for each in evident)}"
    if rubric.overall_name != "overall":
        yield f"overall_name: {rubric.overall_name}"
    yield from (f"{name}: {value}" for name, value in _changed(rubric.protocol))
    generation = dict(_changed(rubric.generation))
    if generation:
        yield f"generation: {_flow(generation.items())}"
    without = [each.id for each in rubric.criteria if each.id in rubric.without_response]
    if without:
        scores = ((each, show_number(rubric.without_response[each])) for each in without)
        yield f"without_response: {_flow(scores)}"
    if rubric.require_review != ("safety",):
        yield f"require_review: [{', '.join(rubric.require_review)}]"
    yield from _thresholds(rubric)


def _thresholds(rubric: Rubric) -> Iterator[str]:
    yield from _listed("pass", [_text(str(rule)) for rule in rubric.pass_rules])
    if rubric.components:
        yield "components:"
        yield from (f"  {each.name}: {_component(each)}" for each in rubric.components)
    if rubric.metrics:
        yield "metrics:"
        yield from (f"  {each.name}: {_text(str(each.formula))}" for each in rubric.metrics)
    yield from _listed("gates", [_text(str(gate)) for gate in rubric.gates])
    yield from _listed("bands", [_band(band, rubric.band_decimals) for band in rubric.bands])
    yield from _listed("decisions", [_decision(each) for each in rubric.decisions])
    yield from _listed("sample_decisions", [_decision(each) for each in rubric.sample_decisions])


def _changed(struct: msgspec.Struct) -> Iterator[tuple[str, str]]:
    """Yield the fields that differ from their defaults."""
    for field in msgspec.structs.fields(struct):
        value = getattr(struct, field.name)
        if value != field.default:
            yield field.name, value if isinstance(value, str) else show_number(value)


def _listed(key: str, lines: list[str]) -> Iterator[str]:
    if lines:
        yield f"{key}:"
        yield from (f"  - {line}" for line in lines)


def _component(component: Component) -> str:
    parts = [("of", component.of), ("weight", show_number(component.weight))]
    if component.full_until is not None:
        parts.append(("full_until", show_number(component.full_until)))
    return _flow(parts)


def _band(band: Band, decimals: int) -> str:
    parts = [("label", _text(band.label)), ("from", f"{band.low:.{decimals}f}")]
    return _flow([*parts, *_optional("meaning", band.meaning)])


def _decision(decision: Decision) -> str:
    parts = [("decide", decision.decide)]
    for key, rules in (("when_any", decision.when_any), ("when_all", decision.when_all)):
        if rules:
            parts.append((key, _row(str(rule) for rule in rules)))
    return _flow([*parts, *_optional("meaning", decision.meaning)])


def _optional(key: str, text: str) -> list[tuple[str, str]]:
    return [(key, _text(text))] if text else []


def _criterion(criterion: Criterion) -> Iterator[str]:
    named = snake_case(criterion.name) == criterion.id and "`" not in criterion.name
    yield f"### {criterion.name}" if named else f"### {criterion.name} `{criterion.id}`"
    yield criterion.definition
    if criterion.levels:
        yield "\n".join(_levels(criterion))
    for indicators in criterion.indicators:
        yield f"#### {indicators.label}"
        listing = "\n".join(_item(item) for item in indicators.items)
        yield indicators.text
        # A line that looks like a label must not come to stand just above the list.
        yield SEPARATOR if is_label(indicators.text.rpartition("\n")[2]) else ""
        yield listing
    if criterion.rules is not None:
        yield _fence(RULES_INFO, rules_text(criterion.rules))
    if criterion.checks:
        yield _fence(CHECKS_INFO, checks_text(criterion.checks))


def _levels(criterion: Criterion) -> Iterator[str]:
    labelled = len(criterion.level_columns) > _TWO_COLUMNS
    yield _table_row(criterion.level_columns)
    yield _table_row(["---"] * len(criterion.level_columns))
    for level in criterion.levels:
        score = _score(level, criterion.scale, criterion.level_decimals)
        yield _table_row([score, *([level.label] if labelled else []), level.meaning])


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
    # Dashes behind a dash would be a rule across the page.
    mark = "-" if first.strip(" \t-") else "*"
    return "\n".join([f"{mark} {first}", *(f"  {line}" if line else "" for line in rest)])


def _rules(rules: Rules) -> Iterator[str]:
    yield f"base: {show_number(rules.base)}"
    if rules.lexicons:
        yield "lexicons:"
        yield from (f"  {each.name}: {_lexicon(each)}" for each in rules.lexicons)
    if rules.adjustments:
        yield "adjust:"
        yield from (f"  - {_adjustment(each)}" for each in rules.adjustments)


def _lexicon(lexicon: Lexicon) -> str:
    phrases = _row(lexicon.phrases)
    if lexicon.match == "word-start":
        return phrases
    return _flow([("match", lexicon.match), ("phrases", phrases)])


def _adjustment(adjustment: Adjustment) -> str:
    direction = "add" if adjustment.add > 0 else "subtract"
    sets = [_flow(_condition(each) for each in conditions) for conditions in adjustment.when]
    when = sets[0] if len(sets) == 1 else f"[{', '.join(sets)}]"
    parts = [(direction, show_number(abs(adjustment.add))), ("when", when)]
    return _flow([*parts, *_optional("why", adjustment.why)])


def _condition(condition: Condition) -> tuple[str, str]:
    match condition:
        case HasPhrase(text=text, lexicon=lexicon, present=present):
            value = lexicon if isinstance(lexicon, str) else _row(lexicon)
            return f"{text}_{'has' if present else 'lacks'}", value
        case WordCount(text=text, low=low, high=high):
            return f"{text}_words", _word_range(low, high)
        case HasSignal(signal=signal, present=present):
            return "signal" if present else "no_signal", signal
        case SignalWithin(signal=signal, low=low, high=high):
            return signal, _number_range(low, high)


def _number_range(low: float | None, high: float | None) -> str:
    if low is None:
        return f'"<= {show_number(high or 0)}"'
    if high is None:
        return f'">= {show_number(low)}"'
    return f"{show_number(low)}..{show_number(high)}"


def _word_range(low: int | None, high: int | None) -> str:
    if low is None:
        return f'"<= {high}"'
    return f'">= {low}"' if high is None else f"{low}-{high}"


def _row(texts: Iterable[str]) -> str:
    return f"[{', '.join(_text(text) for text in texts)}]"


def _flow(pairs: Iterable[tuple[str, str]]) -> str:
    return "{" + ", ".join(f"{key}: {value}" for key, value in pairs) + "}"


def _text(text: str) -> str:
    """Write a text so that YAML reads it back to the character."""
    return text if _PLAIN_TEXT.fullmatch(text) else as_yaml(text)


def _fence(info: str, content: str) -> str:
    longest = max((len(run) for run in re.findall(r"`+", content)), default=0)
    ticks = "`" * max(3, longest + 1)
    return f"{ticks}{info}\n{content}\n{ticks}"


def rubric_as_data(rubric: Rubric) -> dict[str, Any]:
    """Return everything that ``rubric`` says, in the words of its document."""
    return {
        "id": rubric.id,
        "version": rubric.version,
        "sha256": rubric.sha256,
        "title": rubric.title,
        "description": rubric.description,
        "scale": list(rubric.scale.ends),
        "criteria": [_criterion_data(each) for each in rubric.criteria],
        "overall_name": rubric.overall_name,
        **msgspec.to_builtins(rubric.protocol),
        "generation": msgspec.to_builtins(rubric.generation),
        "pass": [str(rule) for rule in rubric.pass_rules],
        "components": msgspec.to_builtins(rubric.components),
        "metrics": {metric.name: str(metric.formula) for metric in rubric.metrics},
        "gates": [str(gate) for gate in rubric.gates],
        "bands": [
            {"label": band.label, "from": band.low, "meaning": band.meaning}
            for band in rubric.bands
        ],
        "band_decimals": rubric.band_decimals,
        "decisions": [_decision_data(each) for each in rubric.decisions],
        "sample_decisions": [_decision_data(each) for each in rubric.sample_decisions],
        "lexicons": msgspec.to_builtins(rubric.lexicons),
        "judge_prompt": None if rubric.template is None else rubric.template.text,
        "sections": msgspec.to_builtins(rubric.sections),
    }


def _criterion_data(criterion: Criterion) -> dict[str, Any]:
    return {
        "id": criterion.id,
        "name": criterion.name,
        "definition": criterion.definition,
        "scale": list(criterion.scale.ends),
        "continuous": criterion.scale.continuous,
        "weight": criterion.weight,
        "source": criterion.source,
        "levels": msgspec.to_builtins(criterion.levels),
        "level_columns": list(criterion.level_columns),
        "level_decimals": criterion.level_decimals,
        "indicators": [
            {"polarity": each.polarity, **msgspec.to_builtins(each)}
            for each in criterion.indicators
        ],
        "rules": msgspec.to_builtins(criterion.rules),
        "checks": [msgspec.json.decode(each.entry) for each in criterion.checks],
    }


def _decision_data(decision: Decision) -> dict[str, Any]:
    return {
        "decide": decision.decide,
        "when_any": [str(rule) for rule in decision.when_any],
        "when_all": [str(rule) for rule in decision.when_all],
        "meaning": decision.meaning,
    }
