"""Samples for programs: found as the table of samples finds them."""

from typing import Any, Final

import msgspec

from jurybox.reporting.record import Shape
from jurybox.reporting.sample_record import record_as_data
from jurybox.reporting.stored import damaged, procedure_of, rubric_of
from jurybox.scoring.facets import Facets, flag_names
from jurybox.web.api.registry import NUMBER, RUN, Call, Endpoint
from jurybox.web.filters import FILTERS, LIMIT, OFFSET, Filter
from jurybox.web.pages.finding import known_record, known_run

_FIGURES: Final = msgspec.json.Decoder(dict[str, float])
_NAMES: Final = {"run": RUN, "number": NUMBER}
_OBJECT: Final = {"type": "object"}


class FoundSample(msgspec.Struct, frozen=True, kw_only=True):
    """A sample, as far as it is needed to choose one."""

    number: int
    id: str
    repeat: int
    flags: tuple[str, ...]
    urgency: int
    scenario: str | None
    demographic: str | None
    winner: str | None
    figures: dict[str, float]


class FoundSamples(msgspec.Struct, frozen=True, kw_only=True):
    """Some of the samples that were asked for; ``total`` counts all of them."""

    samples: tuple[FoundSample, ...]
    total: int


def _samples(call: Call) -> FoundSamples:
    run = known_run(call.place, call.path["run"])
    query = Filter(call.query).query(rubric_of(run).overall_name)
    page = call.place.store.find_samples(run.id, query)
    try:
        return FoundSamples(samples=tuple(map(_found, page.rows)), total=page.total)
    except msgspec.DecodeError as error:
        raise damaged(run, error) from None


def _found(row: Facets) -> FoundSample:
    return FoundSample(
        number=row.number,
        id=row.sample_id,
        repeat=row.repeat,
        flags=flag_names(row.flags),
        urgency=row.urgency,
        scenario=row.scenario,
        demographic=row.demographic,
        winner=row.winner,
        figures=_FIGURES.decode(row.figures),
    )


def _sample(call: Call) -> dict[str, Any]:
    run = known_run(call.place, call.path["run"])
    record = known_record(call.place, run, call.path["number"])
    procedure = procedure_of(run)
    shape = Shape(procedure.judging.rubric, rules=procedure.rules is not None)
    try:
        told = shape.record(record.row)
    except (msgspec.DecodeError, LookupError) as error:
        raise damaged(run, error) from None
    return {"run_id": run.id, "number": record.row.number, **told}


def _exchanges(call: Call) -> dict[str, Any]:
    run = known_run(call.place, call.path["run"])
    record = known_record(call.place, run, call.path["number"])
    try:
        return {"exchanges": record_as_data(record, run)["exchanges"]}
    except (msgspec.DecodeError, LookupError) as error:
        raise damaged(run, error) from None


ENDPOINTS: Final = (
    Endpoint(
        path="/runs/{run}/samples",
        name="samples",
        about="The samples of a run that are asked for.",
        answer=_samples,
        gives=FoundSamples,
        names={"run": RUN},
        query=(*FILTERS, OFFSET, LIMIT),
    ),
    Endpoint(
        path="/runs/{run}/samples/{number}",
        name="sample",
        about="A sample, as `jurybox export` writes it.",
        answer=_sample,
        gives={
            "type": "object",
            "required": ["run_id", "number", "id", "repeat", "task", "response", "record_sha256"],
        },
        names=_NAMES,
    ),
    Endpoint(
        path="/runs/{run}/samples/{number}/exchanges",
        name="exchanges",
        about="What models were asked for a sample and what they replied, as it is stored.",
        answer=_exchanges,
        gives={
            "type": "object",
            "required": ["exchanges"],
            "properties": {"exchanges": {"type": "array", "items": _OBJECT}},
        },
        names=_NAMES,
    ),
)
