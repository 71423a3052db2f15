"""Bias metrics of a run's judges: position, length, formatting and self-preference."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple, Protocol, TypeVar

import msgspec
import numpy as np

from jurybox.calibration.bias_results import Bias, BiasMetric, percent, side_of, signed, unmeasured
from jurybox.calibration.observations import (
    GradedResponse,
    Observations,
    ObservedVote,
    ScoredResponse,
    share_of,
)
from jurybox.judging.formats.reply_format import Side
from jurybox.statistics.cluster_regression import Numbers, coefficient, rank_correlation
from jurybox.statistics.estimates import Estimate, Interval
from jurybox.statistics.intervals import Values, codes_of, mean_of, proportion, t_quantile, wilson

FEWEST_SAMPLES: Final = 10
"""The minimum number of samples; with fewer, an interval would be meaningless."""

_FEWEST_OF_A_KIND: Final = 5
_TIE: Final = 0.5
_CALLS: Final = 2.0  # of one vote
_HUNDRED: Final = 100
_NO_PAIRS: Final = "the run compares no pairs"
_NO_SCORES: Final = "the run scores no single responses"
_NO_GOLD: Final = (
    "no row has human labels: `gold` for all criteria or the overall score, or `gold_winner`"
)
_ANONYMOUS: Final = (
    "the rows don't name the models that wrote the responses (`model`, or `model_a` and `model_b`)"
)


def measure(seen: Observations, level: float = 0.95) -> tuple[Bias, ...]:
    """Return all metrics of the stored votes, with reasons for those that aren't measurable."""
    return (
        Bias(bias="position", metrics=tuple(position(seen, level))),
        Bias(bias="verbosity", metrics=tuple(_verbosity(seen, level))),
        Bias(bias="self_preference", metrics=tuple(_self_preference(seen, level))),
        Bias(bias="formatting", metrics=tuple(_formatting(seen, level))),
    )


class _Observed(Protocol):
    @property
    def sample(self) -> str: ...


R = TypeVar("R", bound=_Observed)
Compute = Callable[[Sequence[R], Sequence[str], float], Estimate]
"""Computes a metric from rows, their samples, and the confidence level."""


class _Words(msgspec.Struct, frozen=True, kw_only=True):
    """The wording of a metric's sentence.

    ``needs`` names what samples must have; ``sentence`` has ``{}`` for the value. With a ``fair``
    value, the sentence ends with ``none`` if the interval contains it, or else with ``above`` or
    ``below``.
    """

    needs: str
    sentence: str
    share: bool = False
    fair: float | None = None
    none: str = "no significant bias"
    above: str = ""
    below: str = ""


def _measured(
    name: str,
    words: _Words,
    rows: Sequence[R],
    compute: Compute[R],
    level: float,
    reason: str | None = None,
) -> BiasMetric:
    """Return a metric of these rows; a ``reason`` or too few samples leave it without a value."""
    samples = [row.sample for row in rows]
    count = len(set(samples))
    reason = reason or _too_few(count, words.needs)
    if reason is not None:
        return unmeasured(name, reason, n=len(rows), samples=count)
    found = compute(rows, samples, level)
    if found.value is None:
        return unmeasured(name, found.reason or "", n=found.n, samples=count)
    shown = (percent if words.share else signed)(found.value, found.interval)
    verdict = ""
    if words.fair is not None:
        verdicts = {0: words.none, 1: words.above, -1: words.below}
        verdict = f": {verdicts[side_of(found.interval, words.fair)]}"
    return BiasMetric(
        name=name,
        value=found.value,
        n=found.n,
        samples=count,
        interval=found.interval,
        reason=found.reason,
        sentence=f"{words.sentence.format(shown)}{verdict}.",
    )


def _too_few(samples: int, what: str) -> str | None:
    if samples >= FEWEST_SAMPLES:
        return None
    count = "no sample has" if not samples else f"only {samples} samples have"
    count = "only 1 sample has" if samples == 1 else count
    return f"{count} {what}, and {FEWEST_SAMPLES} are needed"


def _rate_of(holds: Callable[[R], bool]) -> Compute[R]:
    """Return a function that computes the share of rows with a property."""

    def compute(rows: Sequence[R], samples: Sequence[str], level: float) -> Estimate:
        return proportion([holds(row) for row in rows], clusters=samples, level=level)

    return compute


_FIRST_PLACE: Final = _Words(
    needs="a pair with a winner",
    sentence="The response shown first wins {} of the decided calls",
    share=True,
    fair=0.5,
    none="no significant position bias",
    above="the judge favors the first position",
    below="the judge favors the second position",
)
_CONSISTENCY: Final = _Words(
    needs="a vote in both orders",
    sentence="The verdict stays the same in {} of the votes when the responses change places",
    share=True,
)


def position(seen: Observations, level: float = 0.95) -> Iterator[BiasMetric]:
    """Yield the effect of the order of two responses.

    The metrics are how often the response shown first wins, among calls that name a winner; the
    share of votes with the same outcome in both orders, including two ties; and for each criterion,
    the share of votes whose preference flips with the order.
    """
    votes = seen.voted
    none = None if votes else _NO_PAIRS
    decided = [vote for vote in votes if _calls(vote)]
    yield _measured(
        "position.first_place_win_rate", _FIRST_PLACE, decided, _first_place, level, none
    )
    stays: Compute[ObservedVote] = _rate_of(lambda vote: vote.straight == vote.swapped)
    yield _measured("position.swap_consistency", _CONSISTENCY, votes, stays, level, none)
    for name in dict.fromkeys((*seen.criteria, *(name for vote in votes for name in vote.kept))):
        words = _Words(
            needs=f"a preference for `{name}` in both orders",
            sentence=f"The preference for `{name}` flips with the order in {{}} of the votes",
            share=True,
        )
        asked = [vote for vote in votes if name in vote.kept]
        flips: Compute[ObservedVote] = _rate_of(lambda vote, name=name: not vote.kept[name])
        yield _measured(f"position.flips.{name}", words, asked, flips, level, none)


def _calls(vote: ObservedVote) -> int:
    """Return how many of a vote's two calls name a winner."""
    return (vote.straight in {"A", "B"}) + (vote.swapped in {"A", "B"})


def _first_place(votes: Sequence[ObservedVote], samples: Sequence[str], level: float) -> Estimate:
    """Return ``p = sum(F) / sum(T)`` over the samples.

    ``F`` counts the calls won by the first position and ``T`` the decided calls; 0.5 is fair. A
    vote has both orders, so a judge that keeps its winner has ``F = T / 2`` in every sample, and
    only inconsistent votes move the value.
    """
    codes, m = codes_of(samples, len(votes))
    won = [(vote.straight == "A") + (vote.swapped == "B") for vote in votes]
    wins, calls = (
        np.bincount(codes, each, m).astype(np.float64) for each in (won, [*map(_calls, votes)])
    )
    value, n = float(wins.sum() / calls.sum()), int(calls.sum())
    return Estimate(value=value, n=n, interval=_ratio_interval(wins, calls, level))


def _ratio_interval(wins: Values, calls: Values, level: float) -> Interval:
    """Return ``p -+ t sqrt(m/(m - 1) sum((F - pT)^2)) / sum(T)`` over the samples.

    Two pseudo-votes, one won by the first position in both orders and one by the second, keep the
    interval valid if hardly any vote is inconsistent.

    References: W. G. Cochran (1977), "Sampling Techniques", section 6.3 (ratios over clusters);
    D. G. Bonett and R. M. Price (2012), "Adjusted Wald confidence interval for a difference of
    binomial proportions based on paired data", Journal of Educational and Behavioral Statistics
    37, 479-488 (the pseudo-observations).
    """
    value = float(wins.sum() / calls.sum())
    won = np.concatenate([wins, [_CALLS, 0.0]])
    asked = np.concatenate([calls, [_CALLS, _CALLS]])
    m, total = len(asked), float(asked.sum())
    center = float(won.sum()) / total
    spread = m / (m - 1) * float(np.sum((won - center * asked) ** 2))
    half = t_quantile((1 + level) / 2, m - 1) * spread**0.5 / total
    return Interval(
        # The pseudo-votes move the interval to the middle; it must contain the observed value.
        low=max(0.0, min(value, center - half)),
        high=min(1.0, max(value, center + half)),
        level=level,
        method=f"adjusted ratio, {m - 2:,} clusters",
    )


class _Kind(NamedTuple):
    """Which of two responses is measured, such as ``the longer response``."""

    name: str
    which: str
    favor: str
    pairs: str

    def words(self, sentence: str, fair: float, needs: str = "") -> _Words:
        return _Words(
            needs=f"{self.pairs}{needs}",
            sentence=sentence,
            share=bool(fair),
            fair=fair,
            above=f"the judge favors {self.favor}",
            below=f"the judge disfavors {self.favor}",
        )


_LONGER: Final = _Kind(
    "verbosity.longer",
    "the longer response",
    "longer responses",
    "two responses of different length",
)
_OWN: Final = _Kind(
    "self_preference.own",
    "the response of the judge's own family",
    "its own family",
    "one response of the judge's family and one of another",
)


class _Preference(NamedTuple):
    """A vote on a pair with exactly one response of a kind: the share that this response gets.

    ``people`` is this response's share of the human verdict; ``longer`` is how much longer it is
    than the other, in hundreds of words.
    """

    sample: str
    share: float
    people: float | None
    longer: float


def _preferences(
    votes: Sequence[ObservedVote], which: Callable[[ObservedVote], tuple[bool, bool]]
) -> list[_Preference]:
    """Return the votes on pairs in which exactly one response is of the given kind."""
    found: list[_Preference] = []
    for vote in votes:
        a, b = which(vote)
        if a != b:
            side: Side = "A" if a else "B"
            longer = (vote.words[0] - vote.words[1]) / _HUNDRED
            people = None if vote.gold is None else share_of(vote.gold, side)
            share = share_of(vote.winner, side)
            found.append(_Preference(vote.sample, share, people, longer if a else -longer))
    return found


def _wins(
    kind: _Kind,
    votes: Sequence[ObservedVote],
    which: Callable[[ObservedVote], tuple[bool, bool]],
    level: float,
    reason: str | None = None,
) -> Iterator[BiasMetric]:
    """Yield how often a kind of response wins, and how much more often than in people's verdicts.

    The first metric leaves ties out; the second counts a tie as half a win. Its fair value is 0.
    """
    rows = _preferences(votes, which)
    reason = reason or (None if votes else _NO_PAIRS)
    words = kind.words(
        f"Of two responses, {kind.which} wins {{}} of the decided votes", 0.5, " and a winner"
    )
    decided = [row for row in rows if row.share != _TIE]
    won: Compute[_Preference] = _rate_of(lambda row: row.share > _TIE)
    yield _measured(f"{kind.name}_win_rate", words, decided, won, level, reason)
    sentence = f"Compared with people, the judge prefers {kind.which} by {{}} of the votes"
    words = kind.words(sentence, 0.0, " and a winner by people")
    known = [row for row in rows if row.people is not None]
    no_gold = None if any(vote.gold for vote in votes) else _NO_GOLD
    yield _measured(f"{kind.name}_win_excess", words, known, _excess, level, reason or no_gold)


def _excess(rows: Sequence[_Preference], samples: Sequence[str], level: float) -> Estimate:
    apart = [row.share - (row.people or 0.0) for row in rows]
    return mean_of(apart, clusters=samples, ends=(-1.0, 1.0), level=level)


S = TypeVar("S", ScoredResponse, GradedResponse)


def _without_gold(rows: Sequence[S]) -> list[S]:
    return [msgspec.structs.replace(row, gold=None) for row in rows]


_BY_LENGTH: Final = _Words(
    needs="a score",
    sentence="The correlation of score and length is {}",
    fair=0.0,
    none="no significant relation",
    above="longer responses get higher scores",
    below="longer responses get lower scores",
)
_BY_LENGTH_GIVEN_GOLD: Final = _Words(
    needs="a score by people",
    sentence="At equal human scores, the correlation of score and length is {}",
    fair=0.0,
    above="the judge favors longer responses",
    below="the judge favors shorter responses",
)


def _verbosity(seen: Observations, level: float) -> Iterator[BiasMetric]:
    """Yield how scores correlate with length, and how often the longer response wins.

    Longer responses may be better, so the correlation alone isn't a bias. With human scores, the
    partial rank correlation compares responses that people score equally.
    """
    none = None if seen.scored else _NO_SCORES
    name, rows = "verbosity.correlation", _without_gold(seen.scored)
    yield _measured(name, _BY_LENGTH, rows, _correlation, level, none)
    known = [row for row in seen.scored if row.gold is not None]
    words, none = _BY_LENGTH_GIVEN_GOLD, none or (None if known else _NO_GOLD)
    yield _measured(f"{name}_given_gold", words, known, _correlation, level, none)
    yield from _wins(
        _LONGER,
        seen.voted,
        lambda vote: (vote.words[0] > vote.words[1], vote.words[1] > vote.words[0]),
        level,
    )


def _correlation(rows: Sequence[ScoredResponse], samples: Sequence[str], level: float) -> Estimate:
    scores, words = [row.score for row in rows], [row.words for row in rows]
    gold = [row.gold for row in rows if row.gold is not None]
    found = rank_correlation(scores, words, samples, given=gold or None, level=level)
    why = f"all responses have the same {'length' if np.ptp(scores) else 'score'}"
    why = "among responses with equal human scores, nothing varies" if gold else why
    return found if found.value is not None else msgspec.structs.replace(found, reason=why)


_OWN_SCORES: Final = _Words(
    needs="a response by a known model",
    sentence="Responses of the judge's own family get {} of the scale more than others",
    fair=0.0,
    none="no significant self-preference",
    above="the judge favors its own family",
    below="the judge is harder on its own family",
)


def _self_preference(seen: Observations, level: float) -> Iterator[BiasMetric]:
    """Yield how much higher a judge scores its own family's responses, and how often these win."""
    why = _one_family({row.maker for row in seen.graded}) if seen.scored else _NO_SCORES
    name, rows = "self_preference.score_difference", _without_gold(seen.graded)
    yield _measured(name, _OWN_SCORES, rows, _own_difference, level, why)
    known = [row for row in seen.graded if row.gold is not None]
    words = msgspec.structs.replace(
        _OWN_SCORES,
        needs=f"{_OWN_SCORES.needs} and gold",
        sentence=f"{_OWN_SCORES.sentence} beyond what people give",
    )
    why = why or (None if known else _NO_GOLD)
    yield _measured(f"{name}_given_gold", words, known, _own_difference, level, why)
    makers = {maker for vote in seen.voted for maker in vote.makers or ()}
    why = _one_family(makers) if seen.voted else None
    yield from _wins(_OWN, seen.voted, _is_own, level, why)


def _one_family(makers: set[str]) -> str | None:
    if not makers:
        return _ANONYMOUS
    if len(makers) == 1:
        return f"all responses come from one family (`{min(makers)}`)"
    return None


def _is_own(vote: ObservedVote) -> tuple[bool, bool]:
    a, b = vote.makers or ("", "")
    return vote.judge == a, vote.judge == b


def _own_difference(
    rows: Sequence[GradedResponse], samples: Sequence[str], level: float
) -> Estimate:
    """Return how much higher judges score their own family's responses, within each judge family.

    With gold labels, the difference from the human score is compared instead of the score.
    """
    scores = [row.score - (row.gold or 0.0) for row in rows]
    # One of the families is the intercept.
    columns = [
        np.array([row.judge == family for row in rows], dtype=np.float64)
        for family in sorted({row.judge for row in rows})[1:]
    ]
    own = [row.judge == row.maker for row in rows]
    kinds = ("of the judge's own family", "of another family")
    return _difference(scores, own, columns, samples, kinds, level)


_BY_LAYOUT: Final = _Words(
    needs="a score",
    sentence="At equal length, formatted responses get {} of the scale more than others",
    fair=0.0,
    above="the judge favors formatting",
    below="the judge disfavors formatting",
)
_FORMATTED: Final = _Kind(
    "formatting",
    "the formatted response",
    "formatting",
    "one formatted and one unformatted response",
)


def _formatting(seen: Observations, level: float) -> Iterator[BiasMetric]:
    """Yield the effect of formatting at equal length, in scores and in pairs."""
    none = None if seen.scored else _NO_SCORES
    yield _measured("formatting.difference", _BY_LAYOUT, seen.scored, _by_layout, level, none)
    words = _FORMATTED.words(f"At equal length, {_FORMATTED.which} wins {{}} of the votes", 0.5)
    rows = _preferences(seen.voted, lambda vote: vote.formatted)
    none = None if seen.voted else _NO_PAIRS
    yield _measured("formatting.win_rate", words, rows, _rate_at_equal, level, none)


def _by_layout(rows: Sequence[ScoredResponse], samples: Sequence[str], level: float) -> Estimate:
    words = np.array([row.words for row in rows], dtype=np.float64)
    columns = [words] if np.ptp(words) else []
    scores, has = [row.score for row in rows], [row.formatted for row in rows]
    return _difference(scores, has, columns, samples, ("formatted", "unformatted"), level)


def _difference(
    scores: Numbers,
    has: Sequence[bool],
    others: Sequence[Values],
    samples: Sequence[str],
    named: tuple[str, str],
    level: float,
) -> Estimate:
    """Return how much higher responses of a kind are scored, with ``others`` held constant."""
    for kind, what in zip((True, False), named, strict=True):
        count = len({each for each, is_kind in zip(samples, has, strict=True) if is_kind is kind})
        if count < _FEWEST_OF_A_KIND:
            found = f"responses of only {count} samples are" if count else "no response is"
            why = f"{found} {what}, and {_FEWEST_OF_A_KIND} samples of each kind are needed"
            return Estimate(value=None, n=len(scores), reason=why)
    return coefficient(scores, [np.asarray(has, dtype=np.float64), *others], samples, level=level)


def _rate_at_equal(rows: Sequence[_Preference], samples: Sequence[str], level: float) -> Estimate:
    """Return how often a kind of response wins against one of equal length; a tie is half a win.

    It is the intercept of ``share = b0 + b1 longer``, by least squares over clusters, limited to
    the range from 0 to 1.
    """
    shares, longer = np.array([row.share for row in rows]), np.array([row.longer for row in rows])
    n, m = len(rows), len(set(samples))
    if np.ptp(shares) == 0:
        # Nothing varies, so there is no correlation.
        value = float(shares[0])
        return Estimate(value=value, n=n, interval=wilson(value * m, m, level))
    varied = [np.ones(n), *([longer] if np.ptp(longer) else [])]
    found = coefficient(shares, varied, samples, intercept=False, level=level)
    if found.value is None or found.interval is None:
        return found
    ends = found.interval
    value, low, high = (min(1.0, max(0.0, x)) for x in (found.value, ends.low, ends.high))
    return Estimate(value=value, n=n, interval=msgspec.structs.replace(ends, low=low, high=high))
