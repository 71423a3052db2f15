"""A rubric as plain data, for JSON."""

from typing import Any

import msgspec

from jurybox.rubric.model import Criterion, Decision, Rubric
from jurybox.rubric.scale import Scale


def rubric_as_data(rubric: Rubric) -> dict[str, Any]:
    """Return everything that ``rubric`` says, in the words of its document."""
    return {
        "id": rubric.id,
        "version": rubric.version,
        "sha256": rubric.sha256,
        "title": rubric.title,
        "description": rubric.description,
        "scale": _scale(rubric.scale),
        "criteria": [_criterion(each) for each in rubric.criteria],
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
        "decisions": [_decision(each) for each in rubric.decisions],
        "sample_decisions": [_decision(each) for each in rubric.sample_decisions],
        "lexicons": msgspec.to_builtins(rubric.lexicons),
        "judge_prompt": None if rubric.template is None else rubric.template.text,
        "sections": msgspec.to_builtins(rubric.sections),
    }


def _scale(scale: Scale) -> list[float]:
    return list(scale.ends)


def _criterion(criterion: Criterion) -> dict[str, Any]:
    return {
        "id": criterion.id,
        "name": criterion.name,
        "definition": criterion.definition,
        "scale": _scale(criterion.scale),
        "continuous": criterion.scale.continuous,
        "weight": criterion.weight,
        "levels": msgspec.to_builtins(criterion.levels),
        "level_columns": list(criterion.level_columns),
        "level_decimals": criterion.level_decimals,
        "indicators": [
            {"polarity": each.polarity, **msgspec.to_builtins(each)}
            for each in criterion.indicators
        ],
        "rules": msgspec.to_builtins(criterion.rules),
    }


def _decision(decision: Decision) -> dict[str, Any]:
    return {
        "decide": decision.decide,
        "when_any": [str(rule) for rule in decision.when_any],
        "when_all": [str(rule) for rule in decision.when_all],
        "meaning": decision.meaning,
    }
