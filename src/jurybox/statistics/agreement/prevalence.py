"""Why agreement can be high while kappa is near zero.

Reference: A. R. Feinstein and D. V. Cicchetti (1990), "High agreement but low kappa: I. The
problems of two paradoxes", Journal of Clinical Epidemiology 43, 543-549.
"""

from typing import Final

from jurybox.documents.numbers import show_number

# "Slight" agreement at best, in the words of J. R. Landis and G. G. Koch (1977).
_NEAR_ZERO: Final = 0.2
_HIGH: Final = 0.75


def prevalence_note(
    *, agreed: float, kappa: float | None, common: float, share: float, called: str = "kappa"
) -> str | None:
    """Say why kappa is near zero, or undefined, though most scores are equal; else ``None``.

    Args:
        agreed: the share of items with the same score.
        kappa: agreement beyond chance; ``None`` where all scores are one.
        common: the score that is given most often.
        share: the share of scores that it has.
        called: the name of the coefficient.

    """
    if agreed < _HIGH or (kappa is not None and kappa > _NEAR_ZERO):
        return None
    mostly = f"{share:.0%} of the scores are {show_number(common)}"
    if kappa is None:
        return (
            f"every score is {show_number(common)}, so {called} is undefined: "
            "raters who always give it would agree as well without looking at an item"
        )
    return (
        f"{agreed:.0%} of the items have the same score, yet {called} is {kappa:.2f}: {mostly}, so "
        "raters who give it nearly always would agree about as often without looking at an item; "
        "the data hold too few other scores to tell whether they agree on those "
        "(AC1 is less sensitive to this)"
    )
