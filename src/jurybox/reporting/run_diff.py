"""Two runs side by side: as plain data, and in the words that commands and pages share."""

from collections.abc import Iterator, Sequence
from typing import Any, Final, Literal

import msgspec

from jurybox.documents.numbers import short
from jurybox.reporting.attention import SamplePlace
from jurybox.reporting.metric_text import metric_title
from jurybox.reporting.view import RunView
from jurybox.rubric.rubric_model import Rubric
from jurybox.scoring.summary import GateOutcome
from jurybox.statistics.metric_differences import RIGHT, MetricDifference, rescaled
from jurybox.text_format import as_text, counted, cut

ChangeKind = Literal["higher", "lower", "changed", "same", "unscored"]
RankedSample = tuple[float, SamplePlace]
"""The difference of a sample's overall score, and the sample in run B."""

VERDICTS: Final = (
    "passed",
    "winner",
    "stable",
    "safety_flag",
    "evaluator_error",
    "target_error",
)
"""The results of a sample apart from its metrics."""

_LONGEST: Final = 80
_SMALLEST_P: Final = 0.0001
_WORDS: Final = {True: "yes", False: "no", None: "-"}


class MetricPair(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A metric in both runs, the difference B minus A, and the numbers of samples."""

    metric: str
    a: float | None
    b: float | None
    difference: float | None
    n_a: int | None = None
    n_b: int | None = None


class GroupPair(msgspec.Struct, frozen=True, kw_only=True):
    """The metrics of one scenario, or one demographic, in both runs; the key metric first."""

    group: str
    samples_a: int | None
    samples_b: int | None
    metrics: tuple[MetricPair, ...]


class GatePair(msgspec.Struct, frozen=True, kw_only=True):
    """A gate in both runs; None if a run doesn't have it."""

    gate: str
    a: GateOutcome | None
    b: GateOutcome | None


class SampleChange(msgspec.Struct, frozen=True, kw_only=True):
    """One sample that both runs have.

    ``change`` is how the sample changed as a whole: its score is `higher` or `lower`, it `changed`
    otherwise (a different verdict with the same score, or a score in only one run), or it is the
    `same`. A sample that neither run could score is `unscored`.
    """

    id: str
    repeat: int
    change: ChangeKind
    identical: bool
    metrics: tuple[MetricPair, ...]
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

    def difference(self, metric: str | None) -> float | None:
        """Return the difference of a metric; None if a run doesn't have it."""
        return next((each.difference for each in self.metrics if each.metric == metric), None)

    def details(self, headline: str | None, rubric: Rubric | None = None) -> Iterator[str]:
        """Yield the changes apart from the overall score, the largest score changes first.

        With a rubric, metrics have their titles instead of their ids.
        """
        for name, (a, b) in self.flips().items():
            yield f"{name} {word(a)} -> {word(b)}"
        for each in sorted(self.metrics, key=lambda each: -abs(each.difference or 0)):
            on_two_scales = each.difference is None and None not in (each.a, each.b)
            if each.metric in (headline, "latency_e2e_ms") or on_two_scales:
                continue
            if each.a != each.b:
                name = each.metric if rubric is None else metric_title(each.metric, rubric)
                yield f"{name} {short(each.a)} -> {short(each.b)}"


class FieldChange(msgspec.Struct, frozen=True, kw_only=True):
    """A field of the metadata in which the runs differ."""

    field: str
    a: Any
    b: Any

    def __str__(self) -> str:
        """Return both values, shortened."""
        return f"{self.field}: {_short(self.a)} | {_short(self.b)}"


class ChangeCounts(msgspec.Struct, frozen=True, kw_only=True):
    """How many samples changed in which way."""

    same: int
    higher: int
    lower: int
    changed: int
    unscored: int
    only_in_a: int
    only_in_b: int
    identical_records: int

    def __str__(self) -> str:
        """Return the counts in words."""
        return (
            f"{self.higher} higher, {self.lower} lower, {self.changed} changed otherwise, "
            f"{self.same} the same, {self.unscored} without a score, "
            f"{self.only_in_a} only in A, {self.only_in_b} only in B"
        )


class RunDiff(msgspec.Struct, frozen=True, kw_only=True):
    """Two runs side by side.

    ``identical`` says whether the hashes of all records are equal; it is None if a run isn't
    finished. ``headline`` is the metric by which samples are higher or lower, None if the two
    rubrics have no such metric in common. ``tested`` says which metrics differ by more than chance.
    ``ranked`` has the samples of both runs, sorted by their difference; if there are many, only
    every n-th sample and both ends. ``samples`` has the largest changes, ``by_kind`` those of each
    kind.
    """

    a: RunView
    b: RunView
    identical: bool | None
    headline: str | None
    fields: tuple[FieldChange, ...]
    metrics: tuple[MetricPair, ...]
    tested: tuple[MetricDifference, ...]
    gates: tuple[GatePair, ...]
    counts: ChangeCounts
    samples: tuple[SampleChange, ...]
    by_kind: dict[str, tuple[SampleChange, ...]] = {}
    only_in_a: tuple[SamplePlace, ...]
    only_in_b: tuple[SamplePlace, ...]
    ranked: tuple[RankedSample, ...] = ()
    scenarios: tuple[GroupPair, ...] = ()
    demographics: tuple[GroupPair, ...] = ()

    @property
    def regressions(self) -> tuple[str, ...]:
        """The metrics that got significantly worse from A to B."""
        return tuple(each.metric for each in self.tested if each.regression)

    @property
    def same_rubric(self) -> bool:
        """Whether both runs used one rubric; otherwise nothing counts as a gain or regression."""
        return self.a.rubric.sha256 == self.b.rubric.sha256

    @property
    def compared(self) -> bool:
        """Whether any sample has a score, a verdict or a winner in both runs."""
        return any(each.of_responses for each in self.tested)

    @property
    def tone(self) -> Literal["fails", "passes", ""]:
        """Whether the comparison is a regression or a gain; empty if neither, or not known."""
        if not self.same_rubric:
            return ""
        gained = any(each.gained for each in self.tested)
        return "fails" if self.regressions else "passes" if gained else ""

    def listed_changes(self, only: ChangeKind | None = None) -> list[SampleChange]:
        """Return the largest changes, losses first; of `higher` scores, the largest gains first."""
        changes = self.samples if only is None else self.by_kind.get(only, ())
        gains = only == "higher"
        return sorted(changes, key=lambda each: each.difference(self.headline) or 0, reverse=gains)

    def as_data(self) -> dict[str, Any]:
        """Return the comparison as plain data for JSON."""
        named = [name for name in self.__struct_fields__ if name not in {"ranked", "by_kind"}]
        data = {name: getattr(self, name) for name in named}
        tested: list[dict[str, Any]] = []
        for each in self.tested:
            flat: dict[str, Any] = msgspec.to_builtins(each)
            comparison = flat.pop("comparison")
            tested.append({**flat, "regression": each.regression, **comparison})
        return msgspec.to_builtins(data | {"a": None, "b": None}) | {
            "a": _run_as_data(self.a),
            "b": _run_as_data(self.b),
            "tested": tested,
            "regressions": list(self.regressions),
            "same_rubric": self.same_rubric,
            "judges": self.judges_line(),
        }

    def in_short(self, side: Literal["a", "b"]) -> dict[str, Any]:
        """Return the significant differences as plain data, with the id of one of the runs."""
        whole = self.as_data()
        kept = {name: whole[name] for name in ("same_rubric", "regressions", "counts", "tested")}
        return {"run_id": whole[side]["run_id"], "conclusion": self.conclusion(), **kept}

    def records_line(self) -> str:
        """Return whether the records of the runs are the same, in words."""
        if self.identical is None:
            return "can't be compared as a whole: a run isn't finished"
        if self.identical:
            return "identical, by hash"
        many = counted(self.counts.identical_records, "sample")
        return f"{many} with identical inputs, replies and result, by hash"

    def cautions(self) -> Iterator[str]:
        """Yield possible explanations of the differences."""
        if self.headline is None:
            yield "the rubrics have no score in common, so no sample is higher or lower"
        if names := rescaled(self.a.rubric, self.b.rubric):
            yield f"not measurable, because the scales differ: {', '.join(names)}"
        for each in self.fields:
            yield f"differs  {each}"
        for name, view in (("A", self.a), ("B", self.b)):
            for note in view.notes:
                yield f"note on {name}  {note}"

    def one_sided(self) -> dict[tuple[int, int], list[str]]:
        """Return the metrics that some samples have in only one run, by the counts in A and B."""
        found: dict[tuple[int, int], list[str]] = {}
        for each in self.tested:
            if each.only_in_a or each.only_in_b:
                found.setdefault((each.only_in_a, each.only_in_b), []).append(each.metric)
        return found

    def judges_line(self) -> str | None:
        """Return which run's judge agrees with human labels more often; None without labels."""
        found = next((each for each in self.tested if each.metric == RIGHT), None)
        if found is None:
            return None
        made = found.comparison
        side = {"higher": "B's judge is", "lower": "A's judge is"}.get(made.verdict)
        a, b = (f"{100 * (mean or 0):.0f}%" for mean in (made.mean_a, made.mean_b))
        who = side or "neither judge is, beyond chance,"
        return f"{who} right more often: A {a}, B {b} of the labels on {counted(made.n, 'sample')}"

    def conclusion(self, *, titled: bool = False) -> str:
        """Return the result of the tests in words; ``titled`` names criteria by their titles."""
        intervals = (each.comparison.interval for each in self.tested)
        level = next((f" at {100 * each.level:g}%" for each in intervals if each), "")
        found = self._beyond_chance()
        none = "no scores could be compared: no sample has a score in both runs"
        parts = [] if self.compared else [none]
        for what, metrics in found.items():
            names = (metric_title(each, self.b.rubric) if titled else each for each in metrics)
            parts.append(f"{what}{level}: {', '.join(names)}")
        if self.compared and not found:
            parts.append(f"no metric is higher or lower by more than chance{level}")
        if self.compared and "gained" in found:
            parts.append("no regression")
        if not self.same_rubric:
            caution = ", so a difference may come from the rubric and not the responses"
            parts[-1] += f". The rubrics differ{caution if self.compared else ''}"
        return "; ".join(parts)

    def _beyond_chance(self) -> dict[str, list[str]]:
        """Return the metrics that differ significantly, by the kind of difference."""
        gained = [each.metric for each in self.tested if each.gained]
        if self.tone:
            return {"regression": [*self.regressions]} if self.regressions else {"gained": gained}
        found: dict[str, list[str]] = {}
        for each in self.tested:
            if each.comparison.verdict != "undecided":
                found.setdefault(each.comparison.verdict, []).append(each.metric)
        return found

    def verdicts(self) -> Iterator[tuple[str, str]]:
        """Yield the conclusions of both runs, by name."""
        one, other = self.a.as_data(), self.b.as_data()
        for name in ("release_ready", "decision"):
            a, b = one.get(name), other.get(name)
            if (a, b) != (None, None):
                yield name.replace("_", " "), f"{word(a)} | {word(b)}"


def _run_as_data(view: RunView) -> dict[str, Any]:
    names = ("run_id", "status", "suite", "digest", "created_at", "notes", "release_ready")
    data = view.as_data()
    return {name: data[name] for name in (*names, "decision") if name in data}


def p_value(p: float | None) -> str:
    """Return a p value for a table."""
    return "-" if p is None else f"< {_SMALLEST_P}" if p < _SMALLEST_P else f"{p:.2g}"


def places(count: int, listed: Sequence[SamplePlace]) -> str:
    """Name samples, and how many more there are."""
    more = [] if count == len(listed) else [f"and {count - len(listed)} more"]
    return f"{count}: {', '.join([*map(str, listed), *more])}"


def word(value: bool | str | None) -> str:  # noqa: FBT001 - a verdict to show, not a switch
    """Return a verdict as a word."""
    return _short(value) if isinstance(value, str) else _WORDS[value]


def _short(value: Any) -> str:  # noqa: ANN401 - anything that metadata can have
    return cut(as_text(value), _LONGEST)
