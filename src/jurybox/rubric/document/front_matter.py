"""Reads the front matter, and checks that its parts agree with each other."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Final, get_args

import msgspec
from msgspec import Meta

from jurybox.documents.field_reader import FieldReader, TextForm, key_place, node_at
from jurybox.documents.findings import Findings, Place
from jurybox.documents.numbers import decimals_of, show_number
from jurybox.documents.plain_yaml import Items, Pairs, Scalar, read_yaml
from jurybox.rubric import metrics, rubric_model
from jurybox.rubric.scale import Scale
from jurybox.text_format import listed, nearest

_WHAT: Final = "the front matter"
_REQUIRED: Final = {"id": "support-answers", "version": "1.0.0", "scale": "1-5"}
EXTENDS: Final = "extends"
REVIEW_REASONS: Final[tuple[rubric_model.ReviewReason, ...]] = get_args(rubric_model.ReviewReason)

ScaleText = Annotated[Scale, TextForm("bad-scale", Scale.parse), Meta(examples=["1-5"])]
Weight = Annotated[float, Meta(ge=0, le=1000)]


class FrontMatter(rubric_model.RubricSettings, msgspec.Struct, frozen=True, kw_only=True):
    """The values of the front matter, key by key."""

    extends: str | None = None
    scale: ScaleText | None = None
    scales: Annotated[dict[str, ScaleText], Meta(examples=["{safety: 0-1}"])] = {}
    weights: Annotated[dict[str, Weight], Meta(examples=["{correctness: 2}"])] = {}
    evidence: Annotated[
        dict[str, rubric_model.EvidenceKind], Meta(examples=["{correctness: reference}"])
    ] = {}
    sources: Annotated[
        dict[str, rubric_model.CriterionSource], Meta(examples=["{correctness: judge}"])
    ] = {}


KEYS: Final = FrontMatter.__struct_encode_fields__
"""Every key of the front matter."""
# An overlay changes these and `generation` entry by entry, and replaces all other keys.
_MERGED: Final = ("scales", "weights", "evidence", "without_response", "metrics")


def open_front_matter(text: str | None, first_line: int, findings: Findings) -> Pairs | None:
    """Read the front matter's YAML, which begins on ``first_line``."""
    node = None if text is None else read_yaml(text, Place(first_line), findings)
    hint = "write `key: value` lines such as `id: my-rubric`"
    pairs = FieldReader(findings).open(Pairs, node, _WHAT, hint)
    if pairs is None or pairs.pairs:
        return pairs
    # An empty front matter has no place of its own; its opening line is used instead.
    return msgspec.structs.replace(pairs, place=Place(1))


def read_front_matter(node: Pairs, base: FrontMatter | None, reader: FieldReader) -> FrontMatter:
    """Read all valid values; missing keys of an overlay come from its base."""
    reader.note_unknown(node, _WHAT, KEYS)
    for key, example in _REQUIRED.items():
        if base is None or key != "scale":
            reader.require(node, _WHAT, key, example)
    given = reader.fields(FrontMatter, node)
    if base is None:
        return FrontMatter(**given)
    inherited: dict[str, Any] = msgspec.structs.asdict(base) | {"id": "", "version": ""}
    if "reply_format" in given:
        # Each of these belongs to one reply format, so a different format doesn't inherit it.
        inherited |= {
            rules.option: None for rules in rubric_model.REPLY_FORMATS.values() if rules.option
        }
    given |= {key: {**inherited[key], **given[key]} for key in _MERGED if key in given}
    if isinstance(generation := node_at(node, "generation"), Pairs):
        changed = reader.fields(rubric_model.Generation, generation)
        given["generation"] = msgspec.structs.replace(base.generation, **changed)
    return FrontMatter(**inherited | given)


def front_matter_of(rubric: rubric_model.Rubric) -> FrontMatter:
    """Return the front matter of a rubric; `sources` is omitted, as it follows from the rest."""
    criteria = rubric.criteria
    return FrontMatter(
        **rubric_model.settings_of(rubric),
        scale=rubric.scale,
        scales={each.id: each.scale for each in criteria if each.scale != rubric.scale},
        weights={each.id: each.weight for each in criteria if each.weight != 1},
        evidence={each.id: each.evidence for each in criteria if each.evidence != "levels"},
    )


def decimals_of_bands(node: Pairs) -> int:
    """Return how many decimals the bands are written with."""
    bands = node_at(node, "bands")
    items = bands.items if isinstance(bands, Items) else ()
    starts = [node_at(each, "from") for each in items]
    return max((decimals_of(each.text) for each in starts if isinstance(each, Scalar)), default=0)


class FrontMatterCheck:
    """Reports contradictions within the front matter, or between it and the criteria.

    An overlay's text doesn't contain inherited values; findings on them point to ``extends``.
    """

    def __init__(
        self,
        node: Pairs,
        front: FrontMatter,
        criteria: Sequence[str],
        reader: FieldReader,
        at: Place | None,
    ) -> None:
        self._node = node
        self._front = front
        self._criteria = criteria
        self._reader = reader
        self._findings = reader.findings
        self._at = at or node.place
        self._scales = {each: front.scales.get(each, front.scale) for each in criteria}
        overall = front.overall_name
        self._shares = {overall, f"{overall}_mean", *metrics.SHARES}
        self._shares |= {n for n, each in front.metrics.items() if isinstance(each, metrics.Share)}

    def check(self) -> None:
        """Report everything that is wrong."""
        self._check_criteria()
        self._check_scores()
        self._check_options()
        self._check_components()
        self._check_metrics()
        self._check_bands()

    def _place(self, *path: str) -> Place:
        node = node_at(self._node, *path)
        return self._at if node is None else node.place

    def _key_place(self, *path: str) -> Place:
        node = node_at(self._node, *path[:-1])
        known = isinstance(node, Pairs) and node_at(node, path[-1]) is not None
        return key_place(node, path[-1]) if known and isinstance(node, Pairs) else self._at

    def _check_criteria(self) -> None:
        named = ("scales", "weights", "evidence", "sources", "without_response")
        for key in named if self._criteria else ():
            node = node_at(self._node, key)
            for criterion, _ in node.pairs if isinstance(node, Pairs) else ():
                if criterion.text not in self._criteria:
                    known = f"the criteria are {listed(self._criteria)}"
                    hint = nearest(criterion.text, self._criteria, known)
                    problem = f"there is no criterion `{criterion.text}`"
                    self._findings.add(criterion.place, "unknown-criterion", problem, hint)

    def _check_scores(self) -> None:
        weights = [self._front.weights.get(each, 1.0) for each in self._criteria]
        if weights and not any(weights):
            problem, hint = "the weights sum to zero", "give a criterion a weight above zero"
            self._findings.add(self._place("weights"), "zero-weights", problem, hint)
        for criterion, score in self._front.without_response.items():
            scale = self._scales.get(criterion)
            if scale is not None and not scale.accepts(score):
                problem = f"the score of `{criterion}` without a response is {show_number(score)}"
                place = self._place("without_response", criterion)
                self._findings.add(place, "out-of-range", problem, f"give {scale.describe()}")
        score, scale = self._front.fallback_score, self._front.scale
        if score is not None and scale is not None and not scale.contains(score):
            problem = f"`fallback_score` is {show_number(score)}"
            place = self._place("fallback_score")
            self._findings.add(place, "out-of-range", problem, f"give {scale.describe()}")

    def _check_options(self) -> None:
        """Report an option that belongs to a different reply format."""
        used = self._front.reply_format
        for name, rules in rubric_model.REPLY_FORMATS.items():
            key = rules.option
            if key is not None and name != used and node_at(self._node, key) is not None:
                problem = f"`{key}` has no effect with `reply_format: {used}`"
                hint = f"remove it, or use `reply_format: {name}`"
                self._findings.add(self._key_place(key), "unused-key", problem, hint)

    def _check_components(self) -> None:
        known = (*self._criteria, *metrics.MEASURES)
        for name, component in self._front.components.items():
            of, place = component.of, self._place("components", name)
            if self._criteria and of not in known:
                hint = nearest(of, known, "name a criterion or a measure")
                problem = f"a component can't be made of `{of}`"
                self._findings.add(place, "unknown-metric", problem, hint)
            if of in metrics.MEASURES and component.full_until is None:
                hint = "set the highest value that counts fully"
                problem = f"the measure `{of}` has no `full_until`"
                self._findings.add(place, "missing-key", problem, hint)
            if of in self._criteria and component.full_until is not None:
                problem = f"`full_until` has no effect for the criterion `{of}`"
                self._findings.add(place, "unused-key", problem, "remove it")
        total = sum(component.weight for component in self._front.components.values())
        written = node_at(self._node, "components")
        whole = isinstance(written, Pairs) and len(written.pairs) == len(self._front.components)
        if whole and round(total, 9) != 1:
            problem = f"the weights of the components sum to {total:g}, not 1"
            place = self._key_place("components")
            self._findings.add(place, "bad-weight", problem, "make them sum to 1")

    def _check_metrics(self) -> None:
        overall, components = self._front.overall_name, bool(self._front.components)
        sample = metrics.sample_metrics(self._criteria, overall=overall, components=components)
        run = metrics.run_metrics(self._criteria, overall=overall, components=components)
        for name, formula in self._front.metrics.items():
            if name in run or name in metrics.SUMMARY_PARTS:
                problem = f"`{name}` is a part of every run's summary"
                place, hint = self._key_place("metrics", name), "remove it or choose another name"
                self._findings.add(place, "name-taken", problem, hint)
            place = self._reader.place_of(formula, self._at)
            if not isinstance(formula, metrics.Share):
                self._check_metric("a sample", formula.of, sample, place)
            if not isinstance(formula, metrics.Statistic):
                self._check_comparison("a sample", formula.where, sample, place)
            run = (*run, name)
        # A mean has one name: the document's own, if it declares one.
        declared = self._front.metrics.values()
        own = [each for each in self._criteria if metrics.Statistic(by="mean", of=each) in declared]
        run = tuple(name for name in run if name.removesuffix("_mean") not in own)
        self._check_comparisons("a sample", self._front.pass_rules, sample)
        self._check_comparisons("a run", self._front.gates, run)
        self._check_decisions("a run", self._front.decisions, run)
        self._check_decisions("a sample", self._front.sample_decisions, sample)

    def _check_comparisons(
        self, what: str, comparisons: Sequence[metrics.Comparison], known: Sequence[str]
    ) -> None:
        for each in comparisons:
            self._check_comparison(what, each, known, self._reader.place_of(each, self._at))

    def _check_comparison(
        self, what: str, comparison: metrics.Comparison, known: Sequence[str], place: Place
    ) -> None:
        """Report an unknown metric, or a number off the scale of a share or a criterion."""
        name = comparison.name
        self._check_metric(what, name, known, place)
        scale = self._scales.get(name.removesuffix("_mean"))
        ends = (0, 1) if name in self._shares else scale and scale.ends
        if ends is not None and not ends[0] <= comparison.number <= ends[1]:
            problem = f"`{comparison}` asks for a value that `{name}` never has"
            hint = f"use a number from {show_number(ends[0])} to {show_number(ends[1])}"
            self._findings.add(place, "out-of-range", problem, hint)

    def _check_metric(self, what: str, name: str, known: Sequence[str], place: Place) -> None:
        # Without criteria, every name would be reported for the same fault.
        if self._criteria and name not in known:
            hint = nearest(name, known, f"use one of {listed(known)}")
            self._findings.add(place, "unknown-metric", f"{what} has no metric `{name}`", hint)

    def _check_bands(self) -> None:
        bands = self._front.bands
        for number, band in enumerate(bands):
            if any(band.low == other.low for other in bands[:number]):
                problem = f"two bands begin at {show_number(band.low)}"
                place = self._reader.place_of(band, self._at)
                self._findings.add(place, "bad-bands", problem, "move one of them")

    def _check_decisions(
        self, what: str, decisions: Sequence[rubric_model.Decision], known: Sequence[str]
    ) -> None:
        for each in decisions:
            self._check_comparisons(what, (*each.when_any, *each.when_all), known)
            place = self._reader.place_of(each, self._at)
            for problem, hint in _decision_faults(each, is_last=each is decisions[-1]):
                self._findings.add(place, "bad-decision", problem, hint)


def _decision_faults(
    decision: rubric_model.Decision, *, is_last: bool
) -> Iterator[tuple[str, str]]:
    conditional = bool(decision.when_any or decision.when_all)
    if decision.when_any and decision.when_all:
        yield "a decision has both `when_any` and `when_all`", "use one, or two entries"
    if is_last and conditional:
        problem = "the last decision has a condition, so some cases would have no decision"
        yield problem, "add a last entry without a condition"
    if not is_last and not conditional:
        yield "a decision without a condition hides the ones below it", "move it to the end"
