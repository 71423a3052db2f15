"""Biases of judges for a position, for length, layout and the judge's own family."""

from collections.abc import Callable, Hashable, Sequence
from typing import Final

import msgspec
import numpy as np

from jurybox.statistics.cluster_regression import Numbers, coefficient, rank_correlation
from jurybox.statistics.distributions import t_quantile
from jurybox.statistics.estimates import Estimate, Interval
from jurybox.statistics.intervals import Values, codes_of, mean_of, proportion, wilson

FEWEST_SAMPLES: Final = 10
"""Fewer samples give no value: its interval would cover nearly everything."""

FEWEST_OF_A_KIND: Final = 5
_NARROW: Final = 0.02
_NARROWER: Final = 0.002
_TIE: Final = 0.5
_CALLS: Final = 2.0  # of one vote


class BiasMetric(Estimate, frozen=True, kw_only=True):
    """One measurement of bias, from ``n`` votes, calls or responses of ``samples`` samples.

    ``name`` is what a gate calls it, such as ``position.swap_consistency``.
    """

    name: str
    samples: int
    sentence: str = ""


class BiasQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """What a metric asks, and how its answer is worded.

    ``needs`` names what samples must have; ``sentence`` has ``{}`` for the value. With a ``fair``
    value, the words for an interval that contains it, or is above or below, follow.
    """

    name: str
    needs: str
    sentence: str
    share: bool = False
    fair: float | None = None
    none: str = "no significant bias"
    above: str = ""
    below: str = ""

    def answer(
        self, samples: Sequence[Hashable], n: int, compute: Callable[[], Estimate]
    ) -> BiasMetric:
        """Return the metric from ``n`` values of these samples, or why it can't be measured."""
        count = len(set(samples))
        why = too_few(count, self.needs)
        found = compute() if why is None else Estimate(value=None, n=n, reason=why)
        if found.value is None:
            return unmeasured(self.name, found.reason or "", n=found.n, samples=count)
        shown = (percent if self.share else signed)(found.value, found.interval)
        verdict = "" if self.fair is None else f": {self._verdict(found.interval, self.fair)}"
        return BiasMetric(
            name=self.name,
            value=found.value,
            n=found.n,
            samples=count,
            interval=found.interval,
            reason=found.reason,
            sentence=f"{self.sentence.format(shown)}{verdict}.",
        )

    def _verdict(self, interval: Interval | None, fair: float) -> str:
        return {0: self.none, 1: self.above, -1: self.below}[side_of(interval, fair)]


def unmeasured(name: str, reason: str, *, n: int = 0, samples: int = 0) -> BiasMetric:
    """Return a metric that could not be measured, and why."""
    sentence = f"Not measurable: {reason}."
    return BiasMetric(name=name, value=None, n=n, samples=samples, reason=reason, sentence=sentence)


def too_few(samples: int, what: str) -> str | None:
    """Return the reason why there are too few samples with ``what``, or None."""
    if samples >= FEWEST_SAMPLES:
        return None
    count = "no sample has" if not samples else f"only {samples} samples have"
    count = "only 1 sample has" if samples == 1 else count
    return f"{count} {what}, and {FEWEST_SAMPLES} are needed"


def percent(value: float, interval: Interval | None = None) -> str:
    """Return a share as percent, with its interval where there is one."""
    digits = _digits(interval)
    shown = f"{100 * value:.{digits}f}%"
    if interval is None:
        return shown
    return f"{shown} ({100 * interval.low:.{digits}f}% to {100 * interval.high:.{digits}f}%)"


def signed(value: float, interval: Interval | None = None) -> str:
    """Return a number with its sign, with its interval where there is one."""
    digits = 2 + _digits(interval)

    def shown(value: float) -> str:
        return f"{round(value, digits) + 0.0:+.{digits}f}"

    if interval is None:
        return shown(value)
    return f"{shown(value)} ({shown(interval.low)} to {shown(interval.high)})"


def side_of(interval: Interval | None, fair: float) -> int:
    """Return on which side of the fair value an interval lies; 0 where it contains it."""
    if interval is None or interval.low <= fair <= interval.high:
        return 0
    return 1 if interval.low > fair else -1


def _digits(interval: Interval | None) -> int:
    """Return how many digits are worth showing: an interval must not look like a point."""
    width = 1.0 if interval is None else interval.high - interval.low
    if width >= _NARROW:
        return 0
    return 1 if width >= _NARROWER else 2


def first_place_win_rate(
    straight: Sequence[str],
    swapped: Sequence[str],
    samples: Sequence[Hashable],
    *,
    level: float = 0.95,
) -> BiasMetric:
    """Return how often the response shown first wins, of the calls that name a winner (E8).

    ``p = sum(F) / sum(T)`` over the samples, with ``F`` calls won by the first place and ``T``
    decided calls; 0.5 is fair. Both orders of a vote are asked, so a judge that keeps its winner
    has ``F = T / 2`` in every sample, and only inconsistent votes move the value.

    ``straight`` has the winners with A shown first (``A``, ``B``, or anything else for neither),
    ``swapped`` those with B shown first, mapped back.
    """
    sides = list(zip(straight, swapped, samples, strict=True))
    decided = [(a in {"A", "B"}) + (b in {"A", "B"}) for a, b, _ in sides]
    won = [(a == "A") + (b == "B") for a, b, _ in sides]
    kept = [place for place, calls in enumerate(decided) if calls]
    owners = [samples[place] for place in kept]

    def compute() -> Estimate:
        codes, m = codes_of(owners, len(kept))
        wins, calls = (
            np.bincount(codes, [each[place] for place in kept], m).astype(np.float64)
            for each in (won, decided)
        )
        value, n = float(wins.sum() / calls.sum()), int(calls.sum())
        return Estimate(value=value, n=n, interval=_ratio_interval(wins, calls, level))

    return BiasQuestion(
        name="position.first_place_win_rate",
        needs="a pair with a winner",
        sentence="The response shown first wins {} of the decided calls",
        share=True,
        fair=0.5,
        none="no significant position bias",
        above="the judge favors the first place",
        below="the judge favors the second place",
    ).answer(owners, sum(decided), compute)


def _ratio_interval(wins: Values, calls: Values, level: float) -> Interval:
    """Return ``p -+ t sqrt(m/(m - 1) sum((F - pT)^2)) / sum(T)`` over the samples.

    Two imagined votes, one won by the first place in both orders and one by the second, keep it
    honest where hardly any vote is inconsistent.

    References: W. G. Cochran (1977), "Sampling Techniques", section 6.3 (ratios over clusters);
    D. G. Bonett and R. M. Price (2012), "Adjusted Wald confidence interval for a difference of
    binomial proportions based on paired data", Journal of Educational and Behavioral Statistics
    37, 479-488 (the imagined observations).
    """
    value = float(wins.sum() / calls.sum())
    won = np.concatenate([wins, [_CALLS, 0.0]])
    asked = np.concatenate([calls, [_CALLS, _CALLS]])
    m, total = len(asked), float(asked.sum())
    center = float(won.sum()) / total
    spread = m / (m - 1) * float(np.sum((won - center * asked) ** 2))
    half = t_quantile((1 + level) / 2, m - 1) * spread**0.5 / total
    return Interval(
        # Pulled towards the middle by the imagined votes, it must still contain what was seen.
        low=max(0.0, min(value, center - half)),
        high=min(1.0, max(value, center + half)),
        level=level,
        method=f"adjusted ratio, {m - 2:,} clusters",
    )


def swap_consistency(
    straight: Sequence[str],
    swapped: Sequence[str],
    samples: Sequence[Hashable],
    *,
    level: float = 0.95,
) -> BiasMetric:
    """Return the share of votes whose outcome stays when the responses change places (E8).

    ``sum(straight == swapped) / votes``, the second already mapped back; two ties agree.
    """
    same = [one == other for one, other in zip(straight, swapped, strict=True)]
    return BiasQuestion(
        name="position.swap_consistency",
        needs="a vote in both orders",
        sentence="The verdict stays the same in {} of the votes when the responses change places",
        share=True,
    ).answer(samples, len(same), lambda: proportion(same, clusters=samples, level=level))


def flip_rate(
    criterion: str, kept: Sequence[bool], samples: Sequence[Hashable], *, level: float = 0.95
) -> BiasMetric:
    """Return the share of votes whose preference for a criterion flips with the places."""
    flipped = [not each for each in kept]
    return BiasQuestion(
        name=f"position.flips.{criterion}",
        needs=f"a preference for `{criterion}` in both orders",
        sentence=f"The preference for `{criterion}` flips with the places in {{}} of the votes",
        share=True,
    ).answer(samples, len(kept), lambda: proportion(flipped, clusters=samples, level=level))


class ResponseKind(msgspec.Struct, frozen=True, kw_only=True):
    """Which of two responses is measured, in words: ``the longer response``."""

    name: str
    which: str
    favor: str
    pairs: str

    def question(self, sentence: str, *, fair: float, needs: str) -> BiasQuestion:
        """Return how often it is preferred, as a question."""
        return BiasQuestion(
            name=self.name,
            needs=f"{self.pairs}{needs}",
            sentence=sentence,
            share=bool(fair),
            fair=fair,
            above=f"the judge favors {self.favor}",
            below=f"the judge disfavors {self.favor}",
        )


LONGER: Final = ResponseKind(
    name="verbosity.longer_win_rate",
    which="the longer response",
    favor="longer responses",
    pairs="two responses of different length",
)
LONGER_EXCESS: Final = msgspec.structs.replace(LONGER, name="verbosity.longer_win_excess")
OWN: Final = ResponseKind(
    name="self_preference.own_win_rate",
    which="the response of the judge's own family",
    favor="its own family",
    pairs="one response of the judge's family and one of another",
)
OWN_EXCESS: Final = msgspec.structs.replace(OWN, name="self_preference.own_win_excess")


def formatted(mark: str) -> ResponseKind:
    """Return the kind of response that has a mark of layout, where the other one hasn't."""
    return ResponseKind(
        name=f"formatting.{mark}.win_rate",
        which=f"the response with {mark}",
        favor=mark,
        pairs="one response with it and one without",
    )


def win_rate(
    shares: Sequence[float], samples: Sequence[Hashable], kind: ResponseKind, *, level: float = 0.95
) -> BiasMetric:
    """Return how often a kind of response wins, of the votes that name a winner.

    ``shares`` has 1 for each vote it wins, 0 for each it loses, and 0.5 for ties, which are left
    out. The interval is Wilson's over samples.
    """
    decided = [(each > _TIE, s) for each, s in zip(shares, samples, strict=True) if each != _TIE]
    won, owners = [won for won, _ in decided], [sample for _, sample in decided]
    sentence = f"Of two responses, {kind.which} wins {{}} of the decided votes"
    return kind.question(sentence, fair=0.5, needs=" and a winner").answer(
        owners, len(won), lambda: proportion(won, clusters=owners, level=level)
    )


def win_rate_at_equal(
    shares: Numbers,
    difference: Sequence[float],
    samples: Sequence[Hashable],
    kind: ResponseKind,
    *,
    level: float = 0.95,
) -> BiasMetric:
    """Return how often a kind of response wins where the two don't differ in something else.

    The intercept of ``share = b0 + b1 difference`` by least squares over clusters, kept within 0
    and 1; ties count as half.
    """

    def compute() -> Estimate:
        n, m = len(shares), len(set(samples))
        if np.ptp(shares) == 0:
            # Nothing varies, so nothing can go with the difference.
            value = float(shares[0])
            return Estimate(value=value, n=n, interval=wilson(value * m, m, level))
        varied = [np.ones(n), *([np.asarray(difference)] if np.ptp(difference) else [])]
        found = coefficient(shares, varied, samples, intercept=False, level=level)
        if found.value is None or found.interval is None:
            return found
        ends = found.interval
        value, low, high = (min(1.0, max(0.0, x)) for x in (found.value, ends.low, ends.high))
        return Estimate(
            value=value, n=n, interval=msgspec.structs.replace(ends, low=low, high=high)
        )

    sentence = f"At equal length, {kind.which} wins {{}} of the votes"
    return kind.question(sentence, fair=0.5, needs="").answer(samples, len(shares), compute)


def win_excess(
    shares: Sequence[float],
    people: Sequence[float],
    samples: Sequence[Hashable],
    kind: ResponseKind,
    *,
    level: float = 0.95,
) -> BiasMetric:
    """Return how much more often the judge prefers a kind of response than people do.

    The mean of the judge's share minus people's over the same votes, ties as half; 0 is fair
    whatever people prefer.
    """
    apart = [one - other for one, other in zip(shares, people, strict=True)]
    sentence = f"Compared with people, the judge prefers {kind.which} by {{}} of the votes"
    return kind.question(sentence, fair=0.0, needs=" and a winner by people").answer(
        samples, len(apart), lambda: mean_of(apart, clusters=samples, ends=(-1.0, 1.0), level=level)
    )


_BY_LENGTH: Final = BiasQuestion(
    name="verbosity.correlation",
    needs="a score",
    sentence="Score and length correlate by {}",
    fair=0.0,
    none="no significant relation",
    above="longer responses get higher scores",
    below="longer responses get lower scores",
)
_BY_LENGTH_GIVEN_GOLD: Final = BiasQuestion(
    name="verbosity.correlation_given_gold",
    needs="a score by people",
    sentence="At equal scores by people, score and length correlate by {}",
    fair=0.0,
    above="the judge favors longer responses",
    below="the judge favors shorter responses",
)


def score_by_length(
    scores: Numbers,
    words: Sequence[int] | Values,
    samples: Sequence[Hashable],
    gold: Numbers | None = None,
    *,
    level: float = 0.95,
) -> BiasMetric:
    """Return how scores go with length: their rank correlation.

    Longer responses may be better ones, so this alone is no fault of the judge. With people's
    scores (``gold``) it is at equal quality as they see it: the partial rank correlation.
    """
    y, length = np.asarray(scores, dtype=np.float64), np.asarray(words)

    def compute() -> Estimate:
        found = rank_correlation(y, length, samples, given=gold, level=level)
        if found.value is not None:
            return found
        why = f"all responses have the same {'length' if np.ptp(y) else 'score'}"
        if gold is not None:
            why = "at equal scores by people nothing is left that varies"
        return Estimate(value=None, n=found.n, reason=why)

    asked = _BY_LENGTH if gold is None else _BY_LENGTH_GIVEN_GOLD
    return asked.answer(samples, len(y), compute)


def difference_by_mark(
    mark: str,
    scores: Numbers,
    has: Sequence[bool],
    words: Sequence[int],
    samples: Sequence[Hashable],
    *,
    level: float = 0.95,
) -> BiasMetric:
    """Return how much higher responses with a mark of layout are scored, at equal length."""
    length = np.asarray(words, dtype=np.float64)
    columns = [length] if len(length) and np.ptp(length) else []
    asked = BiasQuestion(
        name=f"formatting.{mark}.difference",
        needs="a score",
        sentence=f"At equal length, responses with {mark} get {{}} of the scale more than others",
        fair=0.0,
        above=f"the judge favors {mark}",
        below=f"the judge disfavors {mark}",
    )
    return asked.answer(
        samples,
        len(scores),
        lambda: _difference(scores, has, columns, samples, ("with it", "without it"), level),
    )


def own_against_others(
    scores: Numbers,
    own: Sequence[bool],
    judges: Sequence[str],
    samples: Sequence[Hashable],
    *,
    given_gold: bool = False,
    level: float = 0.95,
) -> BiasMetric:
    """Return how much higher a judge scores its own family's responses than others'.

    The difference of the means, within each family of judges where there are several. With
    ``given_gold`` the scores are the judge's minus people's.
    """
    # One of the families is the intercept.
    columns = [
        np.array([each == family for each in judges], dtype=np.float64)
        for family in sorted(set(judges))[1:]
    ]
    kinds = ("of the judge's own family", "of another family")
    beyond = " beyond what people give" if given_gold else ""
    asked = BiasQuestion(
        name=f"self_preference.score_difference{'_given_gold' if given_gold else ''}",
        needs="a response by a known model" + (" and gold" if given_gold else ""),
        sentence="Responses of the judge's own family get {} of the scale more than others"
        + beyond,
        fair=0.0,
        none="no significant self-preference",
        above="the judge favors its own family",
        below="the judge is harder on its own family",
    )
    return asked.answer(
        samples, len(scores), lambda: _difference(scores, own, columns, samples, kinds, level)
    )


def _difference(
    scores: Numbers,
    has: Sequence[bool],
    others: Sequence[Values],
    samples: Sequence[Hashable],
    named: tuple[str, str],
    level: float,
) -> Estimate:
    """Return how much higher responses of a kind are scored, at equal other columns."""
    for kind, what in zip((True, False), named, strict=True):
        count = len({each for each, is_kind in zip(samples, has, strict=True) if is_kind is kind})
        if count < FEWEST_OF_A_KIND:
            found = f"responses of only {count} samples are" if count else "no response is"
            why = f"{found} {what}, and {FEWEST_OF_A_KIND} samples of each kind are needed"
            return Estimate(value=None, n=len(scores), reason=why)
    columns = [np.asarray(has, dtype=np.float64), *others]
    return coefficient(scores, columns, samples, level=level)
