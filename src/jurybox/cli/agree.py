"""``jurybox agree``."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import click
from rich.text import Text

from jurybox.cli.options import cluster_option, json_option, level_option, option
from jurybox.cli.output import plain, print_line, print_result, print_table
from jurybox.datasets.ratings import RatingScale, labeled_scale, read_ratings
from jurybox.errors import ParseError
from jurybox.rubric.scale import Scale
from jurybox.statistics.agreement import (
    PAIR_STATISTICS,
    PANEL_STATISTICS,
    PanelAgreement,
    agree_all,
)
from jurybox.statistics.estimates import Estimate
from jurybox.statistics.jackknife import FEWEST_LEFT_OUT
from jurybox.text_format import counted

_ENDS: Final = re.compile(r"\s*(-?[0-9.]+)\s*(?:\.\.|-|\u2013)\s*(-?[0-9.]+?)\s*")


@click.command("agree")
@click.argument("ratings", metavar="RATINGS", type=click.Path(path_type=Path))
@option(
    "--scale LO-HI",
    "The scale, such as 1-5, -1..1 or 0.0-1.0; or labels, lowest first: bad,fair,good.",
    name="scale_text",
    required=True,
)
@option("--continuous", "The scale has no steps; scores may be fractional.")
@cluster_option
@level_option
@json_option
def command(
    ratings: Path,
    scale_text: str,
    continuous: bool,
    cluster: str | None,
    level: float,
) -> None:
    """Measure how well raters agree on each criterion: all of them together, and each pair.

    A row is {"item": ID, "rater": NAME, "score": NUMBER, "criterion": NAME}; the criterion may be
    left out, and a score of null is a missing rating. CSV, TSV and Parquet have these as columns,
    and a score may be a label of the scale. `-` reads JSON lines from standard input. Items of one
    conversation aren't independent; --cluster names the field that they share.

    The statistics are exact agreement, Cohen's kappa (plain, linear, quadratic), Spearman, Kendall,
    Pearson, Krippendorff's alpha, Fleiss' kappa, Gwet's AC1 and AC2, and intraclass correlations,
    with intervals. Weights depend on the whole scale, not on which scores happen to occur.

    \b
    Examples:
      jurybox agree ratings.jsonl --scale 1-5
      jurybox agree ratings.jsonl --scale -1..1 --continuous
      jurybox agree ratings.csv --scale bad,fair,good --cluster conversation
      jurybox agree ratings.jsonl --scale 0-2 --json
    """  # noqa: D301 - click reads \b as "keep these lines"
    declared = _declared(scale_text, continuous=continuous)
    scale = declared.scale
    read = read_ratings(ratings, declared, cluster=cluster)
    panels = [agree_all(each, scale, level=level) for each in read]
    data = {
        "criteria": [_criterion(panel) for panel in panels],
        "scale": scale,
        "labels": declared.labels,
        "cluster": cluster,
        "level": level,
    }
    print_result(data, lambda: _print(panels, declared, level))


def _declared(text: str, *, continuous: bool) -> RatingScale:
    """Read the scale; with --continuous its ends may be written without decimals."""
    match = _ENDS.fullmatch(text)
    if continuous and match is not None:
        ends = (end if "." in end else f"{end}.0" for end in match.groups())
        text = "..".join(ends)
    try:
        return labeled_scale(text) if "," in text else RatingScale(scale=Scale.parse(text))
    except ParseError as error:
        raise ParseError(error.problem, error.hint, "--scale") from None


def _criterion(panel: PanelAgreement) -> dict[str, Any]:
    data: dict[str, Any] = {
        "criterion": panel.criterion,
        "n_items": panel.n_items,
        "n_paired": panel.n_paired,
        "n_ratings": panel.n_ratings,
        "raters": panel.raters,
    }
    for each in PANEL_STATISTICS:
        place = data.setdefault(each.group, {}) if each.group else data
        place[each.name.removeprefix(f"{each.group}_")] = panel[each.name].value
    return {
        **data,
        **_details(panel.estimates),
        "notes": panel.notes,
        "pairs": [
            {
                "raters": pair.raters,
                "n": pair.agreement.n,
                **{name: each.value for name, each in pair.agreement.estimates.items()},
                **_details(pair.agreement.estimates),
                "note": pair.agreement.note,
            }
            for pair in panel.pairs
        ],
    }


def _details(estimates: Mapping[str, Estimate]) -> dict[str, Any]:
    return {
        "interval": {name: each.interval for name, each in estimates.items()},
        "reasons": {name: each.reason for name, each in estimates.items() if each.reason},
    }


_MOST_PAIRS: Final = 40
_MEANING: Final = (
    "Kappa, alpha and AC1: 1 is full agreement, 0 is agreement by chance. Correlations: 1 is the "
    "same order, whatever the level. Where scores are labels without an order, only exact "
    "agreement, plain kappa, AC1, Fleiss' kappa and nominal alpha mean something."
)
# K. Krippendorff (2004), "Content Analysis", 2nd edition, page 241.
_RELIABLE: Final = 0.8
_TENTATIVE: Final = 0.667


def _print(panels: Sequence[PanelAgreement], declared: RatingScale, level: float) -> None:
    headings = ("all raters", "value", f"{100 * level:g}% interval", "items")
    for panel in panels:
        name = "ratings" if panel.criterion is None else panel.criterion
        raters, ratings = counted(len(panel.raters), "rater"), counted(panel.n_ratings, "rating")
        counts = f"{counted(panel.n_items, 'item')}, {raters}, {ratings}"
        print_line(f"{name}  {counts}, scale {declared}", style="bold")
        print_line(_sentence(panel, declared.scale))
        for note in _notes(panel):
            print_line(f"note  {note}", style="yellow")
        print_line()
        shown = ((each.heading, panel[each.name]) for each in PANEL_STATISTICS if each.heading)
        print_table(
            headings,
            (
                (heading, _value(found), _ends(found) or f"none: {found.reason}", f"{found.n:,}")
                for heading, found in shown
            ),
        )
        print_line()
        _print_pairs(panel)
    print_line(_MEANING, style="dim")


def _sentence(panel: PanelAgreement, scale: Scale) -> str:
    """Describe the agreement in words, by the alpha that suits the scale."""
    kind = scale.measurement
    alpha = panel[f"alpha_{kind}"]
    if alpha.value is None:
        return f"Agreement is not measurable: {alpha.reason}."
    ends = f" ({_ends(alpha)})" if alpha.interval else ""
    return f"Krippendorff's alpha ({kind}) is {alpha.value:.3f}{ends}: {_words(alpha)}."


def _words(alpha: Estimate) -> str:
    """Judge alpha by the lower end of its interval, not by its value."""
    value, around = alpha.value or 0.0, alpha.interval
    if around is None:
        few = alpha.n < FEWEST_LEFT_OUT
        return "too few items to rely on any value" if few else f"there is {alpha.reason}"
    if around.low >= _RELIABLE:
        return "high enough to rely on"
    if around.low >= _TENTATIVE:
        high = "high, but it may be below 0.8: " if value >= _RELIABLE else ""
        return f"{high}enough for tentative conclusions only"
    if value >= _TENTATIVE:
        return f"it may be below {_TENTATIVE}: too few items to draw conclusions from these scores"
    return "too low to draw conclusions from these scores"


def _notes(panel: PanelAgreement) -> Iterator[str]:
    yield from panel.notes
    for pair in panel.pairs[:_MOST_PAIRS]:
        names = " and ".join(pair.raters)
        if pair.agreement.note is not None:
            yield f"{names}: {pair.agreement.note}"
        reasons: dict[str, list[str]] = {}
        for each in PAIR_STATISTICS:
            found = pair.agreement[each.name]
            if each.heading and found.value is None and found.reason is not None:
                reasons.setdefault(found.reason, []).append(each.heading)
        for reason, headings in reasons.items():
            yield f"{names}: no {', '.join(headings)}: {reason}"


def _print_pairs(panel: PanelAgreement) -> None:
    if not panel.pairs:
        return

    shown = [each for each in PAIR_STATISTICS if each.heading]
    rows: list[Iterable[str | Text]] = []
    for pair in panel.pairs[:_MOST_PAIRS]:
        found = [pair.agreement[each.name] for each in shown]
        rows.append((" | ".join(pair.raters), f"{pair.agreement.n:,}", *map(_value, found)))
        rows.append(("", "", *(plain(_ends(each), "dim") for each in found)))
    print_table(("pair", "items", *(each.heading for each in shown)), rows)
    left = len(panel.pairs) - _MOST_PAIRS
    if left > 0:
        print_line(f"{counted(left, 'more pair')} with --json", style="dim")
    print_line()


def _value(estimate: Estimate) -> str:
    return "-" if estimate.value is None else f"{estimate.value:.3f}"


def _ends(estimate: Estimate) -> str:
    around = estimate.interval
    return "" if around is None else f"{around.low:.3f} to {around.high:.3f}"
