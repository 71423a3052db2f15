"""The query parameters that select samples, the same for pages and the API."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Annotated, Any, Final, Literal, Self, cast
from urllib.parse import urlencode

from msgspec.structs import replace
from pydantic import BaseModel, Field

from jurybox.app.view_run import view_run
from jurybox.calibration.gold import WINNER, gold_scales
from jurybox.documents.numbers import short
from jurybox.engine.records import RunRow
from jurybox.reporting.html.markdown_text import harmless
from jurybox.reporting.metric_text import metric_title
from jurybox.reporting.release import REVIEW_STATES, ReleaseReview, asked_reasons, read_reviews
from jurybox.reporting.review_text import ReviewAgreement
from jurybox.reporting.stored import rubric_of
from jurybox.rubric.metrics import PASSING_RATE, sample_metrics
from jurybox.rubric.rubric_model import Rubric
from jurybox.scoring.sample_result import FLAGS
from jurybox.storage.sample_search import LONGEST_SEARCH, MOST, Groups, SamplePage, SampleQuery
from jurybox.storage.store import Store
from jurybox.web.app_state import PATIENCE, AppState, Pending, soon
from jurybox.web.error_pages import PageError
from jurybox.web.lookup import ANY_TEXT

SIZE: Final = 50  # samples on a page
_MAX_NAME: Final = 300
_MAX_OFFSET: Final = 1_000_000_000
_DIGEST: Final = "sha256:"

_Name = Annotated[str, Field(min_length=1, max_length=_MAX_NAME, pattern=ANY_TEXT)]
_Flag = Annotated[str, Field(pattern=f"^({'|'.join(FLAGS)})$")]
_State = Annotated[str, Field(pattern=f"^({'|'.join(REVIEW_STATES)})$")]
_End = Annotated[float, Field(allow_inf_nan=False)]
_WORST: Final = "worst"
_PARTS: Final = ("random", "flagged")

Offset = Annotated[int, Field(ge=0, le=1_000_000, description="How many to skip at the beginning.")]
Limit = Annotated[int, Field(ge=1, le=MOST, description="How many are returned at most.")]


class SampleFilter(BaseModel):
    """The filters for samples; a sample must match all of them."""

    search: str = Field(
        "",
        max_length=LONGEST_SEARCH,
        pattern=ANY_TEXT,
        description="Text to find in the id, the inputs (including metadata), the responses, the"
        " judges' replies or the reviews; case-insensitive.",
    )
    flag: list[_Flag] = Field(
        [],
        max_length=20,
        description="Only samples with this flag. Repeat it to require several flags.",
    )
    scenario: _Name | None = Field(None, description="The scenario of the samples.")
    demographic: _Name | None = Field(None, description="The demographic of the samples.")
    winner: Literal["A", "B", "tie", "any"] | None = Field(
        None, description="The better response; `any` for all pairs with a result."
    )
    also_in: _Name | None = Field(
        None, description="The id of another run; only samples that it has too, by id and repeat."
    )
    metric: _Name | None = Field(
        None,
        description="The metric that `low`, `high`, `above` and `below` apply to. Default: the"
        " overall score.",
    )
    low: _End | None = Field(None, description="The metric's lowest value.")
    high: _End | None = Field(None, description="The metric's highest value.")
    above: _End | None = Field(None, description="A number that the metric's value is above.")
    below: _End | None = Field(None, description="A number that the metric's value is below.")
    sort: str = Field(
        "number",
        pattern=r"^(number|urgency|id|metric:[^\x00]{1,200})$",
        description="The sort order of the samples: `number`, `urgency`, `id` or `metric:NAME`.",
    )
    descending: bool = Field(
        default=False,
        description="Whether the highest come first; samples without the metric are always last.",
    )
    queued: bool = Field(default=False, description="Only samples that a person should review.")
    review: _State | None = Field(
        None,
        description="The state of the samples' review; `random` and `flagged` are the two parts of"
        " the agreement page.",
    )
    reviewer: _Name | None = Field(None, description="The name of a reviewer of the samples.")
    differs: _Name | None = Field(
        None,
        description="A criterion, or `winner`, on which the judge and people differ; `any` for any"
        " of them. Only blind reviews count, as on the agreement page.",
    )
    people_differ: bool = Field(
        default=False, description="With `differs`, only where people differ from each other too."
    )
    compared: _Name | None = Field(
        None, description="A criterion, or `winner`, that both people and the judge have labeled."
    )
    people: str = Field(
        "",
        max_length=_MAX_NAME,
        pattern=ANY_TEXT,
        description="With `compared`, the label that a person gave.",
    )
    judge: str = Field(
        "",
        max_length=_MAX_NAME,
        pattern=ANY_TEXT,
        description="With `compared`, the label that the judge gave.",
    )
    several: _Name | None = Field(
        None, description="A criterion, or `winner`, that several people have labeled."
    )
    _known: tuple[ReleaseReview, SampleQuery] | None = None
    _matching: str | None = None
    _compared: ReviewAgreement | None = None

    def chosen(self, groups: Callable[[], Groups]) -> Self:
        """Return the filter with group names in place of the digests that forms submit."""
        changes: dict[str, str] = {}
        for name, every in (("scenario", "scenarios"), ("demographic", "demographics")):
            given: str = getattr(self, name) or ""
            if given.startswith(_DIGEST):
                for each in getattr(groups(), every):
                    if option(each) == given:
                        changes[name] = each
        return self.model_copy(update=changes)

    def query(self, overall: str, **part: int) -> SampleQuery:
        """Return the query to the store; a range without a metric applies to the overall score."""
        values: dict[str, Any] = self.model_dump(include=_IN_QUERY) | part
        flags = tuple(values.pop("flag"))
        if self.metric is None and {self.low, self.high, self.above, self.below} != {None}:
            values["metric"] = overall
        return SampleQuery(**values, flags=flags)

    @property
    def _part(self) -> str | None:
        """The part of the agreement page, if the samples of one are wanted."""
        return self.review if self.review in _PARTS else None

    @property
    def _by_labels(self) -> bool:
        return bool(self._part or self.differs or self.compared or self.several)

    def is_ready(self, place: AppState, run: RunRow, patience: float | None = PATIENCE) -> bool:
        """Compare people with the judge, and search for the text; return whether it is finished."""
        self._refuse_unknown(place.store, run)
        if self._by_labels:
            self._compared = place.agreement(run).result()
        if self.search:
            matching = soon(place.matching(run, self.search), patience)
            self._matching = None if isinstance(matching, Pending) else matching
        return not self.search or self._matching is not None

    def _refuse_unknown(self, store: Store, run: RunRow) -> None:
        """Refuse a name that neither the rubric, a sample, a review nor a run has."""
        rubric = rubric_of(run)
        criteria = [each.id for each in rubric.criteria]
        known = sample_metrics(criteria, overall=rubric.overall_name, components=True)
        for where, name in (("metric", self.metric), ("sort", self.sort.partition("metric:")[2])):
            if name and name not in known:
                query = SampleQuery(metric=name, limit=0)
                if not store.find_samples(run.id, query).total:
                    refuse_unknown(where, name, known)
        labels = labeled(rubric)
        refuse_unknown("differs", self.differs, ("any", *labels))
        refuse_unknown("compared", self.compared, labels)
        refuse_unknown("several", self.several, labels)
        if self.reviewer:
            names = {each.reviewer for each in store.reviews(run.id)}
            refuse_unknown("reviewer", self.reviewer, sorted(names))
        if self.also_in and store.run(self.also_in) is None:
            raise PageError(400, "there is no such run", "look at the list of runs", "also_in")

    def find(self, store: Store, run: RunRow, *, offset: int, limit: int) -> SamplePage:
        """Return up to ``limit`` matching samples, starting at ``offset``."""
        return store.find_samples(run.id, self.query_for(store, run, offset=offset, limit=limit))

    def query_for(self, store: Store, run: RunRow, **part: int) -> SampleQuery:
        """Return the query to the store of a run, with its reviews."""
        asked = self.chosen(lambda: store.groups(run.id))
        rubric = rubric_of(run)
        query = asked.query(rubric.overall_name, **part)
        release, order = self._reviewed(store, run)
        changes: dict[str, Any] = {"concerned": order.concerned, "settled": release.calm}
        among = self._labeled(store, run)
        if self.sort == _WORST and self.differs:
            changes["sort"] = "among"
        elif self.sort == _WORST:
            changes["sort"] = order.sort
            changes["missing_first"] = order.missing_first and not self.descending
            changes["descending"] = order.descending != self.descending
        if self.review == "open":
            asked_for = () if "unscored" in self.flag else asked_reasons(run)
            done = release.done(*self.flag)
            changes |= {"queued": True, "without": done, "any_flags": asked_for}
        elif self.review == "awaiting" and rubric.require_review:
            changes |= {"any_flags": rubric.require_review, "without": release.cleared}
        elif self.review is not None and self._part is None:
            numbers = {
                "done": release.done(*self.flag),
                "confirmed": release.confirmed,
                "disputed": release.disputed,
                "dismissed": release.dismissed,
                "unflagged": release.unflagged,
                "reviewed": release.every,
            }.get(self.review, ())
            among = numbers if among is None else _both(among, numbers)
        if among is not None:
            changes["among"] = (*among,)
        return replace(query, matching=self._matching, **changes)

    def _labeled(self, store: Store, run: RunRow) -> Sequence[int] | None:
        """Return the samples with the wanted labels, farthest apart first; None if none are."""
        kept: Sequence[int] | None = None
        if self._by_labels:
            part, found = self._part, self._compared
            kept = [
                each.number
                for each in (() if found is None else found.reviewed)
                if (part in each.parts if part else each.parts)
                and (not self.several or len(each.people.get(self.several, ())) > 1)
                and (not self.compared or each.compares(self.compared, self.people, self.judge))
            ]
            if found is not None and self.differs:
                differing = (
                    each.number
                    for name, each in found.differences(*filter(None, [part]))
                    if self.differs in {"any", name} and (each.is_split or not self.people_differ)
                    if each.number is not None
                )
                kept = _both(dict.fromkeys(differing), kept)
        if self.reviewer:
            every = read_reviews(run, store.reviews(run.id)).every
            theirs = [each.number for each in every if each.reviewer == self.reviewer]
            kept = theirs if kept is None else _both(kept, theirs)
        return kept

    def in_words(self, rubric: Rubric) -> Iterator[tuple[str, dict[str, None]]]:
        """Yield each filter that isn't in the form, and what removes it from an address."""

        def on(name: str | None) -> str:
            own = name or rubric.overall_name
            return "the winner" if own == WINNER else metric_title(own, rubric)

        where = "" if self.differs == "any" else f" on {on(self.differs)}"
        labels = {"people": self.people, "the judge": self.judge}
        said = ", ".join(f"{who} {label}" for who, label in labels.items() if label)
        said = f"{on(self.compared)}: {said or 'people and the judge'}"
        filters = (
            (self.above is not None, f"{on(self.metric)} above {short(self.above)}", "above"),
            (self.below is not None, f"{on(self.metric)} below {short(self.below)}", "below"),
            (self.differs, f"people and the judge differ{where}", "differs", "people_differ"),
            (self.differs and self.people_differ, "people differ too", "people_differ"),
            (self.compared, said, "compared", "people", "judge"),
            (self.several, f"{on(self.several)}: several people", "several"),
            (self.reviewer, f"reviewed by {self.reviewer}", "reviewer"),
            (self.also_in, f"also in {self.also_in}", "also_in"),
            (self.queued, "flagged for review", "queued"),
        )
        for wanted, words, *names in filters:
            if wanted:
                yield words, dict.fromkeys(names)

    def _reviewed(self, store: Store, run: RunRow) -> tuple[ReleaseReview, SampleQuery]:
        """Return a run's reviews and its worst-first query, reading them once per page."""
        if self._known is None:
            rubric, release = rubric_of(run), ReleaseReview()
            self._known = release, release.worst_first(rubric.overall_name)
            scored = self.sort == _WORST and run.status == "finished" and rubric.components
            if self.review is not None or scored or store.review_state(run.id):
                view = view_run(run, store)
                self._known = view.release, view.worst_first
        return self._known


_IN_QUERY: Final = set(SampleFilter.model_fields) & set(SampleQuery.__struct_fields__) | {"flag"}


class ListFilter(SampleFilter):
    """The query parameters of an API request for samples."""

    offset: int = Field(0, ge=0, le=_MAX_OFFSET, description="How many to skip at the beginning.")
    limit: Limit = 50


class ListAsked(BaseModel):
    """The query parameters of a page with a list."""

    def given(self, *without: str, **changes: Any) -> list[tuple[str, Any]]:  # noqa: ANN401
        """Return what isn't as by default for the first page of a list; None removes a value."""
        values = self.model_dump(exclude={"page", "at", *without}) | changes
        return [
            (name, str(each).lower() if isinstance(each, bool) else each)
            for name, value in values.items()
            if value not in (None, type(self).model_fields[name].default)
            for each in (cast("list[Any]", value) if isinstance(value, list) else [value])
        ]

    def address(self, **changes: Any) -> str:  # noqa: ANN401 - whatever a field may be
        """Return the query string of an address; an empty ``page`` is for its number to follow."""
        given = self.given(**changes)
        return f"?{urlencode(given, errors='replace')}" if given else ""


class PageFilter(SampleFilter, ListAsked):
    """The query parameters of a page of samples; ``at`` is a sample's position in the list."""

    sort: str = Field(_WORST, pattern=rf"^({_WORST}|number|urgency|id|metric:[^\x00]{{1,200}})$")
    page: int = Field(1, ge=1, le=10_000_000)
    at: int | None = Field(None, ge=0, le=_MAX_OFFSET)


def labeled(rubric: Rubric) -> tuple[str, ...]:
    """Return every name that people's labels can be compared with a judge's by."""
    return (*gold_scales(rubric), WINNER, PASSING_RATE)


def refuse_unknown(where: str, name: str | None, known: Sequence[str]) -> None:
    """Refuse a name in an address that isn't known."""
    if name and name not in known:
        hint = f"use one of {', '.join(known)}" if known else "remove it from the address"
        raise PageError(400, f"there is no `{name[:80]}` here", hint, where)


def _both(numbers: Iterable[int], others: Iterable[int]) -> list[int]:
    """Return the numbers that are in both, in the order of the first."""
    known = {*others}
    return [each for each in numbers if each in known]


def option(name: str) -> str:
    """Return a group's form value: its name, or a digest if a form would alter the name."""
    if harmless(name) == name and "\n" not in name and "\r" not in name and len(name) <= _MAX_NAME:
        return name
    return _DIGEST + hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()
