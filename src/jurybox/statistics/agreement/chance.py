"""Gwet's AC1 and AC2: agreement beyond chance that high prevalence doesn't break.

Kappa takes for chance that two raters score at the rates that were seen, so where nearly all scores
are one value nearly all agreement is chance. Gwet takes for chance that only scores of hard items
are guessed, ``e = T / (q (q - 1)) sum(p (1 - p))`` over the ``q`` points of the declared scale,
with ``p`` the share of each score and ``T`` the sum of all weights; plain agreement has ``T = q``.

Reference: K. L. Gwet (2008), "Computing inter-rater reliability and its variance in the presence of
high agreement", British Journal of Mathematical and Statistical Psychology 61, 29-48; K. L. Gwet
(2014), "Handbook of Inter-Rater Reliability", 4th edition, chapter 5.
"""

import numpy as np

from jurybox.rubric.scale import Scale
from jurybox.statistics.agreement.cells import Values, Weighted, divided


def points_of(scale: Scale) -> int | None:
    """Return how many points a scale has; a continuous one has none to count."""
    return None if scale.continuous else round(scale.high - scale.low) + 1


def ac1(draws: Weighted, points: int) -> Values:
    """Return ``(p - e) / (1 - e)`` with equal or not as weight."""
    seen = divided(draws.equal, draws.n, where=draws.n > 0)
    return beyond(seen, _spread(draws), points)


def ac2(draws: Weighted, points: int) -> Values:
    """Return the same with quadratic weights, ``1 - ((x - y) / (q - 1))^2``."""
    cells = draws.cells
    apart = (cells.values[cells.x] - cells.values[cells.y]) / (points - 1)
    seen = 1 - divided(draws.weights @ apart**2, draws.n, where=draws.n > 0)
    return beyond(seen, quadratic_total(points) / points * _spread(draws), points)


def quadratic_total(points: int) -> float:
    """Return the sum of the quadratic weights over all pairs of points."""
    return points**2 - points**2 * (points + 1) / (6 * (points - 1))


def beyond(seen: Values, spread: Values, points: int) -> Values:
    """Return agreement beyond the chance of ``spread / (q - 1)``."""
    chance = spread / (points - 1)
    return divided(seen - chance, 1 - chance, where=chance < 1)


def _spread(draws: Weighted) -> Values:
    share = (draws.left + draws.right) / (2 * np.maximum(draws.n, 1)[:, None])
    return np.sum(share * (1 - share), axis=1)
