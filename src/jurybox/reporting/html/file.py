"""The report as one file: the page, and what took a look at samples."""

from collections.abc import Mapping
from typing import Any, Final, cast

from jurybox.reporting.attention import Attention
from jurybox.reporting.html.jury import position_of
from jurybox.reporting.html.order import order_figures, unstable_pairs
from jurybox.reporting.html.page import Calibrated, Extras, run_page
from jurybox.reporting.html.people import People, people_of
from jurybox.reporting.html.render import report_html
from jurybox.reporting.html.samples import cards, independence
from jurybox.reporting.jury_agreement import jury_agreement
from jurybox.reporting.view import RunView
from jurybox.rubric.model import Rubric
from jurybox.running.records import RunRow
from jurybox.running.storing import Store

_NEVER: Final = (
    "Never calibrated: how far these judges agree with people isn't known;"
    " `jurybox calibrate` measures it."
)
_REVIEWED: Final = (
    "Never calibrated on samples that people labelled beforehand; what their reviews of this run"
    " say of its judges is below."
)


def html_report(
    view: RunView,
    rubric: Rubric,
    attention: Attention,
    run: RunRow,
    store: Store,
    more: Mapping[str, object],
) -> str:
    """Return the report on a run; ``more`` has its ``calibration`` and ``people``, where known.

    Raises:
        IncompleteError: what is stored can't be read.

    """
    people = _people(more.get("people"))
    position = position_of(view, rubric)
    # Responses that were scored one by one have no order.
    ordered = position is not None and (position.stable is not None or not view.conclusion.spreads)
    extras = Extras(
        worst=cards(store, run, attention.worst),
        slowest=cards(store, run, attention.slowest),
        independence=independence(store, run),
        calibration=_calibrated(more["calibration"], people) if "calibration" in more else None,
        people=people,
        jury_agreement=jury_agreement(store, run),
        position=order_figures(store, run) if ordered else (),
        unstable=unstable_pairs(store, run, attention.concerns),
    )
    return report_html(run_page(view, rubric, attention.concerns, extras=extras))


def _calibrated(said: object, people: People | None) -> Calibrated:
    """Return what ``show --json`` says of the calibration as a line."""
    told = cast("Mapping[str, Any] | None", said)
    if told is None:
        known = people is not None and bool(people.against)
        return Calibrated(line=_REVIEWED if known else _NEVER, holds=False)
    if "trouble" in told:
        return Calibrated(line=str(told["trouble"]), holds=False)
    return Calibrated(line=str(told["text"]), holds=not told["stale"])


def _people(said: object) -> People | None:
    told = cast("Mapping[str, Any] | None", said)
    return None if told is None else people_of(told)
