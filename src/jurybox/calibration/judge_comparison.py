"""Compare a judge with people, criterion by criterion."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

import msgspec
import numpy as np

from jurybox.calibration.calibration_record import (
    Agreement,
    Ceiling,
    Confusion,
    CriterionAgreement,
    Disagreement,
    JudgeBias,
)
from jurybox.calibration.gold import (
    SIDE_NAMES,
    SIDE_SCALE,
    WINNER,
    GoldCase,
    distance,
    gold_scales,
    losses,
)
from jurybox.judging.evaluation_report import show_vote
from jurybox.rubric.metrics import PASSING_RATE
from jurybox.rubric.rubric_model import Rubric
from jurybox.rubric.scale import Scale
from jurybox.scoring.evaluate_sample import passes_with
from jurybox.statistics.agreement import PairAgreement, Ratings, agree, agree_all
from jurybox.statistics.estimates import Estimate
from jurybox.statistics.paired_comparison import compare_paired, described

_CONTINUOUS: Final = "on a continuous scale, scores are rarely exactly equal"
_BANDS: Final = 10
_WORST: Final = 5


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """How metrics are computed."""

    level: float = 0.95
    seed: int = 0  # of the sign flips that decide on a bias
    worst: int = _WORST  # how many disagreements to keep per criterion


def compare(cases: Sequence[GoldCase], rubric: Rubric, options: Options | None = None) -> Agreement:
    """Return how well the judge agrees with people, on everything that people labeled."""
    chosen = options or Options()
    scales = gold_scales(rubric)
    named = [name for name in scales if any(name in case.gold.scores for case in cases)]
    # Criteria in the rubric's order, then the overall score.
    named.sort(key=lambda name: name == rubric.overall_name)
    if any(case.gold.winners for case in cases):
        named.append(WINNER)
    scales[WINNER] = SIDE_SCALE
    titles = {each.id: each.name for each in rubric.criteria}
    found = [_agreement_on(cases, name, scales[name], titles, chosen) for name in named]
    apart = losses(cases, scales).values()
    loss = sum(apart) / len(apart) if apart else None
    methods = sorted({case.verdict.method for case in cases if case.verdict.method is not None})
    return Agreement(n=len(cases), loss=loss, criteria=tuple(found), methods=tuple(methods))


def _agreement_on(
    cases: Sequence[GoldCase],
    name: str,
    scale: Scale,
    titles: Mapping[str, str],
    options: Options,
) -> CriterionAgreement:
    """Return the agreement on a criterion, or on the winner of pairs."""
    asked = [case for case in cases if case.labels(name)]
    scored = [case for case in asked if case.judged(name) is not None]
    # Each person's label counts on its own; the labels of a sample are one cluster.
    both = [(case, label) for case in scored for label in case.labels(name).values()]
    people = [label for _, label in both]
    judge = [case.judged(name) or 0.0 for case, _ in both]
    clusters = clusters_of([case for case, _ in both])
    # A label or the mean of votes may lie between two points; this uses the nearest point.
    near = agree(
        [scale.nearest(each) for each in judge],
        [scale.nearest(each) for each in people],
        scale,
        clusters=clusters,
        level=options.level,
    )
    pairs = name == WINNER
    found = CriterionAgreement(
        criterion=name,
        scale=None,
        n=len(scored),
        labels=len(both),
        unscored=len(asked) - len(scored),
        exact=near["exact"],
        kappa=near["kappa"],
        ceiling=ceiling_of(
            {case.id: case.labels(name) for case in asked},
            {case.id: score for (case, _), score in zip(both, judge, strict=True)},
            scale,
            options.level,
            nominal=pairs,
        ),
        confusion=confusion_of(people, judge, scale, SIDE_NAMES if pairs else None),
        worst=_worst(scored, name, scale, titles, options.worst),
        note=near.note,
    )
    if pairs:
        unstable = sum(case.verdict.stable is False for case in asked)
        return msgspec.structs.replace(found, unstable=unstable)
    made = agree(judge, people, scale, clusters=clusters, level=options.level)
    rarely = Estimate(value=None, n=len(both), reason=_CONTINUOUS)
    apart = [abs(a - b) for a, b in zip(judge, people, strict=True)]
    return msgspec.structs.replace(
        found,
        scale=scale.ends,
        exact=rarely if scale.continuous else found.exact,
        kappa=made["kappa_quadratic"],
        spearman=made["spearman"],
        bias=_bias(name, people, judge, clusters, scale, options),
        error=sum(apart) / len(apart) if apart else None,
    )


def clusters_of(cases: Sequence[GoldCase]) -> list[str] | None:
    """Return each case's cluster, or a hash of its texts; None if all cases are independent."""
    units = [case.cluster or case.words or f"of {case.id}" for case in cases]
    alone = len(set(units)) == len(units)
    return None if alone and all(case.cluster is None for case in cases) else units


def _bias(
    name: str,
    people: Sequence[float],
    judge: Sequence[float],
    clusters: Sequence[str] | None,
    scale: Scale,
    options: Options,
) -> JudgeBias:
    level, seed = options.level, options.seed
    made = compare_paired(people, judge, clusters=clusters, level=level, seed=seed)
    if made.interval is not None:
        # No difference is larger than the scale.
        span = scale.high - scale.low
        low, high = max(-span, made.interval.low), min(span, made.interval.high)
        interval = msgspec.structs.replace(made.interval, low=low, high=high)
        made = msgspec.structs.replace(made, interval=interval)
    return JudgeBias(
        value=made.difference,
        interval=made.interval,
        direction=made.verdict,
        sentence=f"{name}: {described(made, 'people', 'the judge', 'label')}",
        reason=made.reason,
    )


def confusion_of(
    people: Sequence[float],
    judge: Sequence[float],
    scale: Scale,
    labels: tuple[str, ...] | None = None,
) -> Confusion:
    """Return the confusion matrix of people and judge, by point, or by band on a long scale."""
    bins = scale.bins(_BANDS)
    labels = labels or bins.labels()
    counts = [[0] * len(labels) for _ in labels]
    for a, b in zip(people, judge, strict=True):
        counts[bins.place(a)][bins.place(b)] += 1
    return Confusion(labels=labels, counts=tuple(tuple(row) for row in counts))


def labels_on(case: GoldCase, rubric: Rubric) -> tuple[dict[str, tuple[str, ...]], dict[str, str]]:
    """Return people's labels and the judge's; a known overall score or pass has an empty one."""
    scales, scores = gold_scales(rubric) | {WINNER: SIDE_SCALE}, case.gold.scores
    both = {name: _banded(case, name, scale) for name, scale in scales.items()}
    people = {name: labels for name, (labels, _) in both.items() if labels}
    judge = {name: label for name, (_, label) in both.items() if label is not None}
    names = {who for by in scores.values() for who in by}
    own = ({name: by[who] for name, by in scores.items() if who in by} for who in names)
    passes = (passes_with(rubric, each, {}) for each in own if rubric.pass_rules)
    used = {each.id for each in rubric.criteria if each.weight}
    # A sample that the judge could not score doesn't pass.
    whole = [rubric.overall_name] * (used <= judge.keys() & scores.keys())
    whole += [PASSING_RATE] * any(passed is not None for passed in passes)
    return people | dict.fromkeys(whole, ("",)), judge | dict.fromkeys(whole, "")


def _banded(case: GoldCase, name: str, scale: Scale) -> tuple[tuple[str, ...], str | None]:
    bins, judged = scale.bins(_BANDS), case.judged(name)
    labels = SIDE_NAMES if name == WINNER else bins.labels()
    people = tuple(labels[bins.place(each)] for each in case.labels(name).values())
    return people, None if judged is None else labels[bins.place(judged)]


def _worst(
    cases: Sequence[GoldCase], name: str, scale: Scale, titles: Mapping[str, str], most: int
) -> tuple[Disagreement, ...]:
    """Return the cases in which the judge's score isn't everyone's, largest difference first."""
    differing = [
        (case, _apart(case, name, scale))
        for case in cases
        if {scale.nearest(each) for each in case.labels(name).values()}
        != {scale.nearest(case.judged(name) or 0.0)}
    ]
    differing.sort(key=lambda each: (-each[1], each[0].id))
    return tuple(_disagreement(case, name, share, titles) for case, share in differing[:most])


def _apart(case: GoldCase, name: str, scale: Scale) -> float:
    """Return the mean distance of the judge from people's labels, as a share of the scale."""
    score = case.judged(name)
    shares = [distance(label, score, scale) for label in case.labels(name).values()]
    return sum(shares) / len(shares)


def _disagreement(
    case: GoldCase, name: str, share: float, titles: Mapping[str, str]
) -> Disagreement:
    pair, verdict = name == WINNER, case.verdict
    given = case.gold.winners if pair else case.gold.scores[name]
    labels = tuple(given.values())
    reasons = [f"{titles.get(each, each)}: {text}" for each, text in verdict.reasoning.items()]
    return Disagreement(
        sample_id=case.id,
        number=case.number,
        distance=share,
        people=labels[0] if len(labels) == 1 else ", ".join(map(show_vote, labels)),
        labels={**given},
        judge=verdict.winner if pair else verdict.scores.get(name),
        judge_reasoning=" ".join(reasons) if pair else verdict.reasoning.get(name) or "",
        people_reasoning=case.comment(name),
    )


_FEWEST: Final = 2

Given = Mapping[str, Mapping[str, float]]
"""The human labels, by sample and person."""


def ceiling_of(
    given: Given,
    judge: Mapping[str, float],
    scale: Scale,
    level: float = 0.95,
    *,
    nominal: bool = False,
) -> Ceiling | None:
    """Return how well people agree; None if no sample has two labels.

    Kappas have quadratic weights over the declared scale, or no weights for ``nominal`` scores.
    """
    several = {item: people for item, people in given.items() if len(people) >= _FEWEST}
    if not several:
        return None
    names = sorted({who for people in several.values() for who in people})
    with_judge: list[PairAgreement] = []
    for who in names:
        shared = sorted(item for item in several.keys() & judge.keys() if who in several[item])
        own = [several[item][who] for item in shared]
        with_judge.append(agree([judge[item] for item in shared], own, scale))
    kappa = "kappa" if nominal else "kappa_quadratic"
    scores = [[given[item].get(who) for who in names] for item in sorted(several)]
    table = np.array(scores, dtype=np.float64)
    ratings = Ratings(criterion=None, raters=tuple(names), table=table)
    whole = agree_all(ratings, scale, level=level)
    pairs = [pair.agreement for pair in whole.pairs]
    kind = "nominal" if nominal else scale.measurement
    return Ceiling(
        people=len(names),
        n=len(several),
        exact=_weighted_mean(pairs, lambda each: each["exact"].value),
        kappa=_weighted_mean(pairs, lambda each: each[kappa].value),
        judge_kappa=_weighted_mean(with_judge, lambda each: each[kappa].value),
        alpha=whole[f"alpha_{kind}"],
    )


def _weighted_mean(
    pairs: Iterable[PairAgreement], metric: Callable[[PairAgreement], float | None]
) -> float | None:
    """Return the mean over pairs, weighted by shared samples; undefined values are left out."""
    known = [(value, pair.n) for pair in pairs if (value := metric(pair)) is not None]
    total = sum(n for _, n in known)
    return sum(value * n for value, n in known) / total if total else None
