"""How far scores moved when samples were judged again."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from jurybox.calibration.probes import KINDS, MARK, SAME, SWAPPED, share_won
from jurybox.errors import IncompleteError
from jurybox.judging.verdict import Side, mirror
from jurybox.reporting.judge_conduct import read_stored
from jurybox.running.storing import Store
from jurybox.wiring.probing import Probe

if TYPE_CHECKING:
    from jurybox.calibration.bias import Bias

_GROUPS: Final = ("stability", "injection")


def read_probe(
    store: Store, probe: Probe, run_ids: Sequence[str], level: float
) -> "tuple[Bias, ...]":
    """Return the figures of how scores changed, from the finished runs of all trials.

    Scores are compared with those of the run itself; where others judged than did there, or by
    other words, with those of the unchanged samples.

    Raises:
        IncompleteError: something stored can't be read.

    """
    from jurybox.calibration.bias import Bias
    from jurybox.statistics.bias.figure import BiasFigure, untold
    from jurybox.statistics.bias.stability import FIGURES, Alteration, changes

    sides: dict[str, Side] = {each.sample.id: each.side for each in probe.picked}
    after = _after(store, run_ids, sides)
    before = {each.sample.id: each.before for each in probe.picked}
    if not probe.comparable:
        before = after.get(SAME.id, {})
    figures: dict[str, list[BiasFigure]] = {group: [] for group in _GROUPS}
    for kind in KINDS:
        reason = probe.skipped.get(kind.id)
        if kind is SAME and not probe.comparable:
            reason = "the run's scores are of other judges or words; this is the baseline instead"
        if reason is not None:
            names = (f"{kind.name}.{figure}" for figure in FIGURES)
            figures[kind.group] += [untold(name, reason) for name in names]
            continue
        given = after.get(kind.id, {})
        both = [name for name in given if name in before]
        alteration = Alteration(name=kind.name, what=kind.what, harmless=kind.group == "stability")
        figures[kind.group] += changes(
            [before[name] for name in both],
            [given[name] for name in both],
            alteration,
            level=level,
        )
    return tuple(Bias(bias=group, figures=tuple(figures[group])) for group in _GROUPS)


def _after(
    store: Store, run_ids: Sequence[str], sides: Mapping[str, Side]
) -> dict[str, dict[str, float]]:
    """Return the new scores by kind and sample."""
    found: dict[str, dict[str, float]] = {}
    for run_id in run_ids:
        for sample in store.samples(run_id):
            name, _, kind = sample.sample_id.rpartition(MARK)
            try:
                stored = read_stored(sample)
            except msgspec.DecodeError as error:
                what = f"run {run_id} can't be read ({error}); `jurybox verify` says where"
                raise IncompleteError(what) from None
            side = sides.get(name, "A")
            if kind == SWAPPED.id:
                side = mirror(side)
            score = None if stored is None else share_won(stored.report, side)
            if score is not None:
                found.setdefault(kind, {})[name] = score
    return found
