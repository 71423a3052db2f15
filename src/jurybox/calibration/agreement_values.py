"""What holding a judge against people gives, as values; reading them again needs no numpy."""

import msgspec

from jurybox.statistics.estimates import Estimate, Interval


class Ceiling(msgspec.Struct, frozen=True, kw_only=True):
    """How far people agree with each other: no judge can be asked for much more.

    Attributes:
        people: how many people there are.
        n: how many samples have what two or more of them say.
        exact: how often two of them say the same, over all pairs of people.
        kappa: their kappa, the mean over all pairs of people by the samples that they share.
        judge_kappa: the judge's kappa with one of them at a time: with the mean of several, as
            elsewhere, it is easier to agree.
        alpha: Krippendorff's alpha of all of them.

    """

    people: int
    n: int
    exact: float | None
    kappa: float | None
    judge_kappa: float | None
    alpha: Estimate


class Confusion(msgspec.Struct, frozen=True, kw_only=True):
    """How often people said one thing (rows) and the judge another (columns)."""

    labels: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]


class Disagreement(msgspec.Struct, frozen=True, kw_only=True):
    """A sample on which they are far apart, with what both say about why."""

    sample_id: str
    people: float | str
    judge: float | str | None
    judge_reasoning: str = ""
    people_reasoning: str = ""


class JudgeBias(msgspec.Struct, frozen=True, kw_only=True):
    """By how much the judge scores higher than people, on average.

    ``direction`` is ``undecided`` where that could be chance.
    """

    value: float | None
    interval: Interval | None
    direction: str
    sentence: str
    reason: str | None = None


class CriterionAgreement(msgspec.Struct, frozen=True, kw_only=True):
    """How far the judge agrees with people on one criterion, or on who wins.

    Attributes:
        criterion: its id; ``winner`` for pairs.
        scale: its ends; None for pairs.
        n: how many samples both have judged.
        unscored: how many only people have.
        exact: how often they say the same, people's mean rounded to the scale.
        kappa: Cohen's with quadratic weights over the declared scale; unweighted for pairs.
        spearman: the correlation of ranks; None for pairs.
        bias: None for pairs.
        error: the mean of ``|judge - people|``; None for pairs.
        unstable: of how many pairs the judge's winner changes with the order.
        note: what has to be known to read kappa.

    """

    criterion: str
    scale: tuple[float, float] | None
    n: int
    unscored: int
    exact: Estimate
    kappa: Estimate
    spearman: Estimate | None = None
    bias: JudgeBias | None = None
    error: float | None = None
    unstable: int | None = None
    ceiling: Ceiling | None = None
    confusion: Confusion | None = None
    worst: tuple[Disagreement, ...] = ()
    note: str | None = None


class Agreement(msgspec.Struct, frozen=True, kw_only=True):
    """How far a judge agrees with people on a set of samples.

    Attributes:
        n: how many samples.
        loss: the mean distance of judge and people.
        criteria: each on its own.
        methods: how the samples were judged, as reports call it: figures say nothing of others.

    """

    n: int
    loss: float | None
    criteria: tuple[CriterionAgreement, ...]
    methods: tuple[str, ...] = ()
