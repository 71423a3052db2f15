"""Measure the biases of a stored run's judges."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from jurybox.calibration.gold import Gold
from jurybox.engine.ports import Store
from jurybox.engine.records import RunRow
from jurybox.errors import InputError
from jurybox.reporting.judge_conduct import observe
from jurybox.reporting.stored import plan_of
from jurybox.wiring import LAST, find_run

if TYPE_CHECKING:
    from jurybox.calibration.bias_metrics import BiasReport
    from jurybox.statistics.bootstrap import Resampling

PROBE: Final = "~probe"
"""The suffix of a suite's name in runs of a probe."""


def find_judged_run(store: Store, name: str) -> RunRow:
    """Return a run by its name; ``last`` is the last one that isn't a probe.

    Raises:
        InputError: there is no such run, or there are several.

    """
    if name == LAST:
        found = next((row for row in store.runs() if not row.suite.endswith(PROBE)), None)
        if found is not None:
            return found
    return find_run(store, name)


def measure_bias(
    store: Store,
    row: RunRow,
    resampling: "Resampling",
    gold: str | None = None,
    note: Callable[[str], None] = lambda _: None,
) -> "BiasReport":
    """Return the bias metrics of the stored votes; no model is called.

    Without a file of ``gold``, reviews are the labels; ``note`` is called with a notice then.

    Raises:
        InputError: the labels can't be used.
        IncompleteError: the run can't be read.

    """
    from jurybox.calibration.bias_metrics import BiasReport, measure

    plan = plan_of(row)
    labels = _reviews(row, store, note) if gold is None else _labels(gold, row, store)
    seen = observe(store, row, labels)
    return BiasReport(
        run_id=row.id,
        suite=row.suite,
        status=row.status,
        judges=plan.judges,
        level=resampling.level,
        seed=resampling.seed,
        samples=len({each.sample for each in seen.scored} | {each.sample for each in seen.voted}),
        pairs=len({each.sample for each in seen.voted}),
        biases=measure(seen, resampling),
    )


def _reviews(row: RunRow, store: Store, note: Callable[[str], None]) -> Mapping[str, Gold] | None:
    from jurybox.app.labels import labels_of_samples

    found = labels_of_samples(store, row)
    for each in found.notes:
        note(each)
    return found.gold


def _labels(path: str, row: RunRow, store: Store) -> Mapping[str, Gold]:
    from jurybox.app.labels import read_labels

    found = read_labels(Path(path), row)
    if not any(sample.sample_id in found for sample in store.samples(row.id)):
        problem = f"none of its ids is a sample of run {row.id}"
        raise InputError(problem, "give the ids of the run's samples", path)
    return found
