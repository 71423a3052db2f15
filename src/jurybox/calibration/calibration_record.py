"""The results of comparing a judge with people; doesn't import numpy."""

from collections.abc import Collection, Sequence
from typing import Literal

import msgspec

from jurybox.documents.numbers import show_number
from jurybox.statistics.estimates import Estimate, Interval


class Ceiling(msgspec.Struct, frozen=True, kw_only=True):
    """How well people agree with each other: the upper bound for a judge."""

    people: int
    n: int  # samples with labels by at least two people
    exact: float | None  # how often two people give the same label, over all pairs of people
    kappa: float | None  # the mean over all pairs of people, weighted by their shared samples
    # The judge's kappa with one person at a time, since agreeing with a mean is easier.
    judge_kappa: float | None
    alpha: Estimate  # Krippendorff's alpha of all people


class Confusion(msgspec.Struct, frozen=True, kw_only=True):
    """A confusion matrix: human labels in rows, the judge's in columns."""

    labels: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]

    @property
    def constant(self) -> str:
        """Who gives the same label to every sample: `people`, `judge` or no one (empty)."""
        if sum(map(any, self.counts)) == 1:
            return "people"
        return "judge" if sum(map(any, zip(*self.counts, strict=True))) == 1 else ""


class Disagreement(msgspec.Struct, frozen=True, kw_only=True):
    """A sample with a large difference between judge and people, with the reasons of both."""

    sample_id: str
    people: float | str  # one label, or the labels of several people
    labels: dict[str, float | str] = {}  # the same by person
    judge: float | str | None
    distance: float = 0.0  # the mean over people's labels, as a share of the scale
    number: int | None = None  # the sample's number, if it is in a run
    judge_reasoning: str = ""
    people_reasoning: str = ""

    @property
    def is_split(self) -> bool:
        """Whether people differ from each other too."""
        return len({*self.labels.values()}) > 1


class JudgeBias(msgspec.Struct, frozen=True, kw_only=True):
    """How much higher the judge scores than people, on average."""

    value: float | None
    interval: Interval | None
    direction: str  # "undecided" if it could be chance
    sentence: str
    reason: str | None = None


class CriterionAgreement(msgspec.Struct, frozen=True, kw_only=True):
    """The judge's agreement with people on one criterion, or on the winner of pairs (`winner`).

    If several people labeled a sample, each label counts, and the labels of a sample are a cluster.
    """

    criterion: str
    scale: tuple[float, float] | None  # None for pairs, like spearman, bias and error
    n: int  # samples that people and the judge have judged
    labels: int  # people's labels of these samples
    unscored: int  # samples that only people have judged
    exact: Estimate  # how often both give the same score, rounded to the scale
    kappa: Estimate  # with quadratic weights over the declared scale; unweighted for pairs
    spearman: Estimate | None = None
    bias: JudgeBias | None = None
    error: float | None = None  # the mean of |judge - people|
    unstable: int | None = None  # pairs with a vote whose winner changes with the order
    ceiling: Ceiling | None = None
    confusion: Confusion | None = None
    worst: tuple[Disagreement, ...] = ()
    note: str | None = None  # warnings about interpreting kappa

    @property
    def alike(self) -> str:
        """How many of people's labels the judge gave too."""
        return f"{round((self.exact.value or 0) * self.labels):,} of {self.labels:,}"


class Agreement(msgspec.Struct, frozen=True, kw_only=True):
    """How well a judge agrees with people on a set of samples.

    ``methods`` are the methods of judging that the metrics apply to.
    """

    n: int
    loss: float | None  # the mean distance between judge and people
    criteria: tuple[CriterionAgreement, ...]
    methods: tuple[str, ...] = ()


class Gain(msgspec.Struct, frozen=True, kw_only=True):
    """How a change affects the judge's distance (0 to 1) from people, on the same samples."""

    n: int
    before: float | None
    after: float | None
    difference: float | None  # after minus before; below zero is closer to people
    interval: Interval | None
    clear: bool  # whether it is significantly closer
    sentence: str


class RoundResult(msgspec.Struct, frozen=True, kw_only=True):
    """The effect of a changed rubric on one part of the gold rows."""

    run_id: str
    gain: Gain
    criteria: tuple[CriterionAgreement, ...]


class Round(msgspec.Struct, frozen=True, kw_only=True):
    """One round of the loop: the hypothesis, the change, its measurement and the outcome."""

    number: int
    by: Literal["rule", "model"]
    kind: str = "model"
    criterion: str | None = None
    hypothesis: str = ""
    change: str = ""
    kept: bool = False
    reason: str = ""
    tune: RoundResult | None = None
    select: RoundResult | None = None


class Tuning(msgspec.Struct, frozen=True, kw_only=True):
    """All rounds, and the result of the best rubric on samples that no round used."""

    parts: dict[str, int]  # how many samples each part has
    level: float  # of the intervals that decide a round, adjusted for the number of rounds
    rounds: tuple[Round, ...]
    ended: str | None  # why there were fewer rounds than asked for
    base_version: str
    base_sha256: str
    before: Agreement  # the original rubric on the report part
    gain: Gain | None = None  # of the kept changes on the report part
    written: str | None = None  # the file of the new version


class JudgedRun(msgspec.Struct, frozen=True, kw_only=True):
    """A stored run that a calibration uses; round 0 has the original rubric."""

    run_id: str
    part: str
    round: int
    dollars: float | None = None


class GoldSource(msgspec.Struct, frozen=True, kw_only=True):
    """The file of human labels: its name and hash, and how many rows were used."""

    name: str
    sha256: str
    rows: int
    used: int


class JudgeSetting(msgspec.Struct, frozen=True, kw_only=True):
    """The inputs that a calibration depends on."""

    rubric_version: str
    rubric_sha256: str
    judges: tuple[str, ...]
    judge_version: str | None
    prompt_sha256: str
    votes: int


class Calibration(JudgeSetting, frozen=True, kw_only=True):
    """How well a judge, with one version of a rubric, agrees with people's labels."""

    id: str
    created_at: str
    rubric_id: str
    gold: GoldSource
    seed: int  # of the split and of the sign flips
    metrics: Agreement
    runs: tuple[JudgedRun, ...]  # the runs that it uses
    tuning: Tuning | None = None

    @property
    def dollars(self) -> float | None:
        """The cost of all runs; None if the cost of any is unknown."""
        known = [each.dollars for each in self.runs if each.dollars is not None]
        return sum(known) if len(known) == len(self.runs) else None


class CalibrationStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The calibration that applies to a run, made on ``date`` from ``n`` samples.

    ``agreement`` is kappa with people by criterion; ``stale`` is what has changed since.
    """

    id: str
    date: str
    rubric_version: str
    n: int
    agreement: dict[str, float | None]
    stale: tuple[str, ...] = ()

    @property
    def line(self) -> str:
        """Describe the status in one line."""
        if self.stale:
            why = ", ".join(self.stale)
            return f"calibration is stale: {why} since ({self.rubric_version}, {self.date})"
        kappas = ", ".join(f"{name} {_shown(value)}" for name, value in self.agreement.items())
        return f"calibrated: {kappas} with people (n {self.n}, {self.date})"


def calibration_status(
    known: Sequence[Calibration], setting: JudgeSetting, methods: Collection[str] = ()
) -> CalibrationStatus | None:
    """Return the newest valid calibration; if all are stale, the newest and what has changed.

    ``known`` are the calibrations for the rubric's id, newest first; ``methods`` are the methods by
    which a run was judged, if known.
    """
    if not known:
        return None
    changes = [(each, _changes(each, setting, methods)) for each in known]
    chosen, stale = next((pair for pair in changes if not pair[1]), changes[0])
    return CalibrationStatus(
        id=chosen.id,
        date=chosen.created_at[:10],
        rubric_version=chosen.rubric_version,
        n=chosen.metrics.n,
        agreement={each.criterion: each.kappa.value for each in chosen.metrics.criteria},
        stale=stale,
    )


def _changes(then: Calibration, now: JudgeSetting, methods: Collection[str]) -> tuple[str, ...]:
    found: list[str] = []
    if then.rubric_sha256 != now.rubric_sha256:
        found.append("the rubric has changed")
    elif then.prompt_sha256 != now.prompt_sha256:
        # Only reported for the same rubric: a different rubric always changes the prompt too.
        found.append("the prompt of the judges has changed")
    if sorted(then.judges) != sorted(now.judges):
        found.append(f"the judge has changed (it was {', '.join(then.judges)})")
    elif then.judge_version != now.judge_version:
        found.append(f"the judge's version has changed (it was {then.judge_version or 'unknown'})")
    if then.votes != now.votes:
        found.append(f"the number of votes has changed (it was {then.votes})")
    if not set(methods) <= set(then.metrics.methods):
        was = ", ".join(then.metrics.methods) or "unknown"
        found.append(f"the method of judging has changed (it was {was})")
    return tuple(found)


def _shown(value: float | None) -> str:
    return "unknown" if value is None else show_number(round(value, 2))
