"""The reviews that a rubric requires before a run can be released."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, get_args

import msgspec

from jurybox.engine.records import ReviewRow, RunRow, StoredOutcome, seal_of
from jurybox.reporting.metric_text import mostly_unscored, none_scored
from jurybox.reporting.stored import damaged, outcome_of, plan_of, reading, rubric_of, run_title
from jurybox.review.reviews import ActiveReviews, Review, active_reviews, by_number
from jurybox.rubric.metrics import SAFETY_RATE
from jurybox.rubric.rubric_model import ReviewReason, Rubric, releases
from jurybox.scoring.evaluate_sample import decide
from jurybox.scoring.sample_result import NEEDS_REVIEW, SampleResult, flag_names
from jurybox.scoring.summary import Acceptance, Conclusion, check_gates
from jurybox.storage.sample_search import SampleQuery
from jurybox.storage.store import Store
from jurybox.text_format import counted, cut, joined

_REASONS: Final[tuple[str, ...]] = get_args(ReviewReason)
_ASKED: Final = tuple(each for each in _REASONS if each != "unscored")

_MOST_NAMES: Final = 3

REVIEW_STATES: Final = {
    "open": "to review",
    "awaiting": "to review before release",
    "done": "flagged, reviewed",
    "confirmed": "concern by people",
    "disputed": "concern disputed",
    "dismissed": "concern dismissed",
    "unflagged": "not flagged, reviewed",
    "reviewed": "reviewed",
    "random": "random subset",
    "flagged": "flagged, reviewed blind",
}
"""The states of a sample's review that samples can be filtered by, in words."""


BLOCKED: Final = "blocked"
"""The decision that replaces a release if a reviewer confirmed a safety concern."""


class OtherReviews(msgspec.Struct, frozen=True, kw_only=True):
    """The reviews of a run that another run was rescored from, where they don't count."""

    run_id: str
    name: str
    samples: int  # how many samples are reviewed
    confirmed: int  # how many of them have a safety concern that no reviewer dismissed
    disputed: int  # in how many a reviewer dismissed another's concern

    @property
    def concerns(self) -> int:
        """In how many samples a reviewer saw a safety concern."""
        return self.confirmed + self.disputed

    @property
    def worst(self) -> str:
        """The state of review of the samples to look at first."""
        return "confirmed" if self.confirmed else "disputed" if self.disputed else "reviewed"

    @property
    def sentence(self) -> str:
        """A sentence: what the reviews say about safety, and that they aren't counted."""
        counts = {"seen by reviewers": self.confirmed, "disputed": self.disputed}
        found = [f"{counted(n, 'safety concern', 'are')} {how}" for how, n in counts.items() if n]
        safety = joined(found) or "no safety concern is seen by reviewers"
        many = counted(self.samples, "sample")
        return f"{safety} in {cut(self.name, 60)}, whose reviews ({many}) aren't counted here"


def _how_seen(confirmed: int, raised: int) -> str:
    words = ("confirmed",) * (raised < confirmed) + ("raised",) * (raised > 0)
    return f"{' or '.join(words)} by reviewers"


class ReleaseReview(msgspec.Struct, frozen=True, kw_only=True):
    """The reviews that a release is waiting for."""

    required: tuple[ReviewReason, ...] = ()  # the reasons for review that the rubric names
    awaiting: int = 0  # how many samples with such a reason still need a review
    flagged: int = 0  # in how many samples a judge saw a danger
    awaited: tuple[ReviewReason, ...] = ()  # the reasons of these samples that are still open
    cleared: tuple[int, ...] = ()  # the samples with such a reason that reviews have settled
    concerned: tuple[int, ...] = ()  # the samples in which a reviewer saw a safety concern
    disputed: tuple[int, ...] = ()  # those of them in which another reviewer saw none
    unseen: tuple[int, ...] = ()  # those of them in which no judge saw one
    unexamined: int = 0  # how many of these have no valid vote of a judge
    unflagged: tuple[int, ...] = ()  # the reviewed samples without a reason for review
    every: tuple[int, ...] = ()  # all reviewed samples
    reviewed: tuple[int, ...] = ()  # the queued samples for which reviews settled every reason
    settled: dict[str, tuple[int, ...]] = {}  # the samples that a review settled, by reason
    unscorable: int = 0  # how many queued samples only wait for a repaired judge
    accepted: Acceptance | None = None  # how unreviewed samples were accepted, if they were
    elsewhere: tuple[OtherReviews, ...] = ()  # of the runs that this one was rescored from

    @property
    def confirmed(self) -> tuple[int, ...]:
        """The samples with a safety concern that no reviewer dismissed."""
        return tuple(each for each in self.concerned if each not in self.disputed)

    @property
    def how_seen(self) -> str:
        """In words, whether reviewers confirmed judges' concerns or raised their own."""
        return _how_seen(len(self.confirmed), len({*self.confirmed}.intersection(self.unseen)))

    @property
    def dismissed(self) -> tuple[int, ...]:
        """The samples in which a judge saw a danger, and reviewers saw none."""
        return tuple(each for each in self.settled.get("safety", ()) if each not in self.concerned)

    @property
    def on_flags(self) -> str:
        """How many samples judges flagged for safety, and what people decided on these."""
        seen = {*self.settled.get("safety", ())}
        decided = {
            "dismissed {:,}": len(self.dismissed),
            "confirmed {:,}": len(seen.intersection(self.confirmed)),
            "disagree about {:,}": len(seen.intersection(self.disputed)),
            "raised {:,} more": len(self.unseen),
        }
        said = joined([does.format(count) for does, count in decided.items() if count])
        people = f", people {said}" if said else ""
        known = self.flagged or self.unseen
        return f"judges flagged {counted(self.flagged, 'sample')}{people}" if known else ""

    def safety_rate(self, summary: Mapping[str, Any]) -> float | None:
        """Return the share of samples with a flag that no one dismissed or only people raised."""
        if summary.get(SAFETY_RATE) is None:
            return None
        left: int = self.flagged - len(self.dismissed) + len(self.unseen)
        return left / summary["n"][SAFETY_RATE]

    @property
    def waits_for(self) -> int:
        """How many samples must be reviewed before a release; 0 if it was accepted unreviewed."""
        return self.awaiting if self.accepted is None else 0

    @property
    def blocked(self) -> bool:
        """Whether a reviewer's safety concern blocks the release, as the rubric requires."""
        return bool(self.concerned) and "safety" in self.required

    @property
    def blockers(self) -> tuple[str, ...]:
        """Why missing reviews block the release; empty if they don't."""
        lines: list[str] = []
        if self.waits_for:
            reasons = ", ".join(self.awaited)
            lines.append(f"awaiting review: {counted(self.waits_for, 'sample')} ({reasons})")
        if self.blocked and self.confirmed:
            count = counted(len(self.confirmed), "sample")
            lines.append(f"safety concern {self.how_seen}: {count}")
        if self.blocked and self.disputed:
            count = counted(len(self.disputed), "sample")
            lines.append(f"safety concern that reviewers disagree about: {count}")
        return tuple(lines)

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for the reader of a run: why release is blocked, and what was accepted."""
        elsewhere = (each.sentence for each in self.elsewhere)
        if self.accepted is None:
            return (*self.blockers, *elsewhere)
        count = counted(self.accepted.samples, "sample")
        when = f"--accept-unreviewed, {self.accepted.at}"
        accepted = f"accepted without the required review: {count} ({when})"
        return (*self.blockers, accepted, *elsewhere)

    @property
    def warning(self) -> str:
        """A warning if reviewers saw safety concerns in a run whose reviews don't count here."""
        return "; ".join(each.sentence for each in self.elsewhere if each.concerns)

    @property
    def decided(self) -> dict[str, tuple[int, ...]]:
        """The samples that reviews settled, by reason; also those whose concern judges missed."""
        safety = (*self.settled.get("safety", ()), *self.unseen)
        return self.settled | ({"safety": safety} if safety else {})

    def done(self, *flags: str) -> tuple[int, ...]:
        """Return the samples that reviews settled: for the first of ``flags``, or for all."""
        reasons = [each for each in flags if each in _REASONS]
        return self.decided.get(reasons[0], ()) if reasons else self.reviewed

    def worst_first(self, metric: str | None) -> SampleQuery:
        """Return the query for all samples, the worst first; pairs have no ``metric``.

        Reviewers' safety concerns come first, then samples without the metric, then its lowest
        values, with ties sorted by urgency. Pairs are sorted by urgency; what reviews settled isn't
        urgent.
        """
        if metric is None:
            order = SampleQuery(sort="urgency", descending=True, settled=self.calm)
        else:
            order = SampleQuery(sort=f"metric:{metric}", missing_first=True)
        return msgspec.structs.replace(order, concerned=self.concerned)

    @property
    def calm(self) -> tuple[int, ...]:
        """The samples that aren't urgent any more: settled by reviews, without a concern."""
        # A review gives no score, so a sample without one stays urgent.
        urgent = {*self.concerned, *self.settled.get("unscored", ())}
        return tuple(number for number in self.reviewed if number not in urgent)

    def of_sample(self, number: int, flags: Collection[str]) -> dict[str, Any]:
        """Return a sample's open and settled reasons for review, and the states of its review."""
        reasons = _REASONS if NEEDS_REVIEW in flags else ()
        states = {
            "open": NEEDS_REVIEW in flags and number not in self.reviewed,
            "done": number in self.reviewed,
            "awaiting": number not in self.cleared and not set(self.required).isdisjoint(flags),
            "confirmed": number in self.confirmed,
            "disputed": number in self.disputed,
            "dismissed": number in self.dismissed,
            "unflagged": number in self.unflagged,
            "reviewed": number in self.every,
        }
        return {
            "open": [each for each in reasons if each in flags and number not in self.done(each)],
            "done": [each for each in _REASONS if number in self.done(each)],
            "states": [name for name, found in states.items() if found],
        }

    def as_data(self) -> dict[str, Any]:
        """Return the reviews as plain data for JSON."""
        return {
            "required": list(self.required),
            "awaiting": self.awaiting,
            "confirmed": len(self.confirmed),
            "disputed": len(self.disputed),
            "reviewed": len(self.reviewed),
            "elsewhere": msgspec.to_builtins(self.elsewhere),
            "accepted_unreviewed": msgspec.to_builtins(self.accepted),
        }


def asked_reasons(run: RunRow) -> tuple[str, ...]:
    """Return the reasons for which people review a run without most scores; empty if for all.

    Its samples that only lack a score wait for a repaired judge.
    """
    if run.status != "finished" or "unscored" in rubric_of(run).require_review:
        return ()
    return _ASKED if mostly_unscored(outcome_of(run).conclusion.summary) else ()


def read_reviews(run: RunRow, rows: Sequence[ReviewRow]) -> ActiveReviews:
    """Return the active reviews; raise an error if a row was changed after it was stored."""
    for row in rows:
        if seal_of(row) != row.seal:
            raise damaged(run, f"review {row.id} was changed after it was stored")
    with reading(run):
        return active_reviews(rows)


def reviews_elsewhere(source: str | None, store: Store) -> Iterator[OtherReviews]:
    """Yield the reviews of the run that a run was rescored from, and of its predecessors."""
    while source is not None and (run := store.run(source)) is not None:
        reviews = by_number(read_reviews(run, store.reviews(run.id)).every)
        concerned = [number for number, own in reviews.items() if _has_concern(own)]
        confirmed = [each for each in concerned if not _has_concern(reviews[each], sees=False)]
        if reviews:
            yield OtherReviews(
                run_id=run.id,
                name=run_title(run, store),
                samples=len(reviews),
                confirmed=len(confirmed),
                disputed=len(concerned) - len(confirmed),
            )
        source = plan_of(run).derived_from


def release_review(
    run: RunRow, rubric: Rubric, stored: StoredOutcome, store: Store, active: Iterable[Review]
) -> ReleaseReview:
    """Return which reviews the release of a run still needs, given its active ones."""
    required = rubric.require_review
    reviews = by_number(active)
    found = _settled_by_sample(run, store, reviews)
    unscorable = 0
    if asked_reasons(run):
        every, asked = (
            store.find_samples(run.id, SampleQuery(queued=True, any_flags=flags, limit=0)).total
            for flags in ((), _ASKED)
        )
        unscorable = every - asked
    if unscorable:
        # These samples wait for a repaired judge, also if people scored them.
        found = {number: (done - {"unscored"}, why) for number, (done, why) in found.items()}
    # Nothing needs to be counted if the run has no such sample.
    noted = stored.conclusion.noted
    query = SampleQuery(any_flags=required, limit=0)
    total = store.find_samples(run.id, query).total if any(map(noted, required)) else 0
    cleared = tuple(
        number
        for number, (done, reasons) in found.items()
        if (wanted := reasons.intersection(required)) and done >= wanted
    )
    settled = {
        reason: numbers
        for reason in _REASONS
        if (numbers := tuple(number for number, (done, _) in found.items() if reason in done))
    }
    concerned = [number for number, own in reviews.items() if _has_concern(own)]
    return ReleaseReview(
        required=required,
        awaiting=total - len(cleared),
        flagged=noted("safety"),
        awaited=tuple(each for each in required if noted(each) > len(settled.get(each, ()))),
        cleared=cleared,
        concerned=tuple(concerned),
        disputed=tuple(number for number in concerned if _has_concern(reviews[number], sees=False)),
        unseen=tuple(number for number in concerned if "safety" not in found[number][1]),
        unexamined=sum(
            "unscored" in found[number][1] and "safety" not in found[number][1]
            for number in concerned
        ),
        unflagged=tuple(number for number, (_, why) in found.items() if not why),
        every=tuple(found),
        reviewed=tuple(number for number, (done, why) in found.items() if why and done == why),
        settled=settled,
        unscorable=unscorable,
        accepted=stored.accepted,
        elsewhere=tuple(reviews_elsewhere(plan_of(run).derived_from, store)),
    )


def undecided_samples(
    run: RunRow, rubric: Rubric, store: Store, reviews: Iterable[Review]
) -> frozenset[int]:
    """Return the reviewed samples with a safety flag or required reason that no review settled."""
    wanted = {"safety", *rubric.require_review}
    found = _settled_by_sample(run, store, by_number(reviews))
    return frozenset(
        number for number, (done, reasons) in found.items() if wanted.intersection(reasons - done)
    )


def _settled_by_sample(
    run: RunRow, store: Store, reviews: Mapping[int, Sequence[Review]]
) -> dict[int, tuple[set[str], set[str]]]:
    """Return, for each sample, the reasons that reviews settled, and all reasons for review."""
    facets = store.reviewed_facets(run.id) if reviews else {}
    flags = {number: each.flags for number, each in facets.items()}
    return {
        number: _settled_reasons(flag_names(flags.get(number, 0)), own)
        for number, own in reviews.items()
    }


def is_settled(flags: Collection[str], reviews: Sequence[Review]) -> bool:
    """Return whether a sample is reviewed, and no reason for review of its flags is left open."""
    done, reasons = _settled_reasons(flags, reviews)
    return bool(reviews) and done == reasons


def _settled_reasons(
    flags: Collection[str], reviews: Sequence[Review]
) -> tuple[set[str], set[str]]:
    reasons = set(flags).intersection(_REASONS) if NEEDS_REVIEW in flags else set[str]()
    return {each for each in reasons if _settled(each, reviews)}, reasons


def _settled(reason: str, reviews: Sequence[Review]) -> bool:
    if reason == "safety":
        return any(isinstance(each.verdict.safety_concern, bool) for each in reviews)
    return any(each.verdict.is_label for each in reviews)


def _has_concern(reviews: Sequence[Review], *, sees: bool = True) -> bool:
    return any(each.verdict.safety_concern is sees for each in reviews)


def settled_words(reasons: Collection[str], reviews: Sequence[Review]) -> dict[str, str]:
    """Return what reviewers did with the reasons for review that they settled.

    A safety concern that a reviewer raised is included even if no judge saw it.
    """
    found = {reason: "reviewed" for reason in reasons if _settled(reason, reviews)}
    if "safety" in found or _has_concern(reviews):
        found["safety"] = flag_outcome(reviews, flagged="safety" in reasons)
    return found


def flag_outcome(reviews: Sequence[Review], *, flagged: bool = True) -> str:
    """Return who confirmed (or raised, unless ``flagged``) and who dismissed a safety concern."""
    parts = list[str]()
    for word, sees in (("confirmed" if flagged else "raised", True), ("dismissed", False)):
        names = [each.reviewer for each in reviews if each.verdict.safety_concern is sees]
        more = [f"{len(names) - _MOST_NAMES} more"] if len(names) > _MOST_NAMES else []
        if names:
            listed = ", ".join((*(cut(name, 40) for name in names[:_MOST_NAMES]), *more))
            parts.append(f"{word} by {listed}")
    return "; ".join(parts)


def reviewed_conclusion(conclusion: Conclusion, rubric: Rubric, found: ReleaseReview) -> Conclusion:
    """Return the conclusion from a run's samples and their reviews."""
    blockers = found.blockers
    left: Counter[str] = Counter(conclusion.review["reasons"])
    left.subtract({reason: len(numbers) for reason, numbers in found.settled.items()})
    review: dict[str, Any] = {
        "queued": conclusion.review["queued"] - len(found.reviewed),
        "reasons": {name: count for name, count in left.items() if count > 0},
    }
    summary = conclusion.summary
    if none_scored(summary, rubric):  # then reviews give no score, so none are asked for
        review = {"queued": 0, "reasons": {}}
        summary = {**summary, "review_rate": None}
    gates = conclusion.gates
    if found.unexamined and summary.get(SAFETY_RATE) is not None:  # people examined them
        n: dict[str, int] = conclusion.summary["n"]
        examined = n[SAFETY_RATE] + found.unexamined
        summary = {**summary, "n": n | {SAFETY_RATE: examined}}
    rate = {SAFETY_RATE: found.safety_rate(summary)}
    if rate[SAFETY_RATE] is not None:  # the only metric that reviews change without an estimate
        again = [rule for rule in rubric.gates if rule.name in rate]
        known = {each.gate: each for each in check_gates(again, rate)}
        gates = tuple(known.get(each.gate, each) for each in gates)
    ready = all(each.passed for each in gates) if gates else None
    conclusion = msgspec.structs.replace(
        conclusion, review=review, summary=summary, gates=gates, release_ready=ready
    )
    if not blockers:
        return conclusion
    decision, reasons = conclusion.decision, conclusion.decision_reasons
    if releases(rubric.decisions, decision):
        decision = BLOCKED if found.blocked else NEEDS_REVIEW
        reasons = (*blockers, *reasons)
    ready = None if conclusion.release_ready is None else False
    return msgspec.structs.replace(
        conclusion, release_ready=ready, decision=decision, decision_reasons=reasons
    )


def sample_decision(rubric: Rubric, result: SampleResult, reviews: Sequence[Review]) -> str | None:
    """Return the decision on a sample, given its current reviews."""
    if result.decision != NEEDS_REVIEW:
        return result.decision
    if _has_concern(reviews):
        return BLOCKED
    required = [each for each in rubric.require_review if each in result.review_reasons]
    if not all(_settled(reason, reviews) for reason in required):
        return NEEDS_REVIEW
    decided = decide(rubric.sample_decisions, result.metrics)
    return None if decided is None else decided.decide
