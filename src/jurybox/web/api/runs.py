"""Runs, comparisons and rubrics for programs."""

from typing import Any, Final

import msgspec

from jurybox.reporting.run_list import ListedRun, listed_run
from jurybox.running.records import ReviewRow
from jurybox.web.api.registry import RUN, Call, Endpoint
from jurybox.web.filters import LIMIT, OFFSET
from jurybox.web.pages.finding import known_run
from jurybox.web.pages.rubrics import History, rubric_history
from jurybox.web.parameters import Parameter
from jurybox.wiring.calibrations import standing_as_data, standing_of
from jurybox.wiring.live import Progress

_NAMES: Final = {"run": RUN}
_TEXT: Final = {"type": "string"}
_OBJECT: Final = {"type": "object"}
_LIST: Final = {"type": "array", "items": _OBJECT}


class RunList(msgspec.Struct, frozen=True, kw_only=True):
    """Runs, the newest first; ``more`` says that there are older ones."""

    runs: tuple[ListedRun, ...]
    more: bool


class ReviewList(msgspec.Struct, frozen=True, kw_only=True):
    """Reviews, in the order in which they were made."""

    reviews: tuple[dict[str, Any], ...]


def _runs(call: Call) -> RunList:
    store, offset, limit = call.place.store, call.query["offset"], call.query["limit"]
    rows = store.runs(offset + limit + 1)[offset:]
    listed = tuple(listed_run(row, store) for row in rows[:limit])
    return RunList(runs=listed, more=len(rows) > limit)


def _run(call: Call) -> dict[str, Any]:
    run = known_run(call.place, call.path["run"])
    view = call.place.live.view(run)
    people = call.place.standings.of(run)
    return {
        **view.as_data(),
        "people": None if people is None else people.as_data(),
        "calibration": standing_as_data(standing_of(view, call.place.store)),
    }


def _progress(call: Call) -> Progress:
    return call.place.live.progress(known_run(call.place, call.path["run"]))


def _comparison(call: Call) -> dict[str, Any]:
    one, other = (known_run(call.place, call.query[name]) for name in ("a", "b"))
    return call.place.comparisons.of(one, other).as_data()


def _rubrics(call: Call) -> History:
    return rubric_history(call.place.store)


def _reviews(call: Call) -> ReviewList:
    run = known_run(call.place, call.path["run"])
    return ReviewList(reviews=tuple(map(review_as_data, call.place.store.reviews(run.id))))


def review_as_data(row: ReviewRow) -> dict[str, Any]:
    """Return a review as programs get it."""
    told: dict[str, Any] = msgspec.structs.asdict(row)
    try:
        return told | {"verdict": msgspec.json.decode(row.verdict)}
    except msgspec.DecodeError:
        return told


_FARTHEST: Final = {**OFFSET.schema, "maximum": 1_000_000}

ENDPOINTS: Final = (
    Endpoint(
        path="/runs",
        name="runs",
        about="The runs of the store, the newest first.",
        answer=_runs,
        gives=RunList,
        query=(msgspec.structs.replace(OFFSET, schema=_FARTHEST), LIMIT),
        missing=False,
    ),
    Endpoint(
        path="/runs/{run}",
        name="run",
        about="A run with its figures, gates and decision, as `jurybox show --json` prints it.",
        answer=_run,
        gives={
            "type": "object",
            "required": ["run_id", "status", "suite", "summary", "gates", "review", "planned"],
            "properties": {
                "run_id": _TEXT,
                "status": {"enum": ["running", "stopped", "finished"]},
                "suite": _TEXT,
                "summary": _OBJECT,
                "gates": _LIST,
                "review": _OBJECT,
                "planned": {"type": "integer"},
                "people": {"type": ["object", "null"]},
                "calibration": {"type": ["object", "null"]},
            },
        },
        names=_NAMES,
    ),
    Endpoint(
        path="/runs/{run}/progress",
        name="progress",
        about="How far a run has come; cheap enough to be asked every few seconds.",
        answer=_progress,
        gives=Progress,
        names=_NAMES,
    ),
    Endpoint(
        path="/runs/{run}/reviews",
        name="reviews",
        about="What people said of a run's samples, in the order in which they said it.",
        answer=_reviews,
        gives=ReviewList,
        names=_NAMES,
    ),
    Endpoint(
        path="/comparison",
        name="comparison",
        about="Two runs held against each other, as `jurybox diff --json` prints it; of the"
        " samples that changed, the first 50.",
        answer=_comparison,
        gives={
            "type": "object",
            "required": ["a", "b", "identical", "figures", "tested", "counts", "samples"],
            "properties": {
                "a": _OBJECT,
                "b": _OBJECT,
                "identical": {"type": ["boolean", "null"]},
                "figures": _LIST,
                "tested": _LIST,
                "counts": _OBJECT,
                "samples": _LIST,
            },
        },
        query=(
            Parameter(name="a", schema=RUN, about="The first run.", needed=True),
            Parameter(name="b", schema=RUN, about="The second run.", needed=True),
        ),
    ),
    Endpoint(
        path="/rubrics",
        name="rubrics",
        about="The versions of rubrics that the runs of the store were judged by.",
        answer=_rubrics,
        gives=History,
        missing=False,
    ),
)
