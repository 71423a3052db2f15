"""``jurybox agree``."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from jurybox.cli.output import json_option, print_json
from jurybox.cli.sureness import level_option, resamples_option, seed_option
from jurybox.errors import Unreadable

if TYPE_CHECKING:
    from jurybox.rubric.scale import Scale
    from jurybox.statistics.agreement.panel import PanelAgreement, RaterPair
    from jurybox.statistics.figure import Figure

_ENDS: Final = re.compile(r"\s*(-?[0-9.]+)\s*(?:\.\.|-|\u2013)\s*(-?[0-9.]+?)\s*")
_PAIR: Final = (
    "exact",
    "kappa",
    "kappa_linear",
    "kappa_quadratic",
    "spearman",
    "kendall",
    "pearson",
)


@click.command("agree")
@click.argument("ratings", metavar="RATINGS.jsonl", type=click.Path(path_type=Path))
@click.option(
    "--scale",
    "scale_text",
    metavar="LO-HI",
    required=True,
    help="The scale as it was declared, such as 1-5, -1..1 or 0.0-1.0.",
)
@click.option(
    "--continuous", is_flag=True, help="The scale has no steps; scores may be fractional."
)
@level_option
@resamples_option
@seed_option
@json_option
def command(  # noqa: PLR0917 - click passes them by name
    ratings: Path,
    scale_text: str,
    continuous: bool,
    level: float,
    resamples: int,
    seed: int,
    as_json: bool,
) -> None:
    """Tell how far raters agree, by criterion: all of them together, and each with each.

    A row is {"item": ID, "rater": NAME, "score": NUMBER, "criterion": NAME}; the criterion may be
    left out, and a score of null is a rating that is missing. `-` reads standard input. The figures
    are exact agreement, Cohen's kappa (plain, linear, quadratic), Spearman, Kendall, Pearson,
    Krippendorff's alpha, Fleiss' kappa, Gwet's AC1 and AC2, and intraclass correlations, with
    intervals. Weights are those of the whole scale, not of the scores that happen to occur.

    \b
    Examples:
      jurybox agree ratings.jsonl --scale 1-5
      jurybox agree ratings.jsonl --scale -1..1 --continuous
      jurybox agree ratings.jsonl --scale 0-2 --json
    """  # noqa: D301 - click reads \b as "keep these lines"
    from jurybox.datasets.ratings import read_ratings

    scale = _declared(scale_text, continuous=continuous)
    read = read_ratings(ratings, scale)
    # Slow to import, so after everything that may be refused.
    from jurybox.statistics.agreement.panel import agree_all
    from jurybox.statistics.bootstrap import Resampling

    drawn = Resampling(resamples=resamples, seed=seed, level=level)
    panels = [agree_all(each, scale, resampling=drawn) for each in read]
    if as_json:
        print_json(
            {
                "criteria": [_criterion(panel) for panel in panels],
                "scale": {"low": scale.low, "high": scale.high, "continuous": scale.continuous},
                "level": level,
                "resamples": resamples,
                "seed": seed,
            }
        )
    else:
        from jurybox.cli.agree_view import print_agreement

        print_agreement(panels, scale, level)


def _declared(text: str, *, continuous: bool) -> "Scale":
    """Read the scale; with --continuous its ends may be written without decimals."""
    from jurybox.rubric.scale import Scale

    match = _ENDS.fullmatch(text)
    if continuous and match is not None:
        ends = (end if "." in end else f"{end}.0" for end in match.groups())
        text = "..".join(ends)
    try:
        return Scale.parse(text)
    except Unreadable as error:
        raise Unreadable(error.problem, error.mend, "--scale") from None


def _criterion(panel: "PanelAgreement") -> dict[str, Any]:
    together = {
        **{f"alpha_{name}": figure for name, figure in panel.alpha.items()},
        "fleiss_kappa": panel.fleiss_kappa,
        "ac1": panel.ac1,
        "ac2": panel.ac2,
        **panel.icc,
    }
    return {
        "criterion": panel.criterion,
        "n_items": panel.n_items,
        "raters": panel.raters,
        "alpha": {name: figure.value for name, figure in panel.alpha.items()},
        "fleiss_kappa": panel.fleiss_kappa.value,
        "pairs": [_pair(pair) for pair in panel.pairs],
        "ac1": panel.ac1.value,
        "ac2": panel.ac2.value,
        "icc": {name.removeprefix("icc_"): figure.value for name, figure in panel.icc.items()},
        "n_ratings": panel.n_ratings,
        "n_paired": panel.n_paired,
        "interval": {name: figure.interval for name, figure in together.items()},
        "reasons": _reasons(together),
        "notes": panel.notes,
    }


def _pair(pair: "RaterPair") -> dict[str, Any]:
    figures = pair.agreement.figures
    return {
        "raters": pair.raters,
        "n": pair.agreement.n,
        **{name: figures[name].value for name in _PAIR},
        "interval": {name: figure.interval for name, figure in figures.items()},
        "ac1": figures["ac1"].value,
        "ac2": figures["ac2"].value,
        "reasons": _reasons(figures),
        "note": pair.agreement.note,
    }


def _reasons(figures: "Mapping[str, Figure]") -> dict[str, str]:
    return {name: each.reason for name, each in figures.items() if each.reason is not None}
