"""All that is known of how a run's judges are moved, and the gates it is held against."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from jurybox.calibration.bias import Bias
from jurybox.calibration.probes import KINDS
from jurybox.errors import InputError, Unreadable
from jurybox.rubric.comparison import Comparison
from jurybox.statistics.bias.figure import BiasFigure
from jurybox.statistics.bias.stability import FIGURES
from jurybox.wording import nearest

_GATE: Final = re.compile(r"\s*([A-Za-z_][\w.-]*)\s*([^\w\s.].*)", re.DOTALL)
_STAND_IN: Final = "figure"
_HOW: Final = "write a figure, an operator and a number, such as `position.swap_consistency >= 0.9`"
_NOT_PROBED: Final = "no sample was judged again; `--probe N` does that"


class BiasGate(msgspec.Struct, frozen=True, kw_only=True):
    """One gate, the figure it was held against, whether it holds; else ``reason`` may say why."""

    gate: str
    value: float | None
    passed: bool
    reason: str | None = None


class ProbeRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run in which samples were judged again, and the kinds of changes in it."""

    run_id: str
    kinds: tuple[str, ...]


class Probed(msgspec.Struct, frozen=True, kw_only=True):
    """How samples were judged again; ``baseline`` is what their scores are compared with."""

    samples: int
    judges: tuple[str, ...]
    baseline: str
    runs: tuple[ProbeRun, ...]


class BiasReport(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of one run."""

    run_id: str
    suite: str
    status: str
    judges: tuple[str, ...]
    level: float
    seed: int
    samples: int
    pairs: int
    biases: tuple[Bias, ...]
    probe: Probed | None = None
    gates: tuple[BiasGate, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether all gates hold."""
        return all(gate.passed for gate in self.gates)

    def figures(self) -> dict[str, BiasFigure]:
        """Return all figures by their names."""
        return {figure.name: figure for bias in self.biases for figure in bias.figures}

    def as_data(self) -> dict[str, Any]:
        """Return plain data, ready for JSON."""
        data: dict[str, Any] = msgspec.to_builtins(self)
        return {**data, "passed": self.passed if self.gates else None}


def read_gates(texts: Iterable[str]) -> tuple[Comparison, ...]:
    """Read gates on figures of bias, whose names have dots.

    Raises:
        InputError: one of them is no comparison.

    """
    return tuple(_read_gate(text) for text in texts)


def _read_gate(text: str) -> Comparison:
    match = _GATE.fullmatch(text)
    if match is None:
        raise InputError(f"`{text}` is not a comparison", _HOW, "--gate")
    try:
        # The rubric's reader knows operators and numbers; its names have no dots.
        comparison = Comparison.parse(f"{_STAND_IN} {match[2]}")
    except Unreadable as error:
        problem = error.problem.replace(f"`{_STAND_IN} ", f"`{match[1]} ")
        mend = _HOW if "comparison" in problem else error.mend
        raise InputError(problem, mend, "--gate") from None
    return msgspec.structs.replace(comparison, name=match[1])


def check_gates(gates: Sequence[Comparison], criteria: Iterable[str], known: Iterable[str]) -> None:
    """Refuse gates on figures that there never are.

    Raises:
        InputError: a name is none of a figure.

    """
    names = {*known, *probe_names()} | {f"position.flips.{each}" for each in criteria}
    for gate in gates:
        if gate.name not in names:
            otherwise = "see the names that `jurybox bias RUN` prints"
            mend = nearest(gate.name, sorted(names), otherwise)
            raise InputError(f"there is no figure `{gate.name}`", mend, "--gate")


def probe_names() -> tuple[str, ...]:
    """Return the names of all figures that need samples to be judged again."""
    return tuple(f"{kind.name}.{figure}" for kind in KINDS for figure in FIGURES)


def hold(gates: Sequence[Comparison], figures: Mapping[str, BiasFigure]) -> tuple[BiasGate, ...]:
    """Hold figures against gates; a figure that isn't known holds none."""
    held: list[BiasGate] = []
    for gate in gates:
        figure = figures.get(gate.name)
        value = None if figure is None else figure.value
        reason = None
        if value is None:
            reason = _NOT_PROBED if figure is None else figure.reason
        held.append(BiasGate(gate=str(gate), value=value, passed=gate.holds(value), reason=reason))
    return tuple(held)
