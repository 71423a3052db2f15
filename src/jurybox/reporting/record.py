"""One sample of a run as one row of a file, with all that is needed to understand it alone."""

from collections.abc import Iterable, Sequence
from typing import Any, Final, Literal

import msgspec

from jurybox.engine.records import ExchangeRow, SampleRow, in_order, read_result, request_hash
from jurybox.rubric.metrics import SAMPLE_SCORE, TOTAL_SCORE
from jurybox.rubric.model import Rubric
from jurybox.sample import Response, Row
from jurybox.scoring.sample_result import SampleResult

Kind = Literal["text", "integer", "number", "boolean", "json"]
Record = dict[str, Any]


class Column(msgspec.Struct, frozen=True, kw_only=True):
    """A field that every row has; ``json`` are lists and objects."""

    name: str
    kind: Kind


_TEXTS: Final = (str, str | None, Response | None)
_INPUTS: Final[dict[str, Kind]] = {
    "id": "text",
    "repeat": "integer",
    **{
        each.name: "text" if each.type in _TEXTS else "json" for each in msgspec.structs.fields(Row)
    },
}
_FIGURES: Final[dict[str, Kind]] = {
    TOTAL_SCORE: "number",
    SAMPLE_SCORE: "number",
    "latency_e2e_ms": "number",
    "latency_model_ms": "number",
    "input_tokens": "integer",
    "output_tokens": "integer",
    "total_tokens": "integer",
    "token_efficiency_ratio": "number",
}
_JUDGED: Final[dict[str, Kind]] = {
    "timed_out": "boolean",
    "criteria": "json",
    "responses": "json",
    "confidence": "text",
    "votes_valid": "integer",
    "votes_requested": "integer",
    "votes_skipped": "integer",
    "lost_votes": "json",
    "bias_checklist": "json",
    "stable": "boolean",
    "winner": "text",
    "safety_flag": "boolean",
    "safety_findings": "json",
    "response_findings": "json",
    "needs_review": "boolean",
    "review_reasons": "json",
    "passed": "boolean",
    "rules": "json",
    "decision": "text",
    "evaluator_error": "text",
    "target_error": "text",
}
_BESIDE: Final[dict[str, Kind]] = {
    "judge_score": "number",
    "judge_reasoning": "text",
    "judge_criteria": "json",
}
_FALLBACK: Final[dict[str, Kind]] = {"judge_fallback": "boolean"}
_HASH: Final[dict[str, Kind]] = {"record_sha256": "text"}
_RAW: Final[dict[str, Kind]] = {"exchanges": "json"}
_FIXED: Final = frozenset(
    {
        *_INPUTS,
        *_FIGURES,
        *_JUDGED,
        *_BESIDE,
        *_FALLBACK,
        *_HASH,
        *_RAW,
    }
)


class _Report(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a jury's report that a row tells, as they are stored."""

    criteria: list[dict[str, Any]]
    bias_checklist: dict[str, str]
    safety_findings: list[Any]
    response_findings: list[Any]
    lost_votes: list[Any]
    responses: dict[str, Any] | None = None


class _Automated(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of what the rules found that a row tells."""

    criteria: list[dict[str, Any]]
    overall: float | None


class _Said(msgspec.Struct, frozen=True, kw_only=True):
    text: str


class _Responses(msgspec.Struct, frozen=True, kw_only=True):
    response: _Said
    response_b: _Said | None = None


_ROW: Final = msgspec.json.Decoder(Row)
_RESPONSES: Final = msgspec.json.Decoder(_Responses)
_OBJECT: Final = msgspec.json.Decoder(dict[str, Any])
_REPORT: Final = msgspec.json.Decoder(_Report)
_AUTOMATED: Final = msgspec.json.Decoder(_Automated)
_PARTS: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
# What is as usual isn't stored.
_DEFAULTS: Final[Record] = msgspec.to_builtins(msgspec.structs.asdict(SampleResult(figures={})))

_TOLD: Final = ("id", "score", "preference", "reasoning", "confidence", "votes")


class Shape:
    """Which fields the rows of a run have: its rubric decides.

    A score is a field under its own name. Where a document gives a name that a row needs for
    something else, such as `confidence`, the score is called `criterion.confidence`.
    """

    def __init__(self, rubric: Rubric, *, rules: bool, raw: bool = False) -> None:
        criteria = {each.id: _free("criterion", each.id) for each in rubric.criteria}
        overall = {rubric.overall_name: _free("overall", rubric.overall_name)}
        self._scores = criteria | overall
        self._components = {each.name: _free("component", each.name) for each in rubric.components}
        scores = (*self._scores.values(), *self._components.values())
        kinds: dict[str, Kind] = {**_INPUTS, **dict.fromkeys(scores, "number")}
        kinds |= _FIGURES | _JUDGED
        kinds |= _BESIDE if rules else {}
        kinds |= _FALLBACK if rubric.protocol.fallback_score is not None else {}
        kinds |= _HASH
        kinds |= _RAW if raw else {}
        self.raw = raw
        self.columns = tuple(Column(name=name, kind=kind) for name, kind in kinds.items())

    def record(self, sample: SampleRow, exchanges: Sequence[ExchangeRow] = ()) -> Record:
        """Return a sample as a row, its fields in the order of the columns.

        Raises:
            msgspec.DecodeError: something stored can't be read.
            LookupError: an exchange is missing.

        """
        # It is a result, but its numbers stay as they are stored: 2 doesn't become 2.0.
        read_result(sample.result)
        values: Record = _DEFAULTS | _OBJECT.decode(sample.result)
        figures, components = values["figures"], values["components"]
        values |= _inputs(sample) | _judged(sample)
        values |= {name: figures.get(name) for name in _FIGURES}
        values |= {new: figures.get(name) for name, new in self._scores.items()}
        values |= {new: components.get(name) for name, new in self._components.items()}
        values["record_sha256"] = sample.record_sha256
        if self.raw:
            values["exchanges"] = [_exchange(each) for each in in_order(sample, exchanges)]
        return {column.name: values[column.name] for column in self.columns}


def _free(what: str, name: str) -> str:
    """Return a name for a score that means nothing else; no document's name has a dot in it."""
    return f"{what}.{name}" if name in _FIXED else name


def _inputs(sample: SampleRow) -> Record:
    row = _ROW.decode(sample.inputs)
    responses = _RESPONSES.decode(sample.responses)
    second = responses.response_b
    return {
        **msgspec.to_builtins(msgspec.structs.asdict(row)),
        "id": sample.sample_id,
        "repeat": sample.repeat,
        "response": responses.response.text,
        "response_b": None if second is None else second.text,
    }


def _judged(sample: SampleRow) -> Record:
    """Return what the jury and the rules say.

    Where the rules give the scores, the jury's stand beside them (C15).
    """
    report = None if sample.report is None else _REPORT.decode(sample.report)
    automated = None if sample.automated is None else _AUTOMATED.decode(sample.automated)
    by_jury = None if report is None else _criteria(report.criteria)
    by_rules = None
    if automated is not None and automated.overall is not None:
        by_rules = automated.criteria
    told: Record = {
        "criteria": by_jury if by_rules is None else by_rules,
        "judge_criteria": None if by_rules is None else by_jury,
        "judge_reasoning": None if by_jury is None else _reasoning(by_jury),
    }
    for name in ("responses", "lost_votes", "bias_checklist"):
        told[name] = getattr(report, name, None)
    for name in ("safety_findings", "response_findings"):
        told[name] = getattr(report, name, None)
    return told


def _criteria(criteria: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return each criterion without what the rubric says anyway; only pairs have preferences."""
    return [
        {
            name: each[name]
            for name in _TOLD
            if name in each and (name != "preference" or each[name] is not None)
        }
        for each in criteria
    ]


def _reasoning(criteria: Sequence[dict[str, Any]]) -> str | None:
    """Return what the judges say in one text, each thing once, with the criteria it is said of."""
    said: dict[str, list[str]] = {}
    for each in criteria:
        if each["reasoning"]:
            said.setdefault(each["reasoning"], []).append(each["id"])
    if len(said) == 1 and len(*said.values()) == len(criteria):
        return next(iter(said))
    return "\n".join(f"{', '.join(names)}: {text}" for text, names in said.items()) or None


def _exchange(row: ExchangeRow) -> dict[str, Any]:
    """Return a request, as the text that its hash is of, and what came of it."""
    return {
        "role": row.role,
        "request_sha256": request_hash(row.frame, row.material),
        "request": row.request,
        **_PARTS.decode(row.outcome),
    }
