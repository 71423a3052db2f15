"""Several tests at once: with twenty criteria, one differs by chance at the 5% level."""

from collections.abc import Sequence


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Return the p values adjusted by Holm's method, in the order they were given.

    Sorted upwards, the i-th of m is multiplied by ``m - i + 1``; none may be smaller than the one
    before it, and none larger than 1. Rejecting where the adjusted value is at most 5% keeps the
    chance of even one false alarm at 5%, whatever the tests have to do with each other.

    Reference: S. Holm (1979), "A simple sequentially rejective multiple test procedure",
    Scandinavian Journal of Statistics 6, 65-70.

    Raises:
        ValueError: one of them is no probability.

    """
    for p in p_values:
        if not 0 <= p <= 1:
            raise ValueError(f"the p value {p} is not between 0 and 1")
    adjusted = [0.0] * len(p_values)
    largest = 0.0
    for done, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        largest = max(largest, min(1.0, (len(p_values) - done) * p_values[index]))
        adjusted[index] = largest
    return tuple(adjusted)
