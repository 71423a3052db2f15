"""From what a run tells to the figures of its judges' biases."""

from collections.abc import Callable, Iterator, Sequence

import msgspec

from jurybox.calibration.markup import MARKS
from jurybox.calibration.observations import Observations, Voted, share_of
from jurybox.judging.verdict import Side
from jurybox.statistics.bias import pairs, position, verbosity
from jurybox.statistics.bias.figure import BiasFigure, untold
from jurybox.statistics.bias.pairs import Kind
from jurybox.statistics.bootstrap import DEFAULT, Resampling

_HUNDRED = 100
_NO_PAIRS = "the run compares no pairs"
_NO_SCORES = "the run scores no single responses"
_NO_GOLD = (
    "no row says what people think of it: `gold` for all criteria or the overall score, or"
    " `gold_winner`"
)
_ANONYMOUS = (
    "the rows don't say which models made the responses (`model`, or `model_a` and `model_b`)"
)

Which = Callable[[Voted], Side | None]
"""Says which side of a pair is of some kind, where exactly one is."""


class Bias(msgspec.Struct, frozen=True, kw_only=True):
    """One way in which a judge may be moved, and its figures."""

    bias: str
    figures: tuple[BiasFigure, ...]


def measure(seen: Observations, resampling: Resampling = DEFAULT) -> tuple[Bias, ...]:
    """Return all figures that follow from what is stored; those that can't be told say why."""
    level = resampling.level
    return (
        Bias(bias="position", figures=tuple(_position(seen, level))),
        Bias(bias="verbosity", figures=tuple(_verbosity(seen, resampling))),
        Bias(bias="self_preference", figures=tuple(_self_preference(seen, level))),
        Bias(bias="formatting", figures=tuple(_formatting(seen, level))),
    )


def _position(seen: Observations, level: float) -> Iterator[BiasFigure]:
    if not seen.voted:
        names = (position.FIRST_PLACE, position.CONSISTENCY)
        flips = (f"{position.FLIPS}.{name}" for name in seen.criteria)
        yield from (untold(name, _NO_PAIRS) for name in (*names, *flips))
        return
    straight = [vote.straight for vote in seen.voted]
    swapped = [vote.swapped for vote in seen.voted]
    samples = [vote.sample for vote in seen.voted]
    yield position.first_place_win_rate(straight, swapped, samples, level=level)
    yield position.swap_consistency(straight, swapped, samples, level=level)
    kept: dict[str, list[bool]] = {name: [] for name in seen.criteria}
    whose: dict[str, list[str]] = {name: [] for name in seen.criteria}
    for vote in seen.voted:
        for name, stayed in vote.kept.items():
            kept.setdefault(name, []).append(stayed)
            whose.setdefault(name, []).append(vote.sample)
    yield from position.flips(kept, whose, level=level)


def _verbosity(seen: Observations, resampling: Resampling) -> Iterator[BiasFigure]:
    rows = seen.scored
    if rows:
        samples = [each.sample for each in rows]
        scores, words = [each.score for each in rows], [each.words for each in rows]
        yield from verbosity.score_by_length(scores, words, samples, resampling=resampling)
    else:
        yield untold(verbosity.CORRELATION, _NO_SCORES)
        yield untold(verbosity.SLOPE, _NO_SCORES)
    known = [(each, each.gold) for each in rows if each.gold is not None]
    if known:
        yield from verbosity.score_by_length_given_gold(
            [each.score for each, _ in known],
            [each.words for each, _ in known],
            [gold for _, gold in known],
            [each.sample for each, _ in known],
            resampling=resampling,
        )
    else:
        why = _NO_GOLD if rows else _NO_SCORES
        yield untold(verbosity.GIVEN_GOLD, why)
        yield untold(verbosity.SLOPE_GIVEN_GOLD, why)
    yield from _of_kind(
        seen.voted, _longer, verbosity.LONGER, verbosity.LONGER_EXCESS, resampling.level
    )


def _self_preference(seen: Observations, level: float) -> Iterator[BiasFigure]:
    why = _NO_SCORES if not seen.scored else _one_family({each.maker for each in seen.graded})
    if why is not None:
        yield untold(pairs.OWN_DIFFERENCE, why)
        yield untold(pairs.OWN_DIFFERENCE_GIVEN_GOLD, why)
    else:
        yield pairs.own_against_others(
            [each.score for each in seen.graded],
            [each.judge == each.maker for each in seen.graded],
            [each.judge for each in seen.graded],
            [each.sample for each in seen.graded],
            level=level,
        )
        yield _beyond_people(seen, level)
    kinds = (pairs.OWN, pairs.OWN_EXCESS)
    makers = {maker for vote in seen.voted for maker in vote.makers or ()}
    why = _one_family(makers) if seen.voted else None
    if why is not None:
        yield from (untold(kind.name, why) for kind in kinds)
    else:
        yield from _of_kind(seen.voted, _own, *kinds, level)


def _one_family(makers: set[str]) -> str | None:
    if not makers:
        return _ANONYMOUS
    if len(makers) == 1:
        return f"all responses come from one family (`{min(makers)}`)"
    return None


def _beyond_people(seen: Observations, level: float) -> BiasFigure:
    known = [(each, each.gold) for each in seen.graded if each.gold is not None]
    if not known:
        return untold(pairs.OWN_DIFFERENCE_GIVEN_GOLD, _NO_GOLD)
    return pairs.own_against_others(
        [each.score - gold for each, gold in known],
        [each.judge == each.maker for each, _ in known],
        [each.judge for each, _ in known],
        [each.sample for each, _ in known],
        given_gold=True,
        level=level,
    )


def _formatting(seen: Observations, level: float) -> Iterator[BiasFigure]:
    samples = [each.sample for each in seen.scored]
    scores, words = [each.score for each in seen.scored], [each.words for each in seen.scored]
    for bit, mark in enumerate(MARKS):
        if seen.scored:
            has = [bool(each.marks >> bit & 1) for each in seen.scored]
            yield pairs.difference_by_mark(mark, scores, has, words, samples, level=level)
        else:
            yield untold(pairs.difference_name(mark), _NO_SCORES)
        yield _marked(seen.voted, bit, pairs.formatted(mark), level)


def _marked(votes: Sequence[Voted], bit: int, kind: Kind, level: float) -> BiasFigure:
    if not votes:
        return untold(kind.name, _NO_PAIRS)
    found: list[tuple[float, float, str]] = []
    for vote in votes:
        a, b = (bool(marks >> bit & 1) for marks in vote.marks)
        if a != b:
            longer = (vote.words[0] - vote.words[1]) / _HUNDRED
            side: Side = "A" if a else "B"
            found.append((share_of(vote.winner, side), longer if a else -longer, vote.sample))
    shares, apart = [each for each, _, _ in found], [each for _, each, _ in found]
    samples = [each for _, _, each in found]
    return pairs.win_rate_at_equal(shares, apart, samples, kind, level=level)


def _longer(vote: Voted) -> Side | None:
    a, b = vote.words
    return None if a == b else "A" if a > b else "B"


def _own(vote: Voted) -> Side | None:
    if vote.makers is None:
        return None
    a, b = (vote.judge == maker for maker in vote.makers)
    return None if a == b else "A" if a else "B"


def _of_kind(
    votes: Sequence[Voted], which: Which, plain: Kind, excess: Kind, level: float
) -> Iterator[BiasFigure]:
    """Yield how often one kind of response wins, and how much more often than with people."""
    if not votes:
        yield untold(plain.name, _NO_PAIRS)
        yield untold(excess.name, _NO_PAIRS)
        return
    known: list[tuple[Voted, Side]] = []
    for vote in votes:
        side = which(vote)
        if side is not None:
            known.append((vote, side))
    shares = [share_of(vote.winner, side) for vote, side in known]
    yield pairs.win_rate(shares, [vote.sample for vote, _ in known], plain, level=level)
    if not any(vote.gold for vote in votes):
        yield untold(excess.name, _NO_GOLD)
        return
    judged = [
        (share_of(vote.winner, side), share_of(vote.gold, side), vote.sample)
        for vote, side in known
        if vote.gold is not None
    ]
    yield pairs.win_excess(
        [share for share, _, _ in judged],
        [people for _, people, _ in judged],
        [sample for _, _, sample in judged],
        excess,
        level=level,
    )
