"""Where labels for a run come from."""

from collections.abc import Mapping
from pathlib import Path

from jurybox.calibration.gold import Gold, gold_scales
from jurybox.datasets.gold_rows import read_gold_rows
from jurybox.reporting.stored import rubric_of
from jurybox.running.records import RunRow


def read_labels(path: Path, run: RunRow) -> Mapping[str, Gold]:
    """Read a file of labels, on the scales of the run's rubric.

    Raises:
        InputError: it can't be read, or a label can't be one.
        IncompleteError: the run can't be read.

    """
    return read_gold_rows(path, gold_scales(rubric_of(run))).gold
