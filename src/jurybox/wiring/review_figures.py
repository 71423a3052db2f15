"""How the judges of a run stand with the people who have reviewed it so far."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from jurybox.calibration import cases
from jurybox.calibration.belonging import words_of
from jurybox.calibration.drawing import RandomPart
from jurybox.calibration.figures import Agreement, Ceiling, CriterionAgreement
from jurybox.calibration.gold import Gold
from jurybox.calibration.reviews import Review, by_number, gold_of
from jurybox.reporting.estimating import Estimate, Question, estimate
from jurybox.reporting.figures import shown
from jurybox.reporting.stored import damaged, plan_of
from jurybox.rubric.model import Rubric
from jurybox.running.records import RunRow
from jurybox.running.storing import Store
from jurybox.statistics.bootstrap import Resampling
from jurybox.statistics.figure import Figure
from jurybox.wiring.review_cases import Stored

# Half as many draws as elsewhere: this is computed whenever somebody looks, and the ends of an
# interval hardly move.
_DRAWN: Final = Resampling(resamples=1000)


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """What the desk knows.

    Attributes:
        every: the reviews that stand.
        blind: those that stand of the blind ones.
        part: the samples that were drawn at random.
        stored: returns a sample by its number.

    """

    store: Store
    run: RunRow
    rubric: Rubric
    every: tuple[Review, ...]
    blind: tuple[Review, ...]
    part: RandomPart
    stored: Callable[[int], Stored]


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """The judges against people on some samples; None where there is nothing to compare."""

    samples: int
    agreement: Agreement | None = None


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """The judges against people, people among themselves, and the run's figures corrected.

    All figures are of blind reviews.

    Attributes:
        reviews: how many stand, by so many ``reviewers`` of so many ``samples``.
        open: how many of them count in no figure: made with the judges' verdict in sight.
        random: on the random part, which tells of the whole run.
        flagged: on the samples that need a person; these are the hard ones, and tell of themselves.
        people: how far people agree with each other, by criterion, on whatever several reviewed.
        drawn: how many samples the random part has so far; ``skipped`` of them have no review.
        needed: how many more of them are needed before figures are corrected.
        estimates: the run's figures, corrected by the random part.

    """

    reviews: int
    samples: int
    reviewers: tuple[str, ...]
    open: int
    random: Part
    flagged: Part
    people: dict[str, Ceiling]
    drawn: int
    skipped: int
    needed: int
    estimates: tuple[Estimate, ...] = ()

    @property
    def lines(self) -> tuple[str, ...]:
        """All that in plain lines."""
        return tuple(_lines(self))

    def as_data(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        data: dict[str, Any] = msgspec.to_builtins(self)
        return {**data, "lines": list(self.lines)}


def standing_of(known: Evidence) -> Standing:
    """Return how the judges stand with people.

    Raises:
        IncompleteError: the run can't be read.

    """
    every, blind, part = known.every, known.blind, known.part
    found = _cases(known, by_number(blind))
    flagged = {each.number for each in blind if each.queued}
    whole = _compared(known, list(found.values()))
    counted = {each.id for each in blind}
    return Standing(
        reviews=len(every),
        samples=len({each.number for each in every}),
        reviewers=tuple(sorted({each.reviewer for each in every})),
        open=sum(each.id not in counted for each in every),
        random=_part(known, [found[number] for number in found if number in part.labelled]),
        flagged=_part(known, [found[number] for number in found if number in flagged]),
        people={
            each.criterion: each.ceiling
            for each in (() if whole is None else whole.criteria)
            if each.ceiling is not None
        },
        drawn=part.drawn,
        skipped=part.skipped,
        needed=part.needed,
        estimates=_estimates(known),
    )


def labels_of(reviews: Sequence[Review], part: RandomPart) -> dict[int, Gold]:
    """Return what people say of the samples of the random part, by their numbers."""
    return {
        number: gold_of(each)
        for number, each in by_number(reviews).items()
        if number in part.labelled
    }


def _estimates(known: Evidence) -> tuple[Estimate, ...]:
    labels = labels_of(known.blind, known.part)
    told = any(gold.scores or gold.winners for gold in labels.values())
    if known.part.needed or not told:
        return ()
    return estimate(known.store, known.run, Question(reviewed=labels)).estimates


def _part(known: Evidence, found: Sequence[cases.Case]) -> Part:
    return Part(samples=len(found), agreement=_compared(known, found))


def _compared(known: Evidence, found: Sequence[cases.Case]) -> Agreement | None:
    from jurybox.calibration.comparison import Options, compare

    told = [case for case in found if case.gold.scores or case.gold.winners]
    return compare(told, known.rubric, Options(resampling=_DRAWN)) if told else None


def _cases(known: Evidence, reviews: Mapping[int, Sequence[Review]]) -> dict[int, cases.Case]:
    repeated = plan_of(known.run).repeats > 1
    found: dict[int, cases.Case] = {}
    for number, each in reviews.items():
        stored = known.stored(number)
        changed = [one for one in each if one.record_sha256 != stored.sample.record_sha256]
        if changed:
            raise damaged(known.run, f"review {changed[0].id} is of another record {number}")
        found[number] = _case(stored, each, repeated=repeated)
    return found


def _case(stored: Stored, reviews: Sequence[Review], *, repeated: bool) -> cases.Case:
    sample, row, judged = stored.sample, stored.row, stored.judged
    name = f"{sample.sample_id} (repeat {sample.repeat})" if repeated else sample.sample_id
    comments = [f"{each.reviewer}: {each.comment}" for each in reviews if each.comment]
    second = stored.responses.response_b
    return cases.Case(
        id=name,
        gold=gold_of(reviews),
        verdict=cases.Verdict(
            scores=judged.scores,
            reasoning=judged.reasoning,
            winner=judged.winner,
            stable=judged.stable,
        ),
        task=row.task,
        response=stored.responses.response.text,
        response_b=None if second is None else second.text,
        comments={cases.WHOLE: "\n".join(comments)} if comments else {},
        # Several repeats of a sample are no independent evidence.
        cluster=sample.sample_id if repeated else None,
        words=words_of(row),
    )


def _lines(found: Standing) -> Iterator[str]:
    who = "1 person" if len(found.reviewers) == 1 else f"{len(found.reviewers)} people"
    reviews, samples = _counted(found.reviews, "review"), _counted(found.samples, "sample")
    yield f"{reviews} of {samples} by {who}: {', '.join(found.reviewers)}"
    for where, part in (("random part", found.random), ("flagged", found.flagged)):
        for each in () if part.agreement is None else part.agreement.criteria:
            yield f"judge against people, {where}, {_agreement(each)}"
    for name, each in found.people.items():
        both = f"the same in {_percent(each.exact)}, alpha {_ranged(each.alpha)}"
        yield f"people among themselves, {name}: {both} (n {each.n})"
    for each in found.estimates:
        yield f"{each.figure}: {each.mean.sentence}"
    yield from _doubts(found)


def _doubts(found: Standing) -> Iterator[str]:
    if found.needed:
        yield f"nothing is corrected yet: {found.needed} more from the random queue are needed"
    if found.skipped:
        yield (
            f"{_counted(found.skipped, 'sample')} of the random part skipped: were they skipped for"
            " what they say, the figures are off"
        )
    if found.open:
        made = _counted(found.open, "review")
        yield f"{made} made with the judges' verdict in sight, which count in no figure"


def _agreement(each: CriterionAgreement) -> str:
    same = f"the same in {_percent(each.exact.value)}, kappa {_ranged(each.kappa)}"
    told = f"{each.criterion}: {same}"
    if each.bias is not None and each.bias.value is not None:
        bias = Figure(value=each.bias.value, n=each.n, interval=each.bias.interval)
        told = f"{told}, judge minus people {_ranged(bias)}"
    return f"{told} (n {each.n})"


def _ranged(figure: Figure) -> str:
    if figure.value is None:
        return "unknown" if figure.reason is None else f"unknown ({figure.reason})"
    made = figure.interval
    ends = "" if made is None else f" ({shown(made.low)} to {shown(made.high)})"
    return f"{shown(figure.value)}{ends}"


def _percent(share: float | None) -> str:
    return "an unknown share" if share is None else f"{100 * share:.0f}%"


def _counted(count: int, what: str) -> str:
    return f"1 {what}" if count == 1 else f"{count:,} {what}s"
