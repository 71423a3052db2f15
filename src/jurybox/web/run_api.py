"""The JSON API; the framework validates and documents it."""

from typing import Annotated, Any, Final

import msgspec
from fastapi import APIRouter, Query
from pydantic import BaseModel, Field
from starlette.requests import Request
from starlette.responses import Response

from jurybox.app.view_run import calibration_as_data, verdict_as_data, view_run
from jurybox.engine.records import Facets, ReviewRow
from jurybox.reporting.export_rows import record_as_data
from jurybox.reporting.run_verdict import verdict_of
from jurybox.reporting.stored import damaged, plan_of
from jurybox.reporting.view import ListedRun, is_running, listed_run
from jurybox.scoring.sample_result import flag_names
from jurybox.web.filters import Limit, ListFilter, Offset
from jurybox.web.lookup import ANY_TEXT, PlaceOf, TheRecord, TheRun, known_run
from jurybox.web.pages.rubrics_page import History, rubric_history
from jurybox.web.template_engine import csrf_of, json_response

_COMPONENTS: Final[dict[str, Any]] = {}
Json = dict[str, Any]


class Why(BaseModel):
    """What is wrong, how to fix it, and where it is; each may be empty."""

    problem: str
    hint: str
    where: str


class ErrorReply(BaseModel):
    """The answer to a request that can't be served."""

    error: Why


REFUSED: Final[dict[int | str, Json]] = {
    "4XX": {"model": ErrorReply, "description": "The request is refused."},
    "5XX": {"model": ErrorReply, "description": "The store can't be read."},
}
router: Final = APIRouter(prefix="/api", responses=REFUSED)


def answers(kind: Any) -> dict[int | str, Json]:  # noqa: ANN401 - any type that msgspec knows
    """Describe the answer of an endpoint for the OpenAPI document."""
    # Two modules may have types with the same name.
    own = kind.__name__
    refs = f"#/components/schemas/{own}.{{name}}"
    (schema,), components = msgspec.json.schema_components([kind], ref_template=refs)
    _COMPONENTS.update({f"{own}.{name}": each for name, each in components.items()})
    content = {"application/json": {"schema": schema}}
    return {200: {"description": "The answer.", "content": content}}


def described(document: Json) -> Json:
    """Add our own types and the token to the framework's OpenAPI document."""
    document["components"]["schemas"] |= _COMPONENTS
    document["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    document["security"] = [{}, {"token": []}]
    return document


class CsrfToken(msgspec.Struct, frozen=True, kw_only=True):
    """The token that writes send in ``X-Jurybox-CSRF``, together with the cookie set here."""

    csrf: str


class RunList(msgspec.Struct, frozen=True, kw_only=True):
    """Runs, the newest first; ``more`` says that there are older ones."""

    runs: tuple[ListedRun, ...]
    more: bool


class RunData(msgspec.Struct, frozen=True, kw_only=True):
    """A run; ``people`` and ``calibration`` are null if missing. Further fields exist."""

    run_id: str
    status: str
    suite: str
    summary: Json
    gates: list[Json]
    review: Json
    planned: int
    people: Json | None
    calibration: Json | None


class LiveProgress(msgspec.Struct, frozen=True, kw_only=True):
    """How far along a run is; ``version`` changes when anything does."""

    status: str
    samples: int
    planned: int
    version: str


class ReviewList(msgspec.Struct, frozen=True, kw_only=True):
    """Reviews, in the order in which they were made."""

    reviews: tuple[Json, ...]


class ComparisonData(msgspec.Struct, frozen=True, kw_only=True):
    """Two runs compared, with the first 50 of the samples that changed. Further fields exist."""

    a: Json
    b: Json
    identical: bool | None
    metrics: list[Json]
    tested: list[Json]
    counts: Json
    samples: list[Json]


class FoundSample(msgspec.Struct, frozen=True, kw_only=True):
    """A sample in a list."""

    number: int
    id: str
    repeat: int
    flags: tuple[str, ...]
    urgency: int
    scenario: str | None
    demographic: str | None
    winner: str | None
    metrics: dict[str, float]


class FoundSamples(msgspec.Struct, frozen=True, kw_only=True):
    """A page of matching samples; ``total`` counts all matches."""

    samples: tuple[FoundSample, ...]
    total: int


class SampleData(msgspec.Struct, frozen=True, kw_only=True):
    """A sample, with the fields that `jurybox export` writes."""

    run_id: str
    number: int
    id: str
    repeat: int
    task: str
    record_sha256: str


class Exchanges(msgspec.Struct, frozen=True, kw_only=True):
    """The requests to models and their replies."""

    exchanges: list[Json]


class RunsAsked(BaseModel):
    """The requested part of the list of runs."""

    offset: Offset = 0
    limit: Limit = 50


class ComparisonAsked(BaseModel):
    """The two runs to compare."""

    a: Annotated[str, Field(min_length=1, max_length=200, pattern=ANY_TEXT)]
    b: Annotated[str, Field(min_length=1, max_length=200, pattern=ANY_TEXT)]


@router.get("/session", responses=answers(CsrfToken))
def session(request: Request) -> Response:
    """Return the CSRF token for the header `X-Jurybox-CSRF`."""
    return json_response(CsrfToken(csrf=csrf_of(request)))


@router.get("/runs", responses=answers(RunList))
def runs(asked: Annotated[RunsAsked, Query()], place: PlaceOf) -> Response:
    """Return the runs of the store, the newest first."""
    rows = place.store.runs(asked.offset + asked.limit + 1)[asked.offset :]
    listed = tuple(listed_run(row, place.store) for row in rows[: asked.limit])
    return json_response(RunList(runs=listed, more=len(rows) > asked.limit))


@router.get("/runs/{run}", responses=answers(RunData))
def run(run: TheRun, place: PlaceOf) -> Response:
    """Return a run with its metrics, gates and decision, as `jurybox show --json` prints it."""
    view = view_run(run, place.store)
    people = place.agreement(run).result()
    data = {
        **view.as_data(),
        **verdict_as_data(view, verdict_of(view, people)),
        "people": None if people is None else people.as_data(),
        "calibration": calibration_as_data(view, place.store),
    }
    return json_response(data)


@router.get("/runs/{run}/progress", responses=answers(LiveProgress))
def progress(run: TheRun, place: PlaceOf) -> Response:
    """Return the progress of a run; cheap enough to poll every few seconds."""
    status, samples, planned = run.status, plan_of(run).samples, plan_of(run).samples
    if status != "finished":
        status = "running" if is_running(run, place.store) else "stopped"
        samples = sum(1 for _ in place.store.numbers(run.id))
    version = f"{status}-{samples}"
    return json_response(
        LiveProgress(status=status, samples=samples, planned=planned, version=version)
    )


@router.get("/runs/{run}/reviews", responses=answers(ReviewList))
def reviews(run: TheRun, place: PlaceOf) -> Response:
    """Return the reviews of a run's samples, in chronological order."""
    rows = place.store.reviews(run.id)
    return json_response(ReviewList(reviews=tuple(map(_review_data, rows))))


@router.get("/comparison", responses=answers(ComparisonData))
def comparison(asked: Annotated[ComparisonAsked, Query()], place: PlaceOf) -> Response:
    """Return two runs compared, as `jurybox diff --json` prints it."""
    one, other = known_run(place, asked.a), known_run(place, asked.b)
    return json_response(place.comparison(one, other).result().as_data())


@router.get("/rubrics", responses=answers(History))
def rubrics(place: PlaceOf) -> Response:
    """Return the versions of rubrics that the runs of the store were judged by."""
    return json_response(rubric_history(place.store))


@router.get("/runs/{run}/samples", responses=answers(FoundSamples))
def samples(run: TheRun, asked: Annotated[ListFilter, Query()], place: PlaceOf) -> Response:
    """Return the matching samples of a run."""
    asked.is_ready(place, run, None)
    page = asked.find(place.store, run, offset=asked.offset, limit=asked.limit)
    try:
        found = FoundSamples(samples=tuple(map(_found, page.rows)), total=page.total)
    except msgspec.DecodeError as error:
        raise damaged(run, error) from None
    return json_response(found)


@router.get("/runs/{run}/samples/{number}", responses=answers(SampleData))
def sample(run: TheRun, record: TheRecord, place: PlaceOf) -> Response:
    """Return a sample, as `jurybox export` writes it."""
    data = record_as_data(record, run, place.store, raw=False)
    return json_response({"number": record.row.number, **data})


@router.get("/runs/{run}/samples/{number}/exchanges", responses=answers(Exchanges))
def exchanges(run: TheRun, record: TheRecord, place: PlaceOf) -> Response:
    """Return the stored requests and replies of a sample."""
    return json_response({"exchanges": record_as_data(record, run, place.store)["exchanges"]})


def _review_data(row: ReviewRow) -> Json:
    data: Json = msgspec.structs.asdict(row)
    try:
        return data | {"verdict": msgspec.json.decode(row.verdict)}
    except msgspec.DecodeError:
        return data


def _found(row: Facets) -> FoundSample:
    data = msgspec.structs.asdict(row) | {"id": row.sample_id, "metrics": row.values()}
    return msgspec.convert(data | {"flags": flag_names(row.flags)}, FoundSample)
