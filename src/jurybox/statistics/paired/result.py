"""What a paired comparison says."""

from typing import Final, Literal

import msgspec

from jurybox.statistics.paired.effects import EffectSize
from jurybox.statistics.paired.significance import Significance
from jurybox.statistics.result import Interval

Verdict = Literal["higher", "lower", "undecided"]

POWER: Final = 0.8
"""With which probability the minimal detectable difference would be found."""


class PairedComparison(msgspec.Struct, frozen=True, kw_only=True):
    """How a figure of run B differs from that of run A on the same samples.

    Attributes:
        n: how many samples have the figure in both.
        clusters: how many independent groups they form, where that was said.
        differing: on how many of them the runs differ.
        mean_a: the mean (or rate) in A; ``None`` without samples, as all that follows.
        mean_b: the mean (or rate) in B.
        difference: B's minus A's.
        interval: where the difference lies; ``None`` where nothing can be said.
        p_value: of ``test``; 1 where no pair differs.
        p_adjusted: the p value after Holm's correction over several criteria, where made.
        test: the test's name and variant.
        others: other tests of the same question.
        effects: sizes of the effect, each on its own scale.
        detectable: the smallest true difference that this many samples, spread like these, would
            show with probability 0.8.
        verdict: whether B is ``higher`` or ``lower``: only where both the interval and the
            (adjusted) p value leave no doubt at the level, else ``undecided``.
        reason: why a figure is missing, in words.
        sentence: all that in one plain sentence.

    """

    n: int
    clusters: int | None = None
    differing: int = 0
    mean_a: float | None = None
    mean_b: float | None = None
    difference: float | None = None
    interval: Interval | None = None
    p_value: float | None = None
    p_adjusted: float | None = None
    test: str | None = None
    others: tuple[Significance, ...] = ()
    effects: tuple[EffectSize, ...] = ()
    detectable: float | None = None
    verdict: Verdict = "undecided"
    reason: str | None = None
    sentence: str = ""
