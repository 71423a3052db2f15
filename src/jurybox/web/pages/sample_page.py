"""The page of one sample: its texts, scores and reasons."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Annotated, Any, Final, Literal
from urllib.parse import urlencode

import msgspec
from fastapi import Query
from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from jurybox.documents.numbers import exact, metric_value, rounding_misleads, short
from jurybox.engine.records import (
    ExchangeRow,
    ReviewRow,
    RunRow,
    SampleRow,
    read_outcome,
    read_request,
)
from jurybox.judging.flow import Failure, ModelReply, ModelRequest
from jurybox.reporting.judge_votes import opinions_of, votes_on, warnings_of
from jurybox.reporting.metric_text import metric_title, plain_words, required_value, ruled_title
from jurybox.reporting.reasons import why_unsure
from jurybox.reporting.release import read_reviews, sample_decision, settled_words
from jurybox.reporting.run_changes import ChangeFilter
from jurybox.reporting.stored import (
    SampleRecord,
    exchange_notes,
    outcome_of,
    plan_of,
    procedure_of,
    reading,
    rubric_of,
)
from jurybox.review.reviews import REVIEW, ActiveReviews, Review, active_rows, read_review
from jurybox.rubric.document.criteria import scenario_texts
from jurybox.rubric.metrics import Comparison
from jurybox.rubric.rubric_model import Rubric
from jurybox.sample import Response as Answered
from jurybox.scoring.evaluate_sample import demographic_of
from jurybox.scoring.sample_result import KINDS, RuleOutcome
from jurybox.storage.store import Store
from jurybox.text_format import cut, short_id, verb
from jurybox.web.app_state import AppState, Pending, soon
from jurybox.web.error_pages import PageError
from jurybox.web.filters import SIZE, PageFilter
from jurybox.web.lookup import PlaceOf, TheRecord, TheRun, known_run
from jurybox.web.pages.compare_page import beside_query, list_query, runs_side_by_side
from jurybox.web.template_engine import page_of, page_response, segment, text_response

_MOST_EXCHANGES: Final = 60
_LONGEST_REPLY: Final = 200
_MARKED: Final = 12_000  # comparing longer texts would take too long


class Way(msgspec.Struct, frozen=True, kw_only=True):
    """Where to go from a sample; ``place`` is its position in the filtered list, from 1."""

    previous: str | None = None
    next: str | None = None
    then: int | None = None  # the number of the next sample, if it is in the same run
    place: int = 0
    total: int = 0
    what: str = ""  # which samples of a comparison the list has
    query: str = ""
    origin: str = "the list"  # the page that it was opened from
    back: str = ""  # the address of its row there
    here: str = ""  # the query of its own address


class SampleAddress(PageFilter):
    """Where a sample was opened from: a list, the agreement page, a comparison, or several runs."""

    agreement: bool = False
    a: str = ""
    b: str = ""
    change: Literal[ChangeFilter, ""] = ""
    beside: list[str] = Field([], max_length=8)

    def way(self, place: AppState, run: RunRow, row: SampleRow) -> Way:
        """Return where to go from a sample."""
        found = self._beside(place, run, row) or _listed(place, run, row.number, self)
        listed = f"/runs/{segment(run.id)}/samples{found.query}#row-{row.number}"
        origin, back = self._origin(place.store, run, row) or ("the list", listed)
        # Reviews may have moved it in the list.
        at = self.at if self.at is None or not found.place else found.place - 1
        here = self.address(at=at, page=self.page)
        return msgspec.structs.replace(found, origin=origin, back=back, here=here)

    def _origin(self, store: Store, run: RunRow, row: SampleRow) -> tuple[str, str] | None:
        """Return the name of the page and the address of the sample's row; None for a list."""
        if self.agreement:
            part: dict[str, Any] = {"part": self.review} if self.review else {}
            if self.differs not in {None, "any"}:
                part["criterion"] = metric_title(self.differs or "", rubric_of(run))
            part |= {"people": str(self.people_differ).lower(), "sample": row.number}
            base = f"/runs/{segment(run.id)}/review/agreement"
            return "agreement", f"{base}?{urlencode(part)}#row-{row.number}"
        # Of several runs, only the first has every sample.
        listed, place = (self.beside[0], "first") if self.beside else (self.b, "row")
        found = store.find_sample(listed, row.sample_id, row.repeat) if listed else None
        anchor = "" if found is None else f"#{place}-{found.number}"
        if self.beside:
            query = beside_query(self.beside, self.page, called="run")
            return "the comparison", f"/side-by-side?{query}{anchor}"
        query = list_query(self.a, self.b, self.change, self.page)
        return ("the comparison", f"/compare?{query}{anchor}") if self.a and self.b else None

    def _beside(self, place: AppState, run: RunRow, row: SampleRow) -> Way | None:
        """Return a sample's neighbors in the list of a comparison; None if it isn't there."""
        runs = self.beside or [self.a, self.b]
        if run.id not in runs or not all(runs):
            return None
        if self.beside:
            made = soon(runs_side_by_side(place, runs))
            every = () if isinstance(made, Pending) else made.samples
            apart = sum(each.differs for each in every)  # the others come last
        else:
            diff = soon(place.comparison(*(known_run(place, each) for each in runs)))
            every = () if isinstance(diff, Pending) else diff.listed_changes(self.change or None)
            apart = len(every)
        keys = [(each.id, each.repeat) for each in every]
        if (row.sample_id, row.repeat) not in keys:
            return None
        here = keys.index((row.sample_id, row.repeat))
        first, end = (0, apart) if here < apart else (apart, len(keys))
        what = "listed" if not self.beside else "with the same result" if first else "that differ"

        def near(at: int) -> SampleRow | None:
            if not 0 <= at < len(keys):
                return None
            # The first of several runs has all samples, this one maybe not.
            found = (place.store.find_sample(each, *keys[at]) for each in (run.id, runs[0]))
            return next(filter(None, found), None)

        def link(at: int) -> str | None:
            found = near(at)
            query = beside_query(runs, page_of(at))
            if not self.beside:
                query = list_query(self.a, self.b, self.change, page_of(at))
            return found and f"/runs/{segment(found.run_id)}/samples/{found.number}?{query}"

        following = near(here + 1)
        return Way(
            previous=link(here - 1),
            next=link(here + 1),
            then=following.number if following and following.run_id == run.id else None,
            place=here - first + 1,
            total=end - first,
            what=what,
        )


_ORIGIN: Final = SampleAddress.model_fields.keys() - PageFilter.model_fields.keys()


def sample_page(
    request: Request,
    run: TheRun,
    record: TheRecord,
    asked: Annotated[SampleAddress, Query()],
    place: PlaceOf,
) -> Response:
    """Answer with a sample."""
    rubric, number = rubric_of(run), record.row.number
    with reading(run):
        texts = dict(texts_of(record, _MOST_EXCHANGES))
        exchanges = [_exchange(each) for each in record.exchanges[:_MOST_EXCHANGES]]
        procedure = procedure_of(run)
        votes = votes_on(procedure, record)
    own = procedure.overlays.get(demographic_of(record.inputs) or "", procedure)
    responses = _responses(record)
    titles = {each.id: each.name for each in rubric.criteria}
    overall = record.scores.get(rubric.overall_name)
    scenario = record.inputs.scenario
    review_rows = place.store.reviews_of(run.id, number)
    active = read_reviews(run, review_rows)
    reviews = active.every
    warnings = warnings_of(record, _MOST_EXCHANGES)
    reasons = {name: kind.meaning for name, kind in KINDS.items()}
    if record.report is not None:
        reasons["low_confidence"] = why_unsure(record.report, titles)
        judges, worried = len(record.report.judges), len({*chain(*warnings.values())})
        if worried and judges > 1 and len(record.exchanges) <= _MOST_EXCHANGES:
            reasons["safety"] = f"{worried} of {judges} judges {verb(worried, 'see')} a danger"

    data: dict[str, Any] = {
        "title": f"Sample {short_id(record.row.sample_id)}",
        "run": run,
        "record": record,
        "base": f"/runs/{segment(run.id)}/samples/{number}",
        "around": asked.way(place, run, record.row),
        "texts": texts,
        "wanted": asked.search,
        "scenario": scenario_texts(rubric).get(scenario or "", scenario),
        "responses": responses,
        "reasons": reasons,
        "required": () if _is_accepted(run) else rubric.require_review,
        "titles": titles,
        "criteria": {each.id: each for each in own.judging.rubric.criteria},
        "people": people_on(titles, reviews),
        "overall": None if overall is None else metric_value(rubric.overall_name, overall),
        "rules": [*_rules(record, rubric)],
        "measures": [*_measures(record, rubric)],
        "decision": _decision(rubric, record, reviews),
        "reviewed": settled_words(record.result.review_reasons, reviews),
        "replies": _replies(record),
        "warnings": warnings,
        "exchanges": exchanges,
        "opinions": opinions_of(votes),
        "votes": votes,
        "further": max(0, len(record.exchanges) - _MOST_EXCHANGES),
        "reviews": list(_described(review_rows, active, titles)),
    }
    return page_response(request, "sample.html", data)


def _is_accepted(run: RunRow) -> bool:
    """Return whether the run's samples were accepted without their required review."""
    return run.status == "finished" and outcome_of(run).accepted is not None


def sample_text(run: TheRun, record: TheRecord, part: str) -> Response:
    """Answer with the full text of one field of a sample, as plain text."""
    with reading(run):
        texts = dict(texts_of(record))
    if part not in texts:
        raise PageError(404)
    return text_response(texts[part])


def _exchange(row: ExchangeRow) -> dict[str, Any]:
    outcome, request = read_outcome(row), read_request(row)
    latency = exchange_notes(row).latency_ms if outcome.latency_ms is None else outcome.latency_ms
    return {
        "role": row.role,
        "model": request.model,
        "latency_ms": latency,
        "roles": [turn.role for turn in request.messages],
        "cached": isinstance(outcome, ModelReply) and outcome.cached,
        "failed": isinstance(outcome, Failure),
    }


def _replies(record: SampleRecord) -> dict[str, list[int]]:
    """Return the distinct starts of judges' replies, each with the positions of its exchanges."""
    found: dict[str, list[int]] = {}
    for place, row in enumerate(record.exchanges[:_MOST_EXCHANGES], start=1):
        if row.role == "judge":
            outcome = read_outcome(row)
            said = "" if isinstance(outcome, Failure) else cut(outcome.text, _LONGEST_REPLY)
            found.setdefault(said, []).append(place)
    return found


class ComparedText(msgspec.Struct, frozen=True, kw_only=True):
    """A response, how much of it is shown, and the part that its words are compared with."""

    name: str
    response: Answered
    part: str = "response"
    most: int = 6000
    beside: str = ""


def _responses(record: SampleRecord) -> list[ComparedText]:
    first, second = record.responses.response, record.responses.response_b
    if second is None:
        return [ComparedText(name="Response", response=first)]
    short = max(len(first.text), len(second.text)) <= _MARKED
    a, b = "response", "response-b"
    return [
        ComparedText(name=name, response=each, part=part, most=_MARKED, beside=other * short)
        for name, each, part, other in (("Response A", first, a, b), ("Response B", second, b, a))
    ]


def people_on(
    criteria: Iterable[str], reviews: Sequence[Review]
) -> Mapping[str, Sequence[float | str]]:
    """Return people's scores on each criterion, and their winners under an empty one."""
    given = [each.verdict for each in reviews]
    return {
        name: [score for each in given if (score := each.scores.get(name)) is not None]
        for name in criteria
    } | {"": [each.winner for each in given if each.winner is not None]}


def _rules(record: SampleRecord, rubric: Rubric) -> Iterator[tuple[str, str, str, RuleOutcome]]:
    """Yield each pass rule: its metric's title, what it requires, and the value as text."""
    criteria = {each.id for each in rubric.criteria}
    for each in record.result.rules:
        rule, value = Comparison.parse(each.rule), each.value
        if value is not None and rounding_misleads(value, rule.number):
            text = exact(value)
        else:
            text = short(value) if rule.name in criteria else metric_value(rule.name, value)
        yield ruled_title(rule.name, rubric), required_value(rule), text, each


def _measures(record: SampleRecord, rubric: Rubric) -> Iterator[tuple[str, str, str]]:
    """Yield the name, title and value of each metric that the page doesn't show elsewhere."""
    elsewhere = {rubric.overall_name, *(each.id for each in rubric.criteria)}
    for name, value in {**record.result.metrics, **record.result.components}.items():
        if value is not None and name not in elsewhere:
            whole = name == "total_score" or name.endswith("_tokens")
            text = short(value) if whole else metric_value(name, value)
            yield name, metric_title(name, rubric), text


def _decision(rubric: Rubric, record: SampleRecord, reviews: Sequence[Review]) -> str | None:
    decision = sample_decision(rubric, record.result, reviews)
    meanings = {each.decide: each.meaning for each in rubric.sample_decisions}
    meaning, word = meanings.get(decision or ""), plain_words(decision or "")
    return f"{word}: {meaning}" if meaning else word or None


def _described(
    rows: Sequence[ReviewRow], active: ActiveReviews, titles: Mapping[str, str]
) -> Iterator[tuple[ReviewRow, str, str]]:
    """Yield each review with its verdict in words, and whether it counts for agreement."""
    kept, counted = active_rows(rows), {each.id: each.verdict for each in active.blind}
    before: set[str] = set()  # who has reviewed it already, and was shown the judge's verdict
    for row in rows:
        if row.action != REVIEW:
            yield row, "(takes a review back)", ""
        elif row.id in counted:
            verdict = counted[row.id]
            yield row, verdict.in_words(titles), "yes" if verdict.is_label else "no: unclear"
        elif row not in kept:
            yield row, _verdict(row, titles), "no: taken back"
        else:
            shown = read_review(row).shown
            picked = shown.queue == "picked" and row.reviewer not in before
            why = "picked, not given by a queue" if picked else "after seeing the judge"
            yield row, _verdict(row, titles), f"no: {'replaced' if shown.blind else why}"
        before.add(row.reviewer)


def _verdict(row: ReviewRow, titles: Mapping[str, str]) -> str:
    """Describe a reviewer's verdict in words."""
    try:
        return read_review(row).verdict.in_words(titles)
    except msgspec.DecodeError:
        return "can't be read"


def _listed(place: AppState, run: RunRow, number: int, asked: PageFilter) -> Way:
    """Return a sample's neighbors in the filtered list, or by number if it isn't in one."""
    store, first, total = place.store, 0, 0
    numbers: Sequence[int] = ()
    page_number = None if asked.at is None else asked.at // SIZE + 1
    if asked.at is not None and asked.is_ready(place, run):
        first = max(0, asked.at - 1)
        page = asked.find(store, run, offset=first, limit=4)  # one more, as a review may move it on
        numbers, total = [row.number for row in page.rows], page.total
    listed, here, gone = True, asked.at or 0, False
    if number in numbers:
        here = first + numbers.index(number)
    elif numbers:
        gone = True  # perhaps because it was reviewed; the next one has its position
    else:
        listed, here, first, total = False, number, number - 1, plan_of(run).samples
        numbers = range(number - 1, number + 2)

    def near(at: int) -> int | None:
        found = numbers[at - first] if 0 <= at - first < len(numbers) else None
        return None if found is None or store.sample(run.id, found) is None else found

    def link(at: int) -> str | None:
        found = near(at)
        if found is None:
            return None
        here = asked.address(at=at) if listed else asked.address(page=page_number)
        return f"/runs/{segment(run.id)}/samples/{found}{here}"

    return Way(
        previous=link(here - 1),
        next=link(here if gone else here + 1),
        then=near(here if gone else here + 1),
        place=0 if gone else here + 1,
        total=total,
        query=asked.address(page=page_number, **dict.fromkeys(_ORIGIN)),
    )


def pretty(text: str) -> str:
    """Return JSON with a line for each value; other texts are unchanged."""
    try:
        return msgspec.json.format(text.encode(errors="replace"), indent=2).decode()
    except (msgspec.DecodeError, RecursionError):
        return text


def texts_of(record: SampleRecord, most: int | None = None) -> Iterator[tuple[str, str]]:
    """Yield all texts of a sample by name, with the texts of at most ``most`` exchanges."""
    row = record.inputs
    yield "id", record.row.sample_id
    yield "task", row.task
    yield "context", row.context or ""
    yield "reference", row.reference or ""
    yield "metadata", pretty(msgspec.json.encode(row.metadata).decode())
    for place, turn in enumerate(row.messages):
        yield f"message-{place}", turn.content
    yield "response", record.responses.response.text
    if record.responses.response_b is not None:
        yield "response-b", record.responses.response_b.text
    if record.report is not None:
        for place, criterion in enumerate(record.report.criteria):
            yield f"reasoning-{place}", criterion.reasoning
        for side, scored in (record.report.responses or {}).items():
            for place, criterion in enumerate(scored.criteria):
                yield f"reasoning-{side}-{place}", criterion.reasoning
        yield (
            "checklist",
            "\n\n".join(f"{item}: {said}" for item, said in record.report.bias_checklist.items()),
        )
    for place, exchange in enumerate(record.exchanges[:most]):
        request = read_request(exchange)
        for number, turn in enumerate(request.messages):
            yield f"request-{place}-{number}", turn.content
        yield f"settings-{place}", _settings(request)
        yield f"request-{place}", exchange.request
        yield f"reply-{place}", pretty(_said(exchange))


def _settings(request: ModelRequest) -> str:
    """Return as JSON what was sent besides the messages."""
    kept = msgspec.to_builtins(request)
    kept = {name: kept[name] for name in kept if name not in {"messages", "frame", "shared"}}
    if request.schema is not None:
        kept["schema"] = msgspec.Raw(request.schema.encode())
    return pretty(msgspec.json.encode(kept).decode())


def _said(exchange: ExchangeRow) -> str:
    outcome = read_outcome(exchange)
    if isinstance(outcome, Failure):
        return f"{outcome.kind}: {outcome.message}"
    return outcome.text
