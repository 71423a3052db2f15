"""Intraclass correlation: how much of the scores' variance is the items'.

With ``k`` raters who all scored the same ``n`` items, and the mean squares of a two-way table, R of
items, C of raters, E of the rest and W within items:

- ``ICC(1,1) = (R - W) / (R + (k - 1) W)``: each item was scored by other raters.
- ``ICC(2,1) = (R - E) / (R + (k - 1) E + k (C - E) / n)``: these raters stand for others like them;
  a rater who is always higher disagrees.
- ``ICC(3,1) = (R - E) / (R + (k - 1) E)``: only these raters matter; always higher is no
  disagreement.
- ``ICC(1,k) = (R - W) / R``, ``ICC(2,k) = (R - E) / (R + (C - E) / n)``, ``ICC(3,k) = (R - E) /
R``:
  the same of the mean of the ``k`` raters.

Reference: P. E. Shrout and J. L. Fleiss (1979), "Intraclass correlations: uses in assessing rater
reliability", Psychological Bulletin 86, 420-428.
"""

from typing import Final

import numpy as np

from jurybox.statistics.agreement.cells import Values, divided

FORMS: Final = ("icc_1_1", "icc_2_1", "icc_3_1", "icc_1_k", "icc_2_k", "icc_3_k")


def icc(scores: Values, weights: Values) -> dict[str, Values]:
    """Return the six forms, for rows of weights of the items; NaN where one is undefined.

    ``scores`` has a row for each item and a column for each rater, with nothing missing.
    """
    k = scores.shape[1]
    x = scores - scores.mean()
    n: Values = np.maximum(weights.sum(axis=1), 1)
    grand = weights @ x.mean(axis=1) / n
    items = k * (weights @ x.mean(axis=1) ** 2 - n * grand**2)
    total = weights @ np.sum(x**2, axis=1) - n * k * grand**2
    within = np.maximum(weights @ (k * x.var(axis=1)), 0)
    raters = n * np.sum((weights @ x / n[:, None] - grand[:, None]) ** 2, axis=1)
    rest = np.maximum(within - raters, 0)
    # A draw of one item has no variance between items; it is undefined below.
    free = np.maximum(n - 1, 1)
    r, w = items / free, within / (n * (k - 1))
    c, e = raters / (k - 1), rest / (free * (k - 1))
    # Below this, what is left of the sum of squares is rounding.
    vary = (n > 1) & (total > 1e-12 * max(float(np.sum(x**2)), 1e-300))
    forms = {
        "icc_1_1": (r - w, r + (k - 1) * w),
        "icc_2_1": (r - e, r + (k - 1) * e + k * (c - e) / n),
        "icc_3_1": (r - e, r + (k - 1) * e),
        "icc_1_k": (r - w, r),
        "icc_2_k": (r - e, r + (c - e) / n),
        "icc_3_k": (r - e, r),
    }
    small = 1e-12 * (r + w)
    return {
        name: divided(above, below, where=vary & (below > small))
        for name, (above, below) in forms.items()
    }
