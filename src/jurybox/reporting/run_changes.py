"""What changed between two runs: in metrics, groups, gates, settings and single samples."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal, cast

import msgspec

from jurybox.documents.numbers import short
from jurybox.reporting.attention import SamplePlace
from jurybox.reporting.metric_text import metric_title, plain_words
from jurybox.rubric.rubric_model import Rubric
from jurybox.scoring.summary import GateOutcome
from jurybox.text_format import as_text, cut, verb

ChangeKind = Literal[
    "lower", "no_longer_scored", "changed", "same", "unscored", "newly_scored", "higher"
]
Turn = Literal[
    "now_fails",
    "now_unscored",
    "newly_passes",
    "newly_fails",
    "now_passes",
    "other_winner",
    "moved_to_b",
    "moved_to_a",
]
ChangeFilter = Literal[ChangeKind, Turn, "labeled"]
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
TURNS: Final[dict[Turn, str]] = {
    "now_fails": "newly fail",
    "now_unscored": "passed before and now have no score",
    "newly_passes": "had no score before and now pass",
    "newly_fails": "had no score before and now fail",
    "now_passes": "newly pass",
    "other_winner": "changed winner",
    "moved_to_b": "moved to response B",
    "moved_to_a": "moved to response A",
}
"""How the verdict on samples can turn from the first run to the second, in words."""
RankedSample = tuple[float, SamplePlace]
"""The difference of a sample's overall score, and the sample in run B."""

VERDICTS: Final = ("passed", "winner", "stable", "safety_flag", "evaluator_error", "target_error")
"""The results of a sample apart from its metrics."""
_VERBS: Final = {"fail", "pass", "have"}
_OF_PAIRS: Final = {"other_winner", "moved_to_b", "moved_to_a"}
_USUAL: Final = {"lower", "same", "higher", "now_fails", "now_passes"}
_LONGEST: Final = 80
_SHORT: Final = 40
_WORDS: Final = {True: "yes", False: "no", None: "-"}


def turned(turn: Turn, count: int, noun: str = "") -> str:
    """Return how many samples turned, and how, in words; ``noun`` is what they are called."""
    words = TURNS[turn].split()
    if count <= 1:  # "none newly fails", like "1 newly fails"
        words = [verb(1, each) if each in _VERBS else each for each in words]
    many = f"{count:,}" if count else "no" if noun else "none"
    return " ".join([many, *([noun if count <= 1 else f"{noun}s"] if noun else []), *words])


class MetricPair(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A metric in both runs, the difference B minus A, and the numbers of samples.

    For a single sample, ``a`` and ``b`` are means of votes; ``recorded`` has the recorded scores if
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
    """A gate in both runs, maybe with other thresholds; None if a run doesn't have it."""

    gate: str
    metric: str
    a: GateOutcome | None
    b: GateOutcome | None


class SampleChange(msgspec.Struct, frozen=True, kw_only=True):
    """One sample that both runs have.

    ``change`` is how the sample changed as a whole: its score is `higher` or `lower`, it `changed`
    otherwise (another verdict with the same score, or other votes on a pair), or it is the `same`.
    Without an overall score in both, it is `no_longer_scored`, `newly_scored`, or `unscored` in
    both runs. Scores are compared by the means of votes. ``apart`` is the difference that sorts
    samples: of the score, or of the win of response A in pairs.
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
    concern: tuple[bool, bool] = (False, False)  # whether a reviewer sees a safety concern
    apart: float | None = None
    labeled: bool = False  # whether people's labels say which run's judge is right
    people: dict[str, list[float | str]] = {}  # these labels, by criterion or ``winner``

    def kinds(self) -> tuple[ChangeFilter, ...]:
        """Return every kind of change that counts and lists have it under."""
        return (self.change, *self.turned(), *(("labeled",) if self.labeled else ()))

    def flips(self) -> dict[str, tuple[Any, Any]]:
        """Return the verdicts that differ, by name."""
        both = {name: getattr(self, name) for name in VERDICTS}
        return {name: (a, b) for name, (a, b) in both.items() if a != b}

    def turned(self) -> tuple[Turn, ...]:
        """Return how the winner, or whether the sample passed, changed; empty if it didn't."""
        if None not in self.winner:
            a, b = self.winner
            to_a = b == "A" or (a == "B" and b == "tie")
            moved: Turn = "moved_to_a" if to_a else "moved_to_b"
            return () if a == b else ("other_winner", moved)
        match self.passed:
            case (True, False):
                return ("now_fails",)
            case (True, None) if self.evaluator_error[1]:
                return ("now_unscored",)
            case (None, bool(passed)) if self.evaluator_error[0]:
                return ("newly_passes" if passed else "newly_fails",)
            case (False, True):
                return ("now_passes",)
            case _:
                return ()

    def pair(self, metric: str | None) -> MetricPair | None:
        """Return a metric in both runs; None if neither run measures it."""
        return next((each for each in self.metrics if each.metric == metric), None)

    def details(self, headline: str | None, rubric: Rubric | None = None) -> Iterator[str]:
        """Yield the changes apart from the overall score, the largest score changes first.

        With a rubric, metrics have their titles instead of their ids, and the verdicts are left out
        that a page shows with each response.
        """
        if rubric is None and any(self.concern):
            yield f"safety concern of reviewers {' -> '.join(map(word, self.concern))}"
        labeled = {"winner": self.winner} if "winner" in self.people else {}
        for name, (a, b) in (labeled | self.flips()).items():
            words = f"{word(a)} -> {word(b)}{self._by_people(name)}"
            if rubric is None:
                yield f"{name} {words}"
            elif name in {"winner", "stable", "safety_flag"} and None not in (a, b):
                yield f"{plain_words(name)} {words}"
        if self.change in {"no_longer_scored", "newly_scored"}:
            return
        for each in sorted(self.metrics, key=lambda each: -abs(each.difference or 0)):
            on_two_scales = each.difference is None and None not in (each.a, each.b)
            labels = self._by_people(each.metric)
            if not labels and (each.metric in (headline, "latency_e2e_ms") or on_two_scales):
                continue
            a, b = each.recorded or (each.a, each.b)
            if each.a != each.b or a != b or labels:
                name = each.metric if rubric is None else metric_title(each.metric, rubric)
                yield f"{name} {each}{labels}"

    def _by_people(self, name: str) -> str:
        """Return people's labels, which follow those of the two judges; empty if there are none."""
        given = self.people.get(name, ())
        said = ", ".join(each if isinstance(each, str) else short(each) for each in given)
        return f", people {said}" if said else ""


class FieldChange(msgspec.Struct, frozen=True, kw_only=True):
    """A field of the metadata in which the runs differ."""

    field: str
    a: Any
    b: Any

    def __str__(self) -> str:
        """Return both values, shortened."""
        return f"{self.title}: {_short(self.a)} -> {_short(self.b)}"

    @property
    def title(self) -> str:
        """The field in plain words."""
        return " ".join(map(plain_words, self.field.split(".")))

    @property
    def setting(self) -> str:
        """The setting that the field is a part of, in plain words, with both values if short."""
        parts = self.field.split(".")
        whole = parts[: 2 if parts[0] == "rubric" else 1]
        name = f"the {' '.join(map(plain_words, whole))}"
        values = [_short(each) for each in (self.a, self.b)]
        known = whole == parts and None not in (self.a, self.b) and max(map(len, values)) < _SHORT
        return f"{name} ({' -> '.join(values)})" if known else name


def settings_of(fields: Sequence[FieldChange]) -> list[str]:
    """Return the settings that differ; not the content or version of what has another name."""
    names = {each.field for each in fields}
    kept = (
        each
        for each in fields
        if re.sub("_version(_or_hash)?$", "_id", each.field) not in names - {each.field}
    )
    return list(dict.fromkeys(each.setting for each in kept))


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
    now_unscored: int
    newly_passes: int
    newly_fails: int
    now_passes: int
    other_winner: int
    moved_to_b: int
    moved_to_a: int
    pairs: int
    only_in_a: int
    only_in_b: int
    identical_records: int
    same_responses: int
    labeled: int

    def in_words(self, a: str, b: str) -> str:
        """Return the counts, with names for the runs; kinds are left out if zero and unusual."""
        usual = {"same", "other_winner"} if self.pairs else _USUAL
        words: dict[str, str] = {
            **{kind: f"{getattr(self, kind):,} {said}" for kind, said in self.names.items()},
            **{turn: turned(turn, getattr(self, turn)) for turn in TURNS},
            "only_in_a": f"{self.only_in_a:,} only in {a}",
            "only_in_b": f"{self.only_in_b:,} only in {b}",
        }
        return ", ".join(
            said for kind, said in words.items() if getattr(self, kind) or kind in usual
        )

    @property
    def names(self) -> dict[str, str]:
        """How samples like these can change, in words; pairs have no score."""
        return CHANGES | ({"changed": "changed"} if self.pairs else {})

    @property
    def in_both(self) -> int:
        """The number of samples that both runs have."""
        return sum(getattr(self, kind) for kind in CHANGES)

    @property
    def kinds(self) -> list[ChangeFilter]:
        """The kinds of change that samples like these, pairs or not, can have."""
        turns: list[Turn] = [each for each in TURNS if (each in _OF_PAIRS) == bool(self.pairs)]
        return [*CHANGES, *turns, "labeled"]

    @property
    def changes(self) -> int:
        """The number of samples that changed in any way."""
        return self.in_both - self.same - self.unscored


def word(value: bool | str | None) -> str:  # noqa: FBT001 - a verdict to show, not a switch
    """Return a verdict as a word."""
    return _short(value)


def _short(value: Any) -> str:  # noqa: ANN401 - anything that metadata can have
    if isinstance(value, bool | None):
        return _WORDS[value]
    # A whole part, such as a criterion that only one rubric has, is named.
    part = cast("Mapping[str, Any]", value if isinstance(value, dict) else {})
    return cut(as_text(part.get("name", value)), _LONGEST)
