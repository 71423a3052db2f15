"""The table of a run's samples, which the store searches, sorts and pages."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from typing import Annotated, Any, Final

import msgspec
from fastapi import Query
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from jurybox.documents.numbers import decimals_of, metric_value, short
from jurybox.engine.records import Facets, RunRow
from jurybox.reporting.attention import UNREMARKABLE, SampleCard, card
from jurybox.reporting.judge_votes import judge_replies
from jurybox.reporting.release import REVIEW_STATES, asked_reasons, read_reviews
from jurybox.reporting.stored import SampleRecord, damaged, rubric_of, run_title
from jurybox.review.reviews import Review, by_number
from jurybox.rubric.metrics import SAMPLE_SCORE, Comparison
from jurybox.scoring.sample_result import FLAGS, KINDS, MARKS, NEEDS_REVIEW, unmet
from jurybox.storage.sample_search import SamplePage, SampleQuery
from jurybox.storage.store import Store
from jurybox.text_format import cut
from jurybox.web.filters import SIZE, PageFilter, option
from jurybox.web.lookup import PlaceOf, TheRun
from jurybox.web.pages.sample_page import people_on, texts_of
from jurybox.web.template_engine import excerpt, page_response, segment, waiting_page

_MOST_COLUMNS: Final = 8
_LATENCY: Final = "latency_e2e_ms"
_LONGEST: Final = 140


class SampleLine(msgspec.Struct, frozen=True, kw_only=True):
    """A sample in the table; without a card if it can't be read."""

    facets: Facets
    address: str
    metrics: dict[str, float]
    card: SampleCard | None = None
    people: Mapping[str, Sequence[float | str]] = {}
    fails: frozenset[str] = frozenset()  # the metrics whose pass rules fail
    elsewhere: tuple[str, str] = ("", "")  # a field with the searched words that the row lacks


def samples_page(
    request: Request, run: TheRun, asked: Annotated[PageFilter, Query()], place: PlaceOf
) -> Response:
    """Answer with a page of the matching samples."""
    store, rubric = place.store, rubric_of(run)
    first = (asked.page - 1) * SIZE
    if not asked.is_ready(place, run):
        title = f"Searching for {cut(asked.search or '', _LONGEST)}"
        return waiting_page(request, title, "All texts of this run are being read.")
    found = asked.find(store, run, offset=first, limit=SIZE)
    base = f"/runs/{segment(run.id)}/samples"
    if not found.rows and found.total:
        last = (found.total - 1) // SIZE + 1
        return RedirectResponse(base + asked.address(page=last), 303)
    try:
        rows = list(_lines(store, run, found.rows, asked, first))
        there = {name for row in found.rows for name in row.values()}
        if rubric.overall_name not in there:
            # Every page has the columns of a sample with scores, and the form offers its metrics.
            best = SampleQuery(sort=f"metric:{rubric.overall_name}", descending=True, limit=1)
            there.update(*(row.values() for row in store.find_samples(run.id, best).rows))
    except msgspec.DecodeError as error:
        raise damaged(run, error) from None
    criteria = [each.id for each in rubric.criteria]
    scores = [SAMPLE_SCORE, rubric.overall_name, *criteria]
    columns = [name for name in scores if name in there][:_MOST_COLUMNS]
    # Latency is a column if it is asked for, if a sample's result uses it, or where there is room.
    components = (each.of for each in rubric.components.values())
    used = {*components, *(each.name for each in rubric.pass_rules), asked.metric}
    used.add(asked.sort.removeprefix("metric:"))
    if _LATENCY in there and (_LATENCY in used or len(columns) < _MOST_COLUMNS // 2):
        columns.append(_LATENCY)
    voted = sorted(name for name in there if "." in name)
    # What is asked for is chosen in the form, even if no shown sample has it.
    offered = there | {asked.metric}
    measures = (*scores, "judge_score", _LATENCY, "total_tokens", *voted, asked.metric)
    data: dict[str, Any] = {
        "title": f"Samples of {run_title(run, place.store)[:80]}",
        "run": run,
        "base": base,
        "asked": asked,
        "values": asked.model_dump(exclude_none=True),
        "rows": rows,
        "total": found.total,
        "first": first,
        "page": asked.page,
        "more": first + len(rows) < found.total,
        "columns": columns,
        # As many as the longest number of a column needs, so that points are below each other.
        "decimals": {
            name: max(
                decimals_of(short(each) if name in criteria else metric_value(name, each))
                for each in [0, *(row.metrics.get(name) for row in rows)]
            )
            for name in columns
        },
        "compared": any(row.facets.winner for row in rows),
        "rubric": rubric,
        "overall": rubric.overall_name,
        "names": [name for name in dict.fromkeys(measures) if name and name in offered],
        "unknown": {} if found.rows else _unknown(store, run, asked),
        "flags": {name: kind.meaning for name, kind in (KINDS | MARKS).items()},
        "review_states": REVIEW_STATES,
        "others": [*asked.in_words(rubric)],
        **_facets(store, run, asked, found),
        "groups": _groups(store, run, asked),
        "option": option,
    }
    return page_response(request, "samples.html", data)


def _facets(store: Store, run: RunRow, asked: PageFilter, found: SamplePage) -> dict[str, Any]:
    """Count the matching samples with each flag, and those to be reviewed or already reviewed."""

    def count(**changes: Any) -> int:  # noqa: ANN401 - whatever a field may be
        return asked.model_copy(update=changes).find(store, run, offset=0, limit=0).total

    # Moderate confidence is named where there are several votes, of which one may be lost.
    hidden = {*UNREMARKABLE, "split"} - (
        {"moderate_confidence"} if found.flags.get("split") else set()
    )
    counts = {name: found.flags[name] for name in found.flags if name not in hidden}
    states = {"open": counts.pop(NEEDS_REVIEW, 0), "done": 0}
    repair = bool(asked_reasons(run))
    if asked.review is not None or repair:
        states["open"] = count(review="open")
    if asked.review is not None or any(map(found.flags.get, rubric_of(run).require_review)):
        states["awaiting"] = count(review="awaiting")
    if store.review_state(run.id):
        states["done"] = count(review="done")
        if asked.review is None and not repair:
            # Few samples are settled by reviews, so counting these is faster than counting open
            # ones.
            states["open"] -= count(review="done", flag=[*asked.flag, NEEDS_REVIEW])
        states |= {
            name: count(review=name) for name in ("confirmed", "disputed", "dismissed", "unflagged")
        }
        if asked.review in states:
            counts = {name: count(flag=[*asked.flag, name]) for name in counts}
    counts |= dict.fromkeys(asked.flag, found.total)
    if repair and "unscored" in asked.flag:
        states["open"] = 0  # they wait for a judge, not for a person
    return {
        "repair": repair,
        "counts": {name: counts[name] for name in FLAGS if counts.get(name) or name in asked.flag},
        "states": {name: number for name, number in states.items() if number},
    }


def _groups(store: Store, run: RunRow, asked: PageFilter) -> dict[str, list[str]]:
    """Return what can be chosen under the other filters, and what is chosen."""
    query = asked.query_for(store, run)
    found = store.groups(run.id, query)
    return {
        "scenario": sorted({*found.scenarios, *filter(None, [query.scenario])}),
        "demographic": sorted({*found.demographics, *filter(None, [query.demographic])}),
    }


def _unknown(store: Store, run: RunRow, asked: PageFilter) -> dict[str, str]:
    """Return the names in a filter that no sample of the run has, by their kind."""
    query = asked.query_for(store, run)
    names = {kind: getattr(query, kind) for kind in ("scenario", "demographic", "metric")}
    return {
        kind: name
        for kind, name in names.items()
        if name and not store.find_samples(run.id, SampleQuery(**{kind: name}, limit=0)).total
    }


def _lines(
    store: Store, run: RunRow, found: Sequence[Facets], asked: PageFilter, first: int
) -> Iterator[SampleLine]:
    rubric, numbers = rubric_of(run), [row.number for row in found]
    samples = store.samples_of(run.id, numbers)
    reviews = by_number(read_reviews(run, store.reviews_of(run.id, *numbers)).every)
    for at, row in enumerate(found, start=first):
        address = f"/runs/{segment(run.id)}/samples/{row.number}{asked.address(at=at)}"
        line = SampleLine(facets=row, address=address, metrics=row.values())
        # `verify` reports what can't be read.
        with suppress(msgspec.DecodeError, LookupError):
            if row.number in samples:
                record, own = SampleRecord(samples[row.number]), reviews.get(row.number, ())
                line = msgspec.structs.replace(
                    line,
                    elsewhere=_elsewhere(store, record, own, asked.search),
                    people=people_on((each.id for each in rubric.criteria), own),
                    card=card(record, rubric, "", own),
                    fails=frozenset(
                        Comparison.parse(each.rule).name for each in unmet(record.result)
                    ),
                )
        yield line


def _elsewhere(
    store: Store, record: SampleRecord, reviews: Iterable[Review], wanted: str
) -> tuple[str, str]:
    """Return a field with the searched words, and an excerpt, if no column shows the words."""
    folded = wanted.casefold()
    shown = (record.row.sample_id, record.task, record.response)
    if not any(folded in text.casefold() for text in shown):
        row = record.row
        said = [(each.reviewer, each.comment) for each in reviews]
        said += [("reviewer", each.reviewer) for each in reviews]
        replies = judge_replies(store.exchanges_of(row.run_id, row.number))
        for name, text in chain(texts_of(record, 0), said, replies):
            if folded in text.casefold():
                return name.replace("-", " "), excerpt(text, wanted)
    return "", ""
