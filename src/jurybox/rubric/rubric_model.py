"""The rubric as a frozen value: the contents of a document, and nothing else."""

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from jurybox.documents.field_reader import Name, TextForm
from jurybox.documents.numbers import round_half_up
from jurybox.errors import ParseError
from jurybox.rubric.checks import Check
from jurybox.rubric.metrics import Comparison, Formula, Statistic, parse_formula
from jurybox.rubric.rules import Lexicon, Rules
from jurybox.rubric.scale import Scale, weighted_mean
from jurybox.rubric.template import Template
from jurybox.text_format import listed, nearest


class FormatRules(msgspec.Struct, frozen=True, kw_only=True):
    """What a reply format requires of a rubric document."""

    option: str | None = None
    """The front matter key that only this format uses."""
    one_score: bool = False
    """Whether a reply has a single score: judges then score one criterion of a mixed rubric."""
    reserved: tuple[str, ...] = ()
    """Names that replies use themselves, so that no criterion may have them."""


REPLY_FORMATS: Final = {
    "json": FormatRules(),
    "strict-json": FormatRules(option="rationale_words", reserved=("rationale",)),
    "score-line": FormatRules(option="fallback_score", one_score=True),
    "verdict-text": FormatRules(one_score=True),
}


def parse_reply_format(text: str) -> str:
    """Read the name of a reply format."""
    if text not in REPLY_FORMATS:
        hint = nearest(text, REPLY_FORMATS, f"use one of {listed(REPLY_FORMATS)}")
        raise ParseError(f"there is no reply format `{text}`", hint)
    return text


ReaskWith = Literal["defect", "same"]
OnUnstable = Literal["tie", "review"]
CriterionSource = Literal["judge", "rules", "checks"]
"""What scores a criterion."""
EvidenceKind = Literal["levels", "reference", "context"]
ReviewReason = Literal[
    "safety", "unscored", "unstable", "low_confidence", "judge_disagrees", "forged_prompt"
]
"""Why a sample is queued for human review."""

ComparisonText = Annotated[Comparison, TextForm("bad-comparison", Comparison.parse)]
Comparisons = Annotated[tuple[ComparisonText, ...], Meta(examples=['["overall >= 0.6"]'])]

FormulaText = Annotated[Formula, TextForm("bad-formula", parse_formula)]

_ID: Final = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_VERSION: Final = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9}){0,2}")
_MAX_ID: Final = 64
_DECIMALS: Final = 6
UNLABELED: Final = "Indicators"
"""The label for lists of indicators that have none."""


def parse_rubric_id(text: str) -> str:
    """Read a rubric's id."""
    if _ID.fullmatch(text) is None or len(text) > _MAX_ID:
        hint = f"use lower-case letters, digits and single hyphens, at most {_MAX_ID} characters"
        raise ParseError(f"`{text}` can't be a rubric's id", hint)
    return text


def _parse_version(text: str) -> str:
    if _VERSION.fullmatch(text) is None:
        raise ParseError(f"`{text}` is not a version", "write it as `1.2.0`")
    return text


class Level(msgspec.Struct, frozen=True, kw_only=True):
    """What a score, or a range of scores, means."""

    low: float
    high: float
    meaning: str
    label: str = ""

    @property
    def words(self) -> str:
        """The label, if there is one, and the meaning."""
        return ": ".join(filter(None, (self.label, self.meaning)))


class Indicators(msgspec.Struct, frozen=True, kw_only=True):
    """A labeled list of things to look for, with an explanation."""

    label: str
    items: tuple[str, ...]
    text: str = ""


class Criterion(msgspec.Struct, frozen=True, kw_only=True):
    """One criterion, with everything that a person or a model needs to judge by it.

    ``level_columns`` are the headings of the table of levels; ``level_decimals`` is the number of
    decimals in its scores. ``evidence`` is what an evidence judge compares a response with: the
    reference answer, the context, or the descriptions of the levels.
    """

    id: str
    name: str
    scale: Scale
    definition: str = ""
    weight: float = 1.0
    levels: tuple[Level, ...] = ()
    level_columns: tuple[str, ...] = ()
    level_decimals: int = 0
    indicators: tuple[Indicators, ...] = ()
    rules: Rules | None = None
    checks: tuple[Check, ...] = ()
    evidence: EvidenceKind = "levels"

    @property
    def source(self) -> CriterionSource:
        """What scores it: its rules or checks if it has any, else a judge."""
        if self.checks:
            return "checks"
        return "judge" if self.rules is None else "rules"

    def band(self, score: float) -> Level | None:
        """Return the level of a score, rounded to the decimals of the levels."""
        rounded = round_half_up(score, self.level_decimals)
        return next((level for level in self.levels if level.low <= rounded <= level.high), None)


class Protocol(msgspec.Struct, frozen=True, kw_only=True):
    """How judges are asked, and how their replies are read."""

    votes: Annotated[int, Meta(ge=1, le=99)] = 3
    stop_when_decided: bool = False
    vote_temperature: Annotated[float, Meta(ge=0, le=2)] = 0.7
    reasks: Annotated[int, Meta(ge=0, le=9)] = 2
    reask_with: ReaskWith = "defect"
    on_unstable: OnUnstable = "tie"
    reply_format: Annotated[str, TextForm("unknown-choice", parse_reply_format)] = "json"
    rationale_words: Annotated[int, Meta(ge=1)] | None = None
    fallback_score: float | None = None
    variance_repeats: Annotated[int, Meta(ge=2, le=99)] = 3


class Generation(msgspec.Struct, frozen=True, kw_only=True):
    """Sampling parameters."""

    temperature: Annotated[float, Meta(ge=0, le=2)] = 0.0
    top_p: Annotated[float, Meta(gt=0, le=1)] = 1.0
    max_tokens: Annotated[int, Meta(ge=1)] = 1024
    seed: int = 42


class Component(msgspec.Struct, frozen=True, kw_only=True):
    """A part of ``sample_score``: a criterion, or a measure that counts fully up to a bound."""

    of: Annotated[str, Meta(examples=["correctness"])]
    weight: Annotated[float, Meta(ge=0, le=1, examples=[0.5])]
    full_until: Annotated[float, Meta(gt=0)] | None = None


class Band(msgspec.Struct, frozen=True, kw_only=True):
    """A name for the overall scores from ``low`` up to the next band."""

    label: Annotated[str, Meta(examples=["Good"])]
    low: Annotated[float, Meta(ge=0, le=1, examples=[0.7])] = msgspec.field(name="from")
    meaning: str = ""


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """A decision, made if any (or all) comparisons pass; without comparisons, it is the default."""

    decide: Annotated[Name, Meta(examples=["deploy"])]
    when_any: Comparisons = ()
    when_all: Comparisons = ()
    meaning: str = ""


def releases(decisions: Sequence[Decision], name: str | None) -> bool:
    """Return whether a decision has ``when_all``; if none has, whether it is the last one."""
    favorable = [each for each in decisions if each.when_all] or decisions[-1:]
    return any(each.decide == name for each in favorable)


class Section(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the document that is neither a criterion nor a rule, verbatim."""

    title: str
    text: str


class RubricSettings(Protocol, frozen=True, kw_only=True):
    """The front matter's settings for a rubric as a whole.

    ``without_response`` are the scores of a sample without a response; criteria that it omits stay
    unscored. ``require_review`` lists the reasons for review that block a release.
    """

    id: Annotated[str, TextForm("bad-id", parse_rubric_id)] = ""
    version: Annotated[str, TextForm("bad-version", _parse_version)] = ""
    overall_name: Name = "overall"
    generation: Generation = Generation()
    without_response: Annotated[dict[str, float], Meta(examples=["{correctness: 1}"])] = {}
    require_review: Annotated[tuple[ReviewReason, ...], Meta(examples=["[safety]"])] = ("safety",)
    pass_rules: Comparisons = msgspec.field(name="pass", default=())
    components: Annotated[
        dict[Name, Component], Meta(examples=["{accuracy: {of: correctness, weight: 1}}"])
    ] = {}
    metrics: Annotated[
        dict[Name, FormulaText], Meta(examples=["{full_rate: share of correctness == 5}"])
    ] = {}
    gates: Annotated[tuple[ComparisonText, ...], Meta(examples=['["overall_mean >= 0.7"]'])] = ()
    bands: Annotated[tuple[Band, ...], Meta(examples=["[{label: Good, from: 0.7}]"])] = ()
    decisions: Annotated[tuple[Decision, ...], Meta(examples=["[{decide: deploy}]"])] = ()
    sample_decisions: tuple[Decision, ...] = ()


def settings_of(given: RubricSettings) -> dict[str, Any]:
    """Return the settings by their names in Python."""
    return {name: getattr(given, name) for name in RubricSettings.__struct_fields__}


class Rubric(RubricSettings, frozen=True, kw_only=True):
    """A whole rubric.

    Two rubrics are equal if they mean the same; ``sha256``, the hash of the document's bytes, shows
    whether their texts are the same too.
    """

    title: str
    scale: Scale
    criteria: tuple[Criterion, ...]
    description: str = ""
    band_decimals: int = 0
    lexicons: tuple[Lexicon, ...] = ()
    template: Template | None = None
    sections: tuple[Section, ...] = ()
    sha256: str = ""

    def __eq__(self, other: object) -> bool:
        """Compare everything but the hash of the text."""
        if not isinstance(other, Rubric):
            return NotImplemented
        mine, theirs = (msgspec.structs.asdict(each) for each in (self, other))
        return mine | {"sha256": other.sha256} == theirs

    def __hash__(self) -> int:
        """Return a hash that equal rubrics share."""
        return hash((self.id, self.version, self.title))

    @property
    def sources(self) -> set[CriterionSource]:
        """What scores the criteria with a weight other than 0: judges, rules or checks."""
        return {each.source for each in self.criteria if each.weight}

    @property
    def is_mixed(self) -> bool:
        """Whether judges score some of the weighted criteria, and rules or checks the others."""
        return len(self.sources) > 1 and "judge" in self.sources

    @property
    def checked(self) -> tuple[Criterion, ...]:
        """The criteria that checks score."""
        return tuple(each for each in self.criteria if each.checks)

    def asked(self) -> "Rubric":
        """Return the rubric with only the criteria that judges are asked about.

        Criteria with checks are left out. Criteria with rules are left out only if the rubric is
        mixed; otherwise judges score them in addition to the rules.
        """
        kept = ("judge",) if self.is_mixed else ("judge", "rules")
        judged = tuple(each for each in self.criteria if each.source in kept)
        if len(judged) == len(self.criteria):
            return self
        return msgspec.structs.replace(self, criteria=judged)

    def overall(self, scores: Mapping[str, float]) -> float | None:
        """Return the weighted mean of the scores, each from 0 to 1; None if one is missing."""
        counting = [each for each in self.criteria if each.weight]
        if any(each.id not in scores for each in counting):
            return None
        shares = (each.scale.normalize(scores[each.id]) for each in counting)
        return round(weighted_mean([each.weight for each in counting], shares), _DECIMALS)

    def mean_of(self, criterion_id: str) -> str:
        """Return the name of a score's mean over a run: declared for a criterion, or by default."""
        if criterion_id == self.overall_name:
            return f"{criterion_id}_mean"
        declared = Statistic(by="mean", of=criterion_id)
        named = (name for name, formula in self.metrics.items() if formula == declared)
        return next(named, f"{criterion_id}_mean")

    def criterion(self, criterion_id: str) -> Criterion | None:
        """Return the criterion with that id."""
        return next((each for each in self.criteria if each.id == criterion_id), None)

    def band(self, overall: float, *, rounded: bool = True) -> Band | None:
        """Return the band of an overall score, rounded to the decimals of the bands or exact.

        A band that is reached only by rounding is returned without its ``meaning``.
        """
        exact = round(overall, _DECIMALS)
        value = round_half_up(overall, self.band_decimals) if rounded else exact
        reached = (band for band in self.bands if band.low <= value)
        band = max(reached, key=lambda band: band.low, default=None)
        if band is None or exact >= band.low:
            return band
        return msgspec.structs.replace(band, meaning="")

    def level(self, overall: float, decision: str | None) -> Band | None:
        """Return a run's band; without its ``meaning`` if the decision allows no release."""
        band = self.band(overall)
        if band is None or not self.decisions or releases(self.decisions, decision):
            return band
        return msgspec.structs.replace(band, meaning="")
