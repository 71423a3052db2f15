"""Two runs side by side: as plain data, and in the words that commands and pages share."""

from collections.abc import Iterator
from typing import Any, Final, Literal

import msgspec

from jurybox.documents.numbers import difference, metric_change, short
from jurybox.reporting.attention import SamplePlace
from jurybox.reporting.metric_text import metric_title, plain_words
from jurybox.reporting.view import RunView
from jurybox.rubric.metrics import AGGREGATE_SCORE, SAMPLE_SCORE, WIN_RATE
from jurybox.rubric.rubric_model import Rubric
from jurybox.scoring.summary import GateOutcome
from jurybox.statistics.estimates import Interval
from jurybox.statistics.metric_differences import RIGHT, MetricDifference, rescaled
from jurybox.text_format import as_text, counted, cut

ChangeKind = Literal[
    "lower", "no_longer_scored", "changed", "same", "unscored", "newly_scored", "higher"
]
ChangeFilter = ChangeKind | Literal["now_fails", "now_passes"]
CHANGES: Final[dict[ChangeKind, str]] = {
    "lower": "lower",
    "no_longer_scored": "no longer scored",
    "changed": "changed but not in score",
    "same": "unchanged",
    "unscored": "not scored in either",
    "newly_scored": "newly scored",
    "higher": "higher",
}
"""How samples can change, in words, from worse to better."""
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

# The metrics of a run, by those of its samples that are shares.
_RATES: Final = {
    "passed": "pass_rate",
    "safety_flag": "safety_rate",
    "unscored": "unscored_rate",
    "target_error": "target_error_rate",
}
_RUN_METRICS: Final = {**_RATES, SAMPLE_SCORE: AGGREGATE_SCORE, WIN_RATE: WIN_RATE}
_LONGEST: Final = 80
_SMALLEST_P: Final = 0.0001
_WORDS: Final = {True: "yes", False: "no", None: "-"}


class MetricPair(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A metric in both runs, the difference B minus A, and the numbers of samples.

    Of a single sample, ``a`` and ``b`` are means of votes; ``recorded`` has the recorded scores if
    they are different.
    """

    metric: str
    a: float | None
    b: float | None
    difference: float | None
    n_a: int | None = None
    n_b: int | None = None
    recorded: tuple[float | None, float | None] | None = None

    def __str__(self) -> str:
        """Return the recorded values, and the means of votes if they are different."""
        a, b = self.recorded or (self.a, self.b)
        values = f"{short(a)} -> {short(b)}"
        return f"{values} ({self.votes})" if self.votes else values

    @property
    def votes(self) -> str:
        """The means of votes, if they differ from the recorded scores."""
        return f"votes {short(self.a)} -> {short(self.b)}" if self.recorded else ""


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
    otherwise (a different verdict with the same score), or it is the `same`. Without an overall
    score in both, it is `no_longer_scored`, `newly_scored`, or `unscored` in both runs. Scores are
    compared by the means of votes.
    """

    id: str
    repeat: int
    change: ChangeKind
    identical: bool
    metrics: tuple[MetricPair, ...]
    passed: tuple[bool | None, bool | None]
    winner: tuple[str | None, str | None]
    stable: tuple[bool | None, bool | None]
    safety_flag: tuple[bool | None, bool | None]  # None without a valid vote
    evaluator_error: tuple[str | None, str | None]
    target_error: tuple[str | None, str | None]

    def flips(self) -> dict[str, tuple[Any, Any]]:
        """Return the verdicts that differ, by name."""
        both = {name: getattr(self, name) for name in VERDICTS}
        return {name: (a, b) for name, (a, b) in both.items() if a != b}

    def turned(self) -> tuple[ChangeFilter, ...]:
        """Return whether a sample that passed now fails, or the other way around."""
        if self.passed == (True, False):
            return ("now_fails",)
        return ("now_passes",) if self.passed == (False, True) else ()

    def difference(self, metric: str | None) -> float | None:
        """Return the difference of a metric; None if a run doesn't have it."""
        pair = self.pair(metric)
        return None if pair is None else pair.difference

    def pair(self, metric: str | None) -> MetricPair | None:
        """Return a metric in both runs; None if neither run measures it."""
        return next((each for each in self.metrics if each.metric == metric), None)

    def details(self, headline: str | None, rubric: Rubric | None = None) -> Iterator[str]:
        """Yield the changes apart from the overall score, the largest score changes first.

        With a rubric, metrics have their titles instead of their ids, and the verdicts are left out
        that a page shows with each response.
        """
        for name, (a, b) in self.flips().items():
            if rubric is None:
                yield f"{name} {word(a)} -> {word(b)}"
            elif name in {"winner", "stable", "safety_flag"} and None not in (a, b):
                yield f"{plain_words(name)} {word(a)} -> {word(b)}"
        if self.change in {"no_longer_scored", "newly_scored"}:
            return
        for each in sorted(self.metrics, key=lambda each: -abs(each.difference or 0)):
            on_two_scales = each.difference is None and None not in (each.a, each.b)
            if each.metric in (headline, "latency_e2e_ms") or on_two_scales:
                continue
            a, b = each.recorded or (each.a, each.b)
            if each.a != each.b or a != b:
                name = each.metric if rubric is None else metric_title(each.metric, rubric)
                yield f"{name} {each}"


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
    no_longer_scored: int
    newly_scored: int
    unscored: int
    now_fails: int
    now_passes: int
    only_in_a: int
    only_in_b: int
    identical_records: int

    def __str__(self) -> str:
        """Return the counts in words; unusual kinds are left out if their count is zero."""
        usual = {"lower", "same", "higher", "now_fails", "now_passes"}
        words = CHANGES | {"now_fails": "passed and now fail", "now_passes": "failed and now pass"}
        words |= {"only_in_a": "only in A", "only_in_b": "only in B"}
        counts = [(getattr(self, kind), kind, said) for kind, said in words.items()]
        return ", ".join(f"{n:,} {said}" for n, kind, said in counts if n or kind in usual)

    @property
    def in_both(self) -> int:
        """The number of samples that both runs have."""
        return sum(getattr(self, kind) for kind in CHANGES)

    @property
    def changes(self) -> int:
        """The number of samples that changed in any way."""
        return self.in_both - self.same - self.unscored


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

    def listed_changes(self, only: ChangeFilter | None = None) -> list[SampleChange]:
        """Return the largest changes, losses first; of gains, the largest first."""
        changes = self.samples if only is None else self.by_kind.get(only, ())
        gains = only in {"higher", "now_passes"}
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
            return "inputs, replies and results are identical, by hash"
        if not self.same_rubric:
            return "differ in every sample, because each result names its rubric"
        many = self.counts.identical_records
        have = (
            f"{counted(many, 'sample')} {'has' if many == 1 else 'have'}"
            if many
            else "no sample has"
        )
        return f"{have} identical inputs, replies and results in both runs, by hash"

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
        """Group the metrics that samples have in only one run by how many do in A and in B."""
        found: dict[tuple[int, int], list[str]] = {}
        for each in self.tested:
            if each.only_in_a or each.only_in_b:
                found.setdefault((each.only_in_a, each.only_in_b), []).append(each.metric)
        return found

    def judges_line(self) -> str | None:
        """Return which run's judge agrees with human labels more often; None if not measured."""
        found = next((each for each in self.tested if each.metric == RIGHT), None)
        if found is None or not found.comparison.n:
            return None
        made = found.comparison
        side = {"higher": "B's judge is", "lower": "A's judge is"}.get(made.verdict)
        a, b = (f"{100 * (mean or 0):.0f}%" for mean in (made.mean_a, made.mean_b))
        who = side or "neither judge is, beyond chance,"
        return f"{who} right more often: A {a}, B {b} of the labels on {counted(made.n, 'sample')}"

    def conclusion(self, *, titled: bool = False) -> str:
        """Return the result of the tests in words; ``titled`` names criteria by their titles."""
        return ". ".join(filter(None, (self.finding(titled=titled), self.rubric_caution)))

    @property
    def rubric_caution(self) -> str:
        """A warning if the rubrics differ, since that may explain differences; else ``""``."""
        if self.same_rubric:
            return ""
        caution = ", so a difference may come from the rubric and not the responses"
        return f"The rubrics differ{caution if self.compared else ''}"

    def finding(self, *, titled: bool = False) -> str:
        """Return whether B is better or worse than A, and in what, in words."""
        intervals = (each.comparison.interval for each in self.tested)
        level = next((f" at {100 * each.level:g}%" for each in intervals if each), "")
        parts = [] if self.compared else [f"no scores could be compared: {self._why_not()}"]
        found: dict[str, list[str]] = {}
        for each in self.tested:
            if each.comparison.verdict != "undecided" and each.metric != RIGHT:
                found.setdefault(self._word(each), []).append(self.name_of(each, titled=titled))
        if found:
            differs = (f"{what} than A in {', '.join(names)}" for what, names in found.items())
            parts.append(f"B is {'; '.join(differs)} (by more than chance{level})")
        elif self.compared and self.identical:
            parts.append("no difference: inputs, replies and results are identical in both runs")
        elif self.compared:
            parts.append(f"no clear difference: no metric differs by more than chance{level}")
        if self.tone == "passes":
            parts.append("no regression")
        return "; ".join(parts)

    def name_of(self, tested: MetricDifference, *, titled: bool = False) -> str:
        """Return the name of a tested metric for a sentence."""
        name = _RATES.get(tested.metric, tested.metric)
        return metric_title(name, self.b.rubric) if titled else name

    def _word(self, tested: MetricDifference) -> str:
        if self.same_rubric and tested.regression:
            return "worse"
        return "better" if self.same_rubric and tested.gained else tested.comparison.verdict

    def _why_not(self) -> str:
        """Return why no sample has a score in both runs."""
        if not self.counts.in_both:
            return "no sample id is in both runs"
        pairs = next((each for each in self.tested if each.metric == WIN_RATE), None)
        if pairs is None or self.same_rubric:
            return "no sample has a score in both runs"
        return "one run scores single responses, and the other picks the better of two"

    @property
    def explained(self) -> list[MetricDifference]:
        """The metrics that differ by more than chance; without any, the overall score."""
        every = [each for each in self.tested if each.metric != RIGHT]
        clear = [each for each in every if each.comparison.verdict != "undecided"]
        scores = [each for each in every if each.of_responses]
        return clear or [each for each in scores if each.metric == self.headline] or scores[:1]

    @property
    def by_votes(self) -> bool:
        """Whether the tests use means of votes, which may differ from the recorded scores."""
        return any(view.metadata.get("evaluator_model_id") for view in (self.a, self.b))

    def explanation(self, tested: MetricDifference) -> str:
        """Return how certain the difference of a metric is, in words."""
        made, shown_as = tested.comparison, tested.formatted_as
        interval = made.interval
        if interval is None:
            return made.sentence
        votes = ", by the means of votes" if self.by_votes and not tested.is_share else ""
        level = f"{100 * interval.level:g}% interval"
        said = f"the true difference lies between {between(interval, shown_as, ' and ')}"
        said += f" ({level} from {counted(made.n, 'sample')}{votes})"
        if made.verdict != "undecided":
            return said
        if interval.low <= 0 <= interval.high:
            said += ", so it may be chance"
        else:
            said += f", but with all tests together it may be chance (p {p_value(made.p_adjusted)})"
        if made.detectable is None:
            return said
        detectable = metric_change(shown_as, made.detectable).lstrip("+")
        return f"{said}; a true difference of {detectable} would be found in 4 of 5 comparisons"

    @property
    def same_samples(self) -> bool:
        """Whether both runs have the same samples."""
        return not (self.counts.only_in_a or self.counts.only_in_b)

    @property
    def comparable_metrics(self) -> tuple[MetricPair, ...]:
        """The metrics of both runs; if their samples differ, as tested over those that both have.

        A difference between metrics of different samples would say nothing about the runs.
        """
        if self.same_samples:
            return self.metrics
        made = {self._run_metric(each): each.comparison for each in self.tested}
        return tuple(
            MetricPair(
                metric=each.metric,
                a=pair.mean_a,
                b=pair.mean_b,
                difference=difference(pair.mean_a, pair.mean_b),
                n_a=pair.n,
                n_b=pair.n,
            )
            for each in self.metrics
            if (pair := made.get(each.metric)) is not None
        )

    def _run_metric(self, tested: MetricDifference) -> str:
        return _RUN_METRICS.get(tested.metric, self.b.rubric.mean_of(tested.metric))

    def rows(self) -> Iterator[tuple[MetricDifference, MetricPair]]:
        """Yield each tested metric that is comparable, with its values."""
        known = {each.metric: each for each in self.comparable_metrics}
        first = (self.headline, "passed")
        for each in sorted(self.tested, key=lambda each: each.metric not in first):
            pair = known.get(self._run_metric(each))
            if pair is not None and (pair.a, pair.b) != (None, None):
                yield each, pair

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


def between(interval: Interval, name: str, joined: str = " to ") -> str:
    """Return the ends of the interval of a difference."""
    low, high = (metric_change(name, each) for each in (interval.low, interval.high))
    return f"{low.removesuffix(' point').removesuffix(' points')}{joined}{high}"


def p_value(p: float | None) -> str:
    """Return a p value for a table."""
    return "-" if p is None else f"< {_SMALLEST_P}" if p < _SMALLEST_P else f"{p:.2g}"


def word(value: bool | str | None) -> str:  # noqa: FBT001 - a verdict to show, not a switch
    """Return a verdict as a word."""
    return _short(value) if isinstance(value, str) else _WORDS[value]


def _short(value: Any) -> str:  # noqa: ANN401 - anything that metadata can have
    return cut(as_text(value), _LONGEST)
