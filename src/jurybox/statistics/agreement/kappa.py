"""Cohen's kappa, plain and weighted over the declared scale.

Kappa is ``1 - D / E``: the disagreement ``D`` that was seen over the one ``E`` that two raters
would show who score at the same rates without looking. Disagreeing costs 1 (plain), the distance of
the two scores (linear) or its square (quadratic).

The distance is that of the scores *as declared*, not of their places among the scores that happen
to occur: where nobody gave a 3, a 2 and a 4 are still two apart. Dividing it by the length of the
scale changes nothing, for it does so above and below; so a continuous scale has weighted kappas as
well (the quadratic one is then Lin's concordance coefficient).

References: J. Cohen (1960), "A coefficient of agreement for nominal scales", Educational and
Psychological Measurement 20, 37-46; J. Cohen (1968), "Weighted kappa", Psychological Bulletin 70,
213-220; L. I. Lin (1989), "A concordance correlation coefficient to evaluate reproducibility",
Biometrics 45, 255-268.
"""

import numpy as np

from jurybox.statistics.agreement.cells import Values, Weighted, divided


def exact(draws: Weighted) -> Values:
    """Return the share of items with the same score."""
    return divided(draws.equal, draws.n, where=draws.n > 0)


def kappa(draws: Weighted) -> Values:
    """Return plain kappa, ``(p - e) / (1 - e)``; undefined where all scores are one."""
    # In counts, not shares: whole numbers are exact, and 1 - e is zero where it should be.
    chance = np.sum(draws.left * draws.right, axis=1)
    n = draws.n
    return divided(n * draws.equal - chance, n**2 - chance, where=draws.some_vary)


def kappa_linear(draws: Weighted) -> Values:
    """Return kappa with the distance of the scores as weight.

    The mean distance of two independent scores is ``sum(gap * (F (1 - G) + G (1 - F)))`` over the
    gaps between neighbouring scores, with ``F`` and ``G`` the shares at or below them.
    """
    cells, whole = draws.cells, draws.n[:, None]
    below, also = (np.cumsum(each, axis=1)[:, :-1] for each in (draws.left, draws.right))
    chance = (below * (whole - also) + also * (whole - below)) @ np.diff(cells.values)
    seen = draws.weights @ np.abs(cells.values[cells.x] - cells.values[cells.y])
    return 1 - divided(draws.n * seen, chance, where=draws.some_vary)


def kappa_quadratic(draws: Weighted) -> Values:
    """Return kappa with the squared distance of the scores as weight."""
    cells, n = draws.cells, draws.n
    v = centred(cells.values)
    x, y = v[cells.x], v[cells.y]
    chance = n * (draws.weights @ (x**2 + y**2)) - 2 * (draws.weights @ x) * (draws.weights @ y)
    seen = draws.weights @ (x - y) ** 2
    return 1 - divided(n * seen, chance, where=draws.some_vary)


def centred(values: Values) -> Values:
    """Move values round zero, where squares lose no digits."""
    return values - (values[0] + values[-1]) / 2 if len(values) else values
