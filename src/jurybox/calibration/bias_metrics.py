"""Bias metrics of a run's judges: position, length, formatting and self-preference."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple, Protocol, TypeVar

import msgspec
import numpy as np

from jurybox.calibration.bias_results import Bias, BiasMetric, percent, side_of, signed, unmeasured
from jurybox.calibration.observations import (
    Observations,
    ObservedVote,
    ScoredResponse,
    share_of,
)
from jurybox.judging.formats.reply_format import Side
from jurybox.statistics.cluster_regression import Numbers, coefficient, rank_correlation
from jurybox.statistics.estimates import Estimate
from jurybox.statistics.intervals import Values, mean_of, proportion, wilson

FEWEST_SAMPLES: Final = 10
"""The minimum number of samples; with fewer, an interval would be meaningless."""

_FEWEST_OF_A_KIND: Final = 5
_TIE: Final = 0.5
_NAMED: Final = frozenset({"A", "B"})
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
    found = {
        "position": position,
        "verbosity": _verbosity,
        "self_preference": _self_preference,
        "formatting": _formatting,
    }
    return tuple(
        Bias(bias=name, metrics=tuple(metrics(seen, level))) for name, metrics in found.items()
    )


class _Observed(Protocol):
    @property
    def sample(self) -> str: ...


R = TypeVar("R", bound=_Observed)
Compute = Callable[[Sequence[R], Sequence[str], float], Estimate]
"""Computes a metric from rows, their samples, and the confidence level."""


def _favors(what: str) -> tuple[str, str, str]:
    """Return the verdicts for judges that are fair to ``what``, favor it, or disfavor it."""
    return "no significant bias", f"the judge favors {what}", f"the judge disfavors {what}"


def _measured(  # noqa: PLR0913 - the parts of a metric, all but the first four by name
    name: str,
    rows: Sequence[R],
    compute: Compute[R],
    level: float,
    *,
    needs: str,
    sentence: str,
    share: bool = False,
    verdicts: tuple[str, str, str] | None = None,
    missing: str | None = None,
) -> BiasMetric:
    """Return a metric of these rows, or the reason why it has no value.

    The reason may be given as ``missing``, or it is that too few samples have what ``needs`` names.
    ``sentence`` describes the metric, with ``{}`` for the value. One of the ``verdicts`` follows:
    the first if the interval contains the fair value, the second if the interval is above the fair
    value, the third if it is below.
    """
    samples = [row.sample for row in rows]
    count = len(set(samples))
    reason = missing or _too_few(count, needs)
    if reason is not None:
        return unmeasured(name, reason, n=len(rows), samples=count)
    found = compute(rows, samples, level)
    if found.value is None:
        return unmeasured(name, found.reason or "", n=found.n, samples=count)
    shown = sentence.format((percent if share else signed)(found.value, found.interval))
    side = side_of(found.interval, _TIE if share else 0.0)
    return BiasMetric(
        name=name,
        value=found.value,
        n=found.n,
        samples=count,
        interval=found.interval,
        reason=found.reason,
        sentence=f"{shown}." if verdicts is None else f"{shown}: {verdicts[side]}.",
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


def position(seen: Observations, level: float = 0.95) -> Iterator[BiasMetric]:
    """Yield the effect of the order of two responses.

    The metrics are how often the response shown first wins, among calls that name a winner; the
    share of votes with the same outcome in both orders, including two ties; and for each criterion,
    the share of votes whose preference flips with the order.
    """
    votes = seen.voted
    none = None if votes else _NO_PAIRS
    yield _measured(
        "position.first_place_win_rate",
        [vote for vote in votes if _NAMED & {vote.straight, vote.swapped}],
        _first_place,
        level,
        needs="a pair with a winner",
        sentence="The response shown first wins {} of the decided calls",
        share=True,
        verdicts=_favors("the first position"),
        missing=none,
    )
    stays: Compute[ObservedVote] = _rate_of(lambda vote: vote.straight == vote.swapped)
    yield _measured(
        "position.swap_consistency",
        votes,
        stays,
        level,
        needs="a vote in both orders",
        sentence="The verdict stays the same in {} of the votes when the responses change places",
        share=True,
        missing=none,
    )
    for name in dict.fromkeys((*seen.criteria, *(name for vote in votes for name in vote.kept))):
        flips: Compute[ObservedVote] = _rate_of(lambda vote, name=name: not vote.kept[name])
        yield _measured(
            f"position.flips.{name}",
            [vote for vote in votes if name in vote.kept],
            flips,
            level,
            needs=f"a preference for `{name}` in both orders",
            sentence=f"The preference for `{name}` flips with the order in {{}} of the votes",
            share=True,
            missing=none,
        )


def _first_place(votes: Sequence[ObservedVote], samples: Sequence[str], level: float) -> Estimate:
    """Return the share of the decided calls that the first position wins.

    A vote has two calls, one in each order, and each call counts as the share of the two that the
    first position wins. A judge that keeps its winner has 0.5 in every vote, so only votes whose
    winner changes with the order move the value.
    """
    shares: list[float] = []
    clusters: list[str] = []
    for vote, sample in zip(votes, samples, strict=True):
        calls = ((vote.straight, "A"), (vote.swapped, "B"))
        won = [winner == first for winner, first in calls if winner in _NAMED]
        shares += [sum(won) / len(won)] * len(won)
        clusters += [sample] * len(won)
    return mean_of(shares, clusters=clusters, ends=(0.0, 1.0), level=level)


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


def _wins(  # noqa: PLR0913 - the words by name
    name: str,
    votes: Sequence[ObservedVote],
    which: Callable[[ObservedVote], tuple[bool, bool]],
    level: float,
    missing: str | None = None,
    *,
    kind: str,
    favor: str,
    needs: str,
) -> Iterator[BiasMetric]:
    """Yield how often a kind of response wins, and how much more often than in people's verdicts.

    The first metric leaves ties out; the second counts a tie as half a win.
    """
    rows = _preferences(votes, which)
    missing = missing or (None if votes else _NO_PAIRS)
    won: Compute[_Preference] = _rate_of(lambda row: row.share > _TIE)
    yield _measured(
        f"{name}_win_rate",
        [row for row in rows if row.share != _TIE],
        won,
        level,
        needs=f"{needs} and a winner",
        sentence=f"Of two responses, {kind} wins {{}} of the decided votes",
        share=True,
        verdicts=_favors(favor),
        missing=missing,
    )
    yield _measured(
        f"{name}_win_excess",
        [row for row in rows if row.people is not None],
        _excess,
        level,
        needs=f"{needs} and a winner by people",
        sentence=f"Compared with people, the judge prefers {kind} by {{}} of the votes",
        verdicts=_favors(favor),
        missing=missing or (None if any(vote.gold for vote in votes) else _NO_GOLD),
    )


def _excess(rows: Sequence[_Preference], samples: Sequence[str], level: float) -> Estimate:
    apart = [row.share - (row.people or 0.0) for row in rows]
    return mean_of(apart, clusters=samples, ends=(-1.0, 1.0), level=level)


def _verbosity(seen: Observations, level: float) -> Iterator[BiasMetric]:
    """Yield how scores correlate with length, and how often the longer response wins.

    Longer responses may be better, so the correlation alone isn't a bias. With human scores, the
    partial rank correlation compares responses that people score equally.
    """
    missing = None if seen.scored else _NO_SCORES
    yield _measured(
        "verbosity.correlation",
        [msgspec.structs.replace(row, gold=None) for row in seen.scored],
        _correlation,
        level,
        needs="a score",
        sentence="The correlation of score and length is {}",
        verdicts=(
            "no significant relation",
            "longer responses get higher scores",
            "longer responses get lower scores",
        ),
        missing=missing,
    )
    known = [row for row in seen.scored if row.gold is not None]
    yield _measured(
        "verbosity.correlation_given_gold",
        known,
        _correlation,
        level,
        needs="a score by people",
        sentence="At equal human scores, the correlation of score and length is {}",
        verdicts=_favors("longer responses"),
        missing=missing or (None if known else _NO_GOLD),
    )
    yield from _wins(
        "verbosity.longer",
        seen.voted,
        lambda vote: (vote.words[0] > vote.words[1], vote.words[1] > vote.words[0]),
        level,
        kind="the longer response",
        favor="longer responses",
        needs="two responses of different length",
    )


def _correlation(rows: Sequence[ScoredResponse], samples: Sequence[str], level: float) -> Estimate:
    scores, words = [row.score for row in rows], [row.words for row in rows]
    gold = [row.gold for row in rows if row.gold is not None]
    found = rank_correlation(scores, words, samples, given=gold or None, level=level)
    why = f"all responses have the same {'length' if np.ptp(scores) else 'score'}"
    why = "among responses with equal human scores, nothing varies" if gold else why
    return found if found.value is not None else msgspec.structs.replace(found, reason=why)


def _self_preference(seen: Observations, level: float) -> Iterator[BiasMetric]:
    """Yield how much higher a judge scores its own family's responses, and how often these win."""
    missing = _one_family({row.maker for row in seen.graded}) if seen.scored else _NO_SCORES
    known = [row for row in seen.graded if row.gold is not None]
    for name, beyond, rows, needs in (
        ("", "", [msgspec.structs.replace(row, gold=None) for row in seen.graded], ""),
        ("_given_gold", " beyond what people give", known, " and gold"),
    ):
        yield _measured(
            f"self_preference.score_difference{name}",
            rows,
            _own_difference,
            level,
            needs=f"a response by a known model{needs}",
            sentence="Responses of the judge's own family get {} of the scale more than others"
            + beyond,
            verdicts=_favors("its own family"),
            missing=missing or (None if rows else _NO_GOLD),
        )
    makers = {maker for vote in seen.voted for maker in vote.makers or ()}
    missing = _one_family(makers) if seen.voted else None
    yield from _wins(
        "self_preference.own",
        seen.voted,
        _is_own,
        level,
        missing,
        kind="the response of the judge's own family",
        favor="its own family",
        needs="one response of the judge's family and one of another",
    )


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
    rows: Sequence[ScoredResponse], samples: Sequence[str], level: float
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


def _formatting(seen: Observations, level: float) -> Iterator[BiasMetric]:
    """Yield the effect of formatting at equal length, in scores and in pairs."""
    yield _measured(
        "formatting.difference",
        seen.scored,
        _by_layout,
        level,
        needs="a score",
        sentence="At equal length, formatted responses get {} of the scale more than others",
        verdicts=_favors("formatting"),
        missing=None if seen.scored else _NO_SCORES,
    )
    yield _measured(
        "formatting.win_rate",
        _preferences(seen.voted, lambda vote: vote.formatted),
        _rate_at_equal,
        level,
        needs="one formatted and one unformatted response",
        sentence="At equal length, the formatted response wins {} of the votes",
        share=True,
        verdicts=_favors("formatting"),
        missing=None if seen.voted else _NO_PAIRS,
    )


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
