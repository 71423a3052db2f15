"""Finds the samples of a run that need attention, using the sample index."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from jurybox.documents.numbers import compared_value
from jurybox.engine.records import RunRow, facets_of
from jurybox.reporting.metric_text import headline, plain_words
from jurybox.reporting.reasons import (
    Reason,
    dangers_of,
    failed_rules,
    main_reason,
    reasoning,
    reasons_of,
)
from jurybox.reporting.release import read_reviews, settled_words
from jurybox.reporting.stored import SampleRecord, numbered, reading, rubric_of
from jurybox.reporting.view import RunView
from jurybox.review.reviews import Review
from jurybox.rubric.metrics import SAMPLES
from jurybox.rubric.rubric_model import Rubric
from jurybox.sample import Response
from jurybox.scoring.sample_result import KINDS, MARKS, flag_names
from jurybox.storage.sample_search import SampleQuery
from jurybox.storage.store import Store
from jurybox.text_format import counted, cut

if TYPE_CHECKING:
    from jurybox.reporting.review_text import ReviewAgreement

_LISTED: Final = 5
_LONGEST_REASONING: Final = 300
_LONGEST_TASK: Final = 160


class SamplePlace(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A sample in one repeat; ``number`` is its position in the run, if known."""

    id: str
    repeat: int
    number: int | None = None

    def __str__(self) -> str:
        """Return the sample's id, and which repeat it is."""
        return f"{self.id} (repeat {self.repeat})" if self.repeat else self.id


_REVIEWERS: Final = frozenset({"confirmed", "disputed"})  # the reasons that come from reviews
_NO_SCORE: Final = frozenset({"unscored", "target_error"})
_DANGERS: Final = frozenset({*_REVIEWERS, "safety", "forged_prompt"})
_LOWERS_CONFIDENCE: Final = frozenset({"unstable", "judge_fallback"})
# A review gives no score, so these samples stay without one.
_NEVER_SETTLED: Final = frozenset({"unscored"})


class Concern(msgspec.Struct, frozen=True, kw_only=True):
    """A reason to look at samples: how many still need a look, and the worst of them.

    ``reviewed`` counts the samples with the same reason that reviews have settled.
    """

    kind: str
    meaning: str
    count: int
    reviewed: int = 0
    samples: tuple[SamplePlace, ...]

    @property
    def counts(self) -> str:
        """The count in words, such as `3 samples`, `2 of 5 samples still to be reviewed`."""
        if self.kind in _REVIEWERS:
            return f"{counted(self.count, 'safety concern')} {self.meaning}"
        if not self.reviewed:
            return counted(self.count, "sample")
        return f"{self.count:,} of {self.count + self.reviewed:,} samples still to be reviewed"

    @property
    def in_words(self) -> str:
        """How many samples there are, and why they need a look."""
        if self.kind == "disputed":
            return f"{self.counts}, until one of them changes their review"
        return self.counts if self.kind in _REVIEWERS else f"{self.counts}: {self.meaning}"

    @property
    def query(self) -> str:
        """The query for the samples."""
        if self.kind in _REVIEWERS:
            return f"review={self.kind}"
        return ("review=open&" if self.reviewed else "") + f"flag={self.kind}"


UNREMARKABLE: Final = frozenset({"high_confidence", "moderate_confidence", "stable"})
"""The flags that say that all is well; lists of samples leave them out."""
_TONES: Final = {
    "passed": "passes",
    **dict.fromkeys(("safety", "failed", "unscored", "target_error"), "fails"),
}


class Badge(msgspec.Struct, frozen=True, kw_only=True):
    """A flag of a sample in words; ``tone`` is ``passes``, ``fails``, ``waits`` or ``warned``."""

    text: str
    tone: str
    meaning: str


def badges_of(flags: Sequence[str], settled: Mapping[str, str]) -> tuple[Badge, ...]:
    """Return a sample's badges, the verdict first; ``settled`` has what reviewers decided."""
    implied = {*UNREMARKABLE, "split"}  # votes that differ matter if confidence is low
    if any(flag in KINDS and flag != "failed" for flag in flags):
        implied.add("needs_review")
    tones = dict(_TONES)
    if settled.get("safety", "").startswith("dismissed"):
        tones["safety"] = "warned"
    elif "safety" in settled:
        tones["passed"] = "waits"
    verdict = [flag for flag in ("failed", "passed") if flag in flags]
    # A safety concern that only reviewers saw is no flag of the judges.
    shown = dict.fromkeys((*verdict, *flags, *settled))
    return tuple(
        Badge(
            text=", ".join(filter(None, (plain_words(flag), settled.get(flag)))),
            tone=tones.get(flag, "warned"),
            meaning=(KINDS | MARKS)[flag].meaning,
        )
        for flag in shown
        if flag not in implied
    )


class CardResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A response; ``error`` is why the response is missing."""

    label: str
    text: str
    error: str | None = None


class SampleCard(msgspec.Struct, frozen=True, kw_only=True):
    """A sample that is shown for the ``value`` of a metric, or for its flags.

    ``passed`` is None if the rubric has no pass rules; ``failed`` names the rules that fail.
    ``badges`` are its verdict and its flags, ``winner`` is the better of two responses.
    ``grounds`` are quoted safety findings and the reasons of judges and rules, ``reasoning`` is all
    reasons as one string, and ``main_reason`` is a safety concern that isn't dismissed, or the
    reason for the lowest score.
    """

    number: int
    id: str
    repeat: int
    metric: str
    value: float | None
    passed: bool | None
    failed: str = ""
    badges: tuple[Badge, ...] = ()
    winner: str | None = None
    task: str
    reference: str | None = None
    answers: tuple[CardResponse, ...]
    grounds: tuple[Reason, ...]
    reasoning: str
    main_reason: str = ""

    def as_data(self) -> dict[str, Any]:
        """Return plain data, with the beginnings of the texts."""
        return {
            "id": self.id,
            "repeat": self.repeat,
            "metric": self.metric,
            "value": self.value,
            "task": cut(self.task, _LONGEST_TASK),
            "reasoning": cut(self.reasoning, _LONGEST_REASONING),
        }


def card(
    record: SampleRecord, rubric: Rubric, metric: str, reviews: Sequence[Review]
) -> SampleCard:
    """Return a sample's card, with the metric for which it is shown."""
    sample = record.row
    titles = {each.id: each.name for each in rubric.criteria}
    result, responses = record.result, record.responses
    first = "response" if responses.response_b is None else "response A"
    answers = [_answer(responses.response, first)]
    if responses.response_b is not None:
        answers.append(_answer(responses.response_b, "response B"))
    return SampleCard(
        number=sample.number,
        id=sample.sample_id,
        repeat=sample.repeat,
        metric=metric,
        value=result.metrics.get(metric),
        # Without pass rules, a sample neither passes nor fails, even if it has no score.
        passed=result.passed if result.rules else None,
        failed=failed_rules(record, rubric),
        badges=badges_of(
            flag_names(facets_of(sample).flags), settled_words(result.review_reasons, reviews)
        ),
        winner=result.winner,
        task=record.inputs.task,
        reference=record.inputs.reference,
        answers=tuple(answers),
        grounds=(*dangers_of(record), *reasons_of(record, titles)),
        reasoning=reasoning(record),
        main_reason=main_reason(record, rubric, reviews),
    )


def _answer(response: Response, label: str) -> CardResponse:
    error = response.error or ("timed out" if response.timing.timed_out else None)
    return CardResponse(label=label, text=response.text, error=error)


def numbered_card(store: Store, run: RunRow, number: int, metric: str = "") -> SampleCard:
    """Return the card of a sample, by its number."""
    reviews = read_reviews(run, store.reviews_of(run.id, number)).every
    with reading(run):
        record = SampleRecord(numbered(store, run, number))
        return card(record, rubric_of(run), metric, reviews)


def worst_samples(store: Store, view: RunView, most: int) -> tuple[SampleCard, ...]:
    """Return the first few samples: what people object to, what a release waits for, the worst."""
    metric, release = headline(view.summary, view.rubric), view.release
    query = msgspec.structs.replace(view.worst_first, limit=most)
    held: Sequence[int] = ()
    if release.waits_for:
        limit = most + len(release.cleared)
        asked = msgspec.structs.replace(query, any_flags=release.required, limit=limit)
        held = [row.number for row in store.find_samples(view.run_id, asked).rows]
    waiting = [number for number in held if number not in release.cleared]
    # A pair with a winner has no score that could be low.
    shown = [
        row.number
        for row in store.find_samples(view.run_id, query).rows
        if row.winner is None or row.number in release.concerned
    ]
    first = [*dict.fromkeys((*release.concerned, *waiting, *shown))][:most]
    return tuple(numbered_card(store, view.row, number, metric) for number in first)


def concerns_of(store: Store, view: RunView, listed: int = _LISTED) -> tuple[Concern, ...]:
    """Return the reasons to look at a run's samples: dangers, what doesn't pass, then by count.

    If low confidence is nothing but another reason's effect, the other reason says so.
    """

    def rank(kind: str) -> int:
        return 0 if kind in _DANGERS else 1 if kind == "failed" or kind in _NO_SCORE else 2

    every = every_concern(store, view, listed)
    every = tuple(sorted(every, key=lambda each: (rank(each.kind), -each.count)))
    if view.none_scored:
        # A few samples with another reason hide that none has a score.
        return tuple(sorted(every, key=lambda each: each.kind not in _NO_SCORE))
    low = next((each for each in every if each.kind == "low_confidence"), None)
    if low is None:
        return every
    for each in every:
        same = (each.count, each.reviewed) == (low.count, low.reviewed)
        if each.kind in _LOWERS_CONFIDENCE and same:
            query = SampleQuery(flags=(each.kind, low.kind), limit=0)
            if store.find_samples(view.run_id, query).total == each.count + each.reviewed:
                meaning = f"{each.meaning}, so their confidence is low"
                both = msgspec.structs.replace(each, meaning=meaning)
                return tuple(both if one is each else one for one in every if one is not low)
    return every


def every_concern(store: Store, view: RunView, listed: int) -> tuple[Concern, ...]:
    """Return every reason to look at a run's samples; a sample may have several reasons.

    What reviewers saw comes first. The worst ``listed`` samples of each reason are named. If
    a review settled a sample's reason, the sample is not listed under that reason.
    """
    run, release = view.row, view.release
    settled = {kind: done for kind, done in release.decided.items() if kind not in _NEVER_SETTLED}
    unseen = {"safety": len(release.unseen)}
    left = {
        noted.kind: noted.count + unseen.get(noted.kind, 0) - len(settled.get(noted.kind, ()))
        for noted in view.conclusion.attention
    }

    def places(**wanted: tuple[int | str, ...]) -> tuple[SamplePlace, ...]:
        query = msgspec.structs.replace(
            view.worst_first, settled=release.calm, limit=listed, **wanted
        )
        rows = store.find_samples(run.id, query).rows if listed else ()
        return tuple(
            SamplePlace(id=row.sample_id, repeat=row.repeat, number=row.number) for row in rows
        )

    by_reviewers = {
        "confirmed": (release.how_seen, release.confirmed),
        "disputed": ("that reviewers disagree about", release.disputed),
    }
    return (
        *(
            Concern(
                kind=kind,
                meaning=meaning,
                count=len(numbers),
                samples=places(among=numbers),
            )
            for kind, (meaning, numbers) in by_reviewers.items()
            if numbers
        ),
        *(
            Concern(
                kind=noted.kind,
                meaning=KINDS[noted.kind].meaning,
                count=left[noted.kind],
                reviewed=len(settled.get(noted.kind, ())),
                samples=places(flags=(noted.kind,), without=settled.get(noted.kind, ())),
            )
            for noted in view.conclusion.attention
            if noted.kind in KINDS and left[noted.kind] > 0
        ),
    )


class Attention(msgspec.Struct, frozen=True, kw_only=True):
    """The samples that need attention, and the worst samples."""

    concerns: tuple[Concern, ...]
    worst: tuple[SampleCard, ...]

    def as_data(self) -> dict[str, Any]:
        """Return plain data, ready for JSON; samples are identified by their ids."""
        concerns: list[dict[str, Any]] = msgspec.to_builtins(self.concerns)
        for place in (place for each in concerns for place in each["samples"]):
            place.pop("number")
        return {"attention": concerns, "worst": [each.as_data() for each in self.worst]}


def gather(store: Store, view: RunView, *, listed: int = 20, ranked: int = 10) -> Attention:
    """Return the samples that need attention, and the samples with the lowest overall quality."""
    return Attention(
        concerns=concerns_of(store, view, listed), worst=worst_samples(store, view, ranked)
    )


class QualityLevel(msgspec.Struct, frozen=True, kw_only=True):
    """A run's level in words; ``scored`` is how many samples it relies on, empty if on all."""

    label: str
    meaning: str
    scored: str

    @property
    def name(self) -> str:
        """The level, and how many samples it relies on."""
        return f"{self.label}, by {self.scored}" if self.scored else self.label


def quality_level(view: RunView, people: "ReviewAgreement | None" = None) -> QualityLevel | None:
    """Return a run's level, and what people's reviews make of it."""
    level, samples, name = view.level, view.summary[SAMPLES], view.rubric.overall_name
    if level is None:
        return None
    label, meaning = level.label, level.meaning
    made = people.by_gated_metric(view.rubric, samples).get(f"{name}_mean") if people else None
    if people and made is not None and (value := made.mean.corrected.value) is not None:
        other = view.rubric.band(value, rounded=False)
        if other and other.label != level.label:
            number = compared_value("", value, level.low)
            label = f"{label} by the {people.scorer}, {other.label} by people ({number})"
            meaning = ""
    n = view.summary["n"][f"{name}_mean"]
    scored = f"{n:,} of {counted(samples, 'sample')}" if n < samples else ""
    return QualityLevel(label=label, meaning=meaning, scored=scored)
