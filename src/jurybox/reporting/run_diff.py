"""Two runs side by side, as plain data."""

from typing import Any, Final, Literal

import msgspec

from jurybox.reporting.attention import Place
from jurybox.reporting.difference_tests import Difference
from jurybox.reporting.view import RunView
from jurybox.scoring.summary import GateOutcome

ChangeKind = Literal["higher", "lower", "changed", "same"]

VERDICTS: Final = (
    "passed",
    "winner",
    "stable",
    "safety_flag",
    "evaluator_error",
    "target_error",
)
"""What a run says of a sample beside its figures."""


class Values(msgspec.Struct, frozen=True, kw_only=True):
    """A figure in both runs, and how much the second is above the first."""

    figure: str
    a: float | None
    b: float | None
    difference: float | None


class RunValues(msgspec.Struct, frozen=True, kw_only=True):
    """A figure of both runs as a whole, each with the samples it comes from."""

    figure: str
    a: float | None
    b: float | None
    difference: float | None
    n_a: int | None
    n_b: int | None


class GroupValues(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of one scenario, or one demographic, in both runs; the whole comes first."""

    group: str
    samples_a: int | None
    samples_b: int | None
    figures: tuple[Values, ...]


class GateValues(msgspec.Struct, frozen=True, kw_only=True):
    """A gate in both runs; None where a run has no such gate."""

    gate: str
    a: GateOutcome | None
    b: GateOutcome | None


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One sample that both runs have.

    ``change`` says where the sample as a whole went: to a higher or a lower score, to something
    else (`changed`: another verdict with the same score, or a score on one side only), or nowhere.
    """

    id: str
    repeat: int
    change: ChangeKind
    identical: bool
    figures: tuple[Values, ...]
    passed: tuple[bool | None, bool | None]
    winner: tuple[str | None, str | None]
    stable: tuple[bool | None, bool | None]
    safety_flag: tuple[bool, bool]
    evaluator_error: tuple[str | None, str | None]
    target_error: tuple[str | None, str | None]

    def flips(self) -> dict[str, tuple[Any, Any]]:
        """Return the verdicts that differ, by name."""
        both = {name: getattr(self, name) for name in VERDICTS}
        return {name: (a, b) for name, (a, b) in both.items() if a != b}


class FieldChange(msgspec.Struct, frozen=True, kw_only=True):
    """A field of the metadata in which the runs differ."""

    field: str
    a: Any
    b: Any


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """How many samples changed in which way."""

    same: int
    higher: int
    lower: int
    changed: int
    only_in_a: int
    only_in_b: int
    identical_records: int


class RunDiff(msgspec.Struct, frozen=True, kw_only=True):
    """Two runs side by side.

    ``identical`` says that all records are equal, to the hash; it is None where a run isn't
    finished. ``headline`` is the figure by which samples are higher or lower, None where the two
    rubrics have none in common. ``tested`` says which figures differ by more than chance.
    """

    a: RunView
    b: RunView
    identical: bool | None
    headline: str | None
    fields: tuple[FieldChange, ...]
    figures: tuple[RunValues, ...]
    tested: tuple[Difference, ...]
    gates: tuple[GateValues, ...]
    counts: Counts
    samples: tuple[Change, ...]
    only_in_a: tuple[Place, ...]
    only_in_b: tuple[Place, ...]
    scenarios: tuple[GroupValues, ...] = ()
    demographics: tuple[GroupValues, ...] = ()

    @property
    def regressions(self) -> tuple[str, ...]:
        """The figures that went the wrong way from A to B, by more than chance."""
        return tuple(each.figure for each in self.tested if each.regression)

    def as_data(self) -> dict[str, Any]:
        """Return plain data, ready for JSON."""
        data: dict[str, Any] = msgspec.to_builtins(self)
        return data | {
            "a": _run_as_data(self.a),
            "b": _run_as_data(self.b),
            "tested": [_tested_as_data(each) for each in self.tested],
            "regressions": list(self.regressions),
        }


def _tested_as_data(tested: Difference) -> dict[str, Any]:
    data: dict[str, Any] = msgspec.to_builtins(tested)
    comparison = data.pop("comparison")
    return {**data, "regression": tested.regression, **comparison}


def _run_as_data(view: RunView) -> dict[str, Any]:
    told = ("run_id", "status", "suite", "digest", "created_at", "notes", "release_ready")
    data = view.as_data()
    return {name: data[name] for name in (*told, "decision") if name in data}
