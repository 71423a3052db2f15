"""Simulates how often 95% intervals cover the true value, for docs/reference/statistics.md.

Each row is one kind of data, with a share of samples that are below the top of the scale (or are a
yes), and a number of samples, labels or clusters. Printed are the share of data sets whose interval
covers, out of those that have one, and the intervals' mean width.
"""

import argparse
from collections.abc import Callable, Sequence

import numpy as np

from jurybox.rubric.scale import Scale
from jurybox.statistics.agreement import agree
from jurybox.statistics.corrected import LabeledScores, corrected_mean
from jurybox.statistics.estimates import Interval
from jurybox.statistics.intervals import mean_of, normal_cdf, proportion
from jurybox.statistics.paired_comparison import compare_paired

RATES = (0.02, 0.05, 0.1, 0.3)
SIZES = (20, 50, 200)
LOW, SHARES = np.array([1.0, 2.0, 3.0, 4.0]), np.array([0.15, 0.1, 0.15, 0.6])
TOP = 5.0
ENDS = (1.0, TOP)
REST = 1000
EACH = 4  # rows of a cluster
ALIKE = 0.3  # the correlation of two rows of a cluster

Rng = np.random.Generator
Simulated = tuple[Interval | None, float]
Simulate = Callable[[Rng, float, int], Simulated]


def yes(rng: Rng, rate: float, n: int) -> np.ndarray:
    """Draw which of ``n`` rows are yes."""
    return rng.random(n) < rate


def yes_in_clusters(rng: Rng, rate: float, clusters: int) -> tuple[np.ndarray, list[int]]:
    """Draw yes or no for each row, the same within a cluster."""
    strength = 1 / ALIKE - 1
    chance = np.repeat(rng.beta(rate * strength, (1 - rate) * strength, clusters), EACH)
    return rng.random(len(chance)) < chance, np.repeat(np.arange(clusters), EACH).tolist()


def scores(rng: Rng, below: np.ndarray) -> np.ndarray:
    """Draw scores of 1 to 5, with 5 for all that aren't below the top."""
    return np.where(below, rng.choice(LOW, len(below), p=SHARES), TOP)


def mean_score(rate: float) -> float:
    """Return the true mean of such scores."""
    return rate * float(LOW @ SHARES) + (1 - rate) * TOP


def judged(rng: Rng, values: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Draw the answers of a judge that is right nine times in ten."""
    return np.where(rng.random(len(values)) < 0.9, values, others)  # noqa: PLR2004 - its number


def share(rng: Rng, rate: float, n: int) -> Simulated:
    """A share."""
    return proportion(yes(rng, rate, n).tolist()).interval, rate


def share_in_clusters(rng: Rng, rate: float, n: int) -> Simulated:
    """A share, with clusters of four rows."""
    outcomes, clusters = yes_in_clusters(rng, rate, n)
    return proportion(outcomes.tolist(), clusters=clusters).interval, rate


def mean(rng: Rng, rate: float, n: int) -> Simulated:
    """A mean of scores near the top."""
    return mean_of(scores(rng, yes(rng, rate, n)), ends=ENDS).interval, mean_score(rate)


def mean_in_clusters(rng: Rng, rate: float, n: int) -> Simulated:
    """A mean of scores near the top, with clusters of four rows."""
    below, clusters = yes_in_clusters(rng, rate, n)
    found = mean_of(scores(rng, below), clusters=clusters, ends=ENDS)
    return found.interval, mean_score(rate)


def corrected_share(rng: Rng, rate: float, n: int) -> Simulated:
    """A corrected rate."""
    people = yes(rng, rate, n + REST)
    judge = judged(rng, people, yes(rng, 0.3, n + REST))
    return corrected_mean(LabeledScores(people[:n], judge[:n], judge[n:])).corrected.interval, rate


def corrected_score(rng: Rng, rate: float, n: int) -> Simulated:
    """A corrected mean of scores near the top."""
    people = scores(rng, yes(rng, rate, n + REST))
    judge = judged(rng, people, scores(rng, yes(rng, 0.3, n + REST)))
    data = LabeledScores(people[:n], judge[:n], judge[n:], ends=ENDS)
    return corrected_mean(data).corrected.interval, mean_score(rate)


def corrected_in_clusters(rng: Rng, rate: float, n: int) -> Simulated:
    """A corrected mean near the top, with clusters partly labeled."""
    below, clusters = yes_in_clusters(rng, rate, (n + REST) // EACH)
    people = scores(rng, below)
    wrong, _ = yes_in_clusters(rng, 0.3, (n + REST) // EACH)
    judge = judged(rng, people, scores(rng, wrong))
    order = rng.permutation(len(people))
    some, rest = order[:n], order[n:]
    data = LabeledScores(
        people[some],
        judge[some],
        judge[rest],
        ends=ENDS,
        clusters=[clusters[i] for i in some],
        rest_clusters=[clusters[i] for i in rest],
    )
    return corrected_mean(data).corrected.interval, mean_score(rate)


def difference(rng: Rng, rate: float, n: int) -> Simulated:
    """A difference of two runs' scores near the top."""
    before, after = (scores(rng, yes(rng, each, n)) for each in (rate, 2 * rate))
    return compare_paired(before, after).interval, mean_score(2 * rate) - mean_score(rate)


def difference_of_shares(rng: Rng, rate: float, n: int) -> Simulated:
    """A difference of two runs' shares."""
    before, after = yes(rng, rate, n), yes(rng, 2 * rate, n)
    return compare_paired(before, after, binary=True).interval, rate


def rated(rng: Rng, n: int, cuts: Sequence[float], agreement: float) -> np.ndarray:
    """Draw scores from 1 to 5 by two raters: a shared quality plus independent noise."""
    quality = rng.standard_normal(n) * agreement**0.5
    noise = rng.standard_normal((2, n)) * (1 - agreement) ** 0.5
    return np.digitize(quality + noise, cuts) + 1.0


EVEN = (-1.28, -0.52, 0.52, 1.28)  # 10, 20, 40, 20, 10%
SKEWED = (-2.05, -1.64, -1.17, -0.39)  # 2, 3, 7, 23, 65%
KAPPAS = {
    f"quadratic kappa {kappa}, {name}": (cuts, agreement)
    for name, cuts, found in (
        ("even", EVEN, {0.5: 0.546, 0.7: 0.763, 0.9: 0.96}),
        ("skewed", SKEWED, {0.5: 0.617, 0.7: 0.804, 0.9: 0.964}),
    )
    for kappa, agreement in found.items()
}
KINDS: tuple[Simulate, ...] = (
    share,
    share_in_clusters,
    mean,
    mean_in_clusters,
    corrected_share,
    corrected_score,
    corrected_in_clusters,
    difference,
    difference_of_shares,
)


def true_kappa(cuts: Sequence[float], agreement: float) -> float:
    """Return the quadratic kappa of all ratings, by adding up over the quality."""
    quality = np.linspace(-8, 8, 4001)
    weight = np.exp(-(quality**2) / 2)
    noise = [(cut - quality * agreement**0.5) / (1 - agreement) ** 0.5 for cut in cuts]
    below = np.array([[normal_cdf(each) for each in row] for row in noise])
    chances = np.diff(below, axis=0, prepend=0, append=1)
    table = (weight * chances) @ chances.T / weight.sum()
    points = np.arange(len(table))
    apart = (points[:, None] - points) ** 2
    margin = table.sum(axis=1)
    return float(1 - np.sum(table * apart) / (margin @ apart @ margin))


def kappa_of(cuts: Sequence[float], agreement: float) -> Simulate:
    """Return the simulation of a quadratic kappa."""
    truth, scale = true_kappa(cuts, agreement), Scale.parse("1-5")

    def simulate(rng: Rng, _: float, n: int) -> Simulated:
        a, b = rated(rng, n, cuts, agreement)
        return agree(a.tolist(), b.tolist(), scale)["kappa_quadratic"].interval, truth

    return simulate


def coverage(simulate: Simulate, rate: float, n: int, sets: int) -> tuple[float, float, int]:
    """Return how many intervals cover, their mean width, and how many data sets have none."""
    rng = np.random.default_rng([int(1000 * rate), n])
    found = [simulate(rng, rate, n) for _ in range(sets)]
    made = [(each, truth) for each, truth in found if each is not None]
    # The ends are exact to nine digits, and so is the comparison.
    covered = [each.low - 1e-9 <= truth <= each.high + 1e-9 for each, truth in made]
    width = float(np.mean([each.high - each.low for each, _ in made])) if made else float("nan")
    return float(np.mean(covered)) if made else float("nan"), width, sets - len(made)


def main() -> None:
    """Print a row for each kind and rate, and a column for each size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=2000)
    sets = parser.parse_args().sets
    rows = [(kind.__doc__ or "", kind, rate) for kind in KINDS for rate in RATES]
    rows += [(name, kappa_of(*each), 0.0) for name, each in KAPPAS.items()]
    print(f"covered of {sets:,} data sets (mean width, data sets without an interval)")
    print(f"{'':60}{'rate':>5}" + "".join(f"{n:>24}" for n in SIZES))
    for name, simulate, rate in rows:
        cells = [coverage(simulate, rate, n, sets) for n in SIZES]
        shown = "".join(f"{share:>10.1%} ({width:.3f}, {none:>4})" for share, width, none in cells)
        print(f"{name:60}{rate:>5} {shown}", flush=True)


if __name__ == "__main__":
    main()
