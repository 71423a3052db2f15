"""The report as one file: the page, and what took a look at samples."""

from collections.abc import Mapping
from typing import Any, Final, cast

from jurybox.reporting.attention import Attention
from jurybox.reporting.html.page import Calibrated, Extras, run_page
from jurybox.reporting.html.render import report_html
from jurybox.reporting.html.samples import cards, independence
from jurybox.reporting.view import RunView
from jurybox.rubric.model import Rubric
from jurybox.running.records import RunRow
from jurybox.running.storing import Store

_NEVER: Final = (
    "Never calibrated: how far these judges agree with people isn't known;"
    " `jurybox calibrate` measures it."
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
    extras = Extras(
        worst=cards(store, run, attention.worst),
        slowest=cards(store, run, attention.slowest),
        independence=independence(store, run),
        calibration=_calibrated(more["calibration"]) if "calibration" in more else None,
        people=_people(more.get("people")),
    )
    return report_html(run_page(view, rubric, attention.concerns, extras=extras))


def _calibrated(said: object) -> Calibrated:
    """Return what ``show --json`` says of the calibration as a line."""
    told = cast("Mapping[str, Any] | None", said)
    if told is None:
        return Calibrated(line=_NEVER, holds=False)
    if "trouble" in told:
        return Calibrated(line=str(told["trouble"]), holds=False)
    return Calibrated(line=str(told["text"]), holds=not told["stale"])


def _people(said: object) -> tuple[str, ...]:
    """Return what ``show`` says of people's reviews."""
    told = cast("Mapping[str, Any] | None", said)
    return () if told is None else tuple(told["lines"])
