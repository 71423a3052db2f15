"""Pass rules, components, metrics, gates, bands and decisions."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Final, TypeVar

import msgspec

from jurybox.documents.field_reader import Fields, kind_of, parse_at
from jurybox.documents.findings import Findings, Place
from jurybox.documents.numbers import decimals_of, show_number
from jurybox.documents.plain_yaml import Items, Node, Pairs, Scalar
from jurybox.rubric.conditions import Comparison, name_in
from jurybox.rubric.document.front_matter import parse_name
from jurybox.rubric.metrics import (
    AGGREGATE_SCORE,
    AGGREGATES,
    LOWEST_SCENARIO,
    MEASURES,
    RATES,
    SAMPLE_SCORE,
    SAMPLES,
    SUMMARY_PARTS,
    WIN_RATE,
    Ratio,
    Share,
    Statistic,
    parse_formula,
    run_metrics,
    sample_metrics,
)
from jurybox.rubric.rubric_model import Band, Component, Decision, Metric
from jurybox.rubric.scale import Scale
from jurybox.text_format import listed, nearest

T = TypeVar("T")

Ends = tuple[float | None, float | None]
_OPEN: Ends = (None, None)

COMPONENT_KEYS: Final = ("of", "weight", "full_until")
BAND_KEYS: Final = ("label", "from", "meaning")
DECISION_KEYS: Final = ("decide", "when_any", "when_all", "meaning")


class Thresholds(msgspec.Struct, frozen=True, kw_only=True):
    """What turns scores into verdicts."""

    pass_rules: tuple[Comparison, ...]
    components: tuple[Component, ...]
    component_places: tuple[Place, ...]
    metrics: tuple[Metric, ...]
    gates: tuple[Comparison, ...]
    bands: tuple[Band, ...]
    band_decimals: int
    decisions: tuple[Decision, ...]
    sample_decisions: tuple[Decision, ...]


class _Names:
    """The metrics that a comparison may use, each with its lowest and highest value."""

    def __init__(self, what: str, known: Mapping[str, Ends], findings: Findings) -> None:
        self._what = what
        self._known = known
        self._findings = findings

    def ends(self, name: str) -> Ends:
        return self._known.get(name, _OPEN)

    def check(self, name: str, place: Place) -> None:
        """Note an unknown metric."""
        # Without criteria nothing is known, and each name would be noted for the same fault again.
        if self._known and name not in self._known:
            hint = nearest(name, self._known, f"known are {listed(self._known)}")
            problem = f"{self._what} has no metric `{name}`"
            self._findings.add(place, "unknown-metric", problem, hint)

    def check_comparison(self, comparison: Comparison, place: Place) -> None:
        """Note an unknown metric, or a number that it can never reach."""
        self.check(comparison.name, place)
        low, high = self.ends(comparison.name)
        number, sign = comparison.number, comparison.operator
        below = low is not None and (number < low or (number == low and sign == "<"))
        above = high is not None and (number > high or (number == high and sign == ">"))
        if below or above:
            problem = f"`{comparison}` asks for a value that `{comparison.name}` never has"
            self._findings.add(place, "out-of-range", problem, f"it is {_between(low, high)}")


def _between(low: float | None, high: float | None) -> str:
    if high is None:
        return f"{show_number(low or 0)} or more"
    return f"between {show_number(low or 0)} and {show_number(high)}"


def read_thresholds(fields: Fields, scales: Mapping[str, Scale | None], overall: str) -> Thresholds:
    """Read every threshold; ``scales`` are those of the criteria that the body defines."""
    components = dict(_read_components(fields, tuple(scales)))
    ends = {name: _OPEN if scale is None else scale.ends for name, scale in scales.items()}
    of_sample = _sample_ends(ends, overall, components=bool(components))
    of_run = _run_ends(ends, overall, components=bool(components))
    sample = _Names("a sample", of_sample if scales else {}, fields.findings)
    metrics = tuple(_read_metrics(fields, sample, of_run))
    declared = {metric.name: _metric_ends(metric, sample) for metric in metrics}
    # A mean has one name: the document's own, where it declares one.
    means = [Statistic(by="mean", of=name) for name in scales]
    twins = {f"{each.formula.of}_mean" for each in metrics if each.formula in means}
    of_run = {name: each for name, each in of_run.items() if name not in twins}
    run = _Names("a run", (of_run | declared) if scales else {}, fields.findings)
    bands, decimals = _read_bands(fields)
    return Thresholds(
        pass_rules=tuple(_comparisons(fields, "pass", sample)),
        components=tuple(components),
        component_places=tuple(components.values()),
        metrics=metrics,
        gates=tuple(_comparisons(fields, "gates", run)),
        bands=bands,
        band_decimals=decimals,
        decisions=_read_decisions(fields, "decisions", run),
        sample_decisions=_read_decisions(fields, "sample_decisions", sample),
    )


def _sample_ends(ends: Mapping[str, Ends], overall: str, *, components: bool) -> dict[str, Ends]:
    known = dict.fromkeys(sample_metrics(ends, overall=overall, components=components), _OPEN)
    known |= dict.fromkeys(MEASURES, (0, None))
    known |= {SAMPLE_SCORE: (0, 1)} if components else {}
    return {**known, overall: (0, 1), **ends}


def _run_ends(ends: Mapping[str, Ends], overall: str, *, components: bool) -> dict[str, Ends]:
    known = dict.fromkeys(run_metrics(ends, overall=overall, components=components), _OPEN)
    known |= {SAMPLES: (0, None), **dict.fromkeys((*RATES, WIN_RATE), (0, 1))}
    known |= {AGGREGATE_SCORE: (0, 1)} if components else {}
    means = {f"{name}_mean": each for name, each in ends.items()}
    return {**known, LOWEST_SCENARIO: (0, 1), f"{overall}_mean": (0, 1), **means}


def _metric_ends(metric: Metric, sample: _Names) -> Ends:
    match metric.formula:
        case Share():
            return (0, 1)
        case Statistic(by=by, of=of) if AGGREGATES[by].bounded:
            return sample.ends(of)
        case _:
            return _OPEN


def _comparisons(fields: Fields, key: str, names: _Names) -> Iterator[Comparison]:
    for node in fields.items(key, 'a list of comparisons such as `["overall >= 0.6"]`'):
        comparison = _scalar(node, "bad-comparison", Comparison.parse, fields.findings)
        if comparison is not None:
            names.check_comparison(comparison, node.place)
            yield comparison
        elif isinstance(node, Scalar) and (name := name_in(node.text)) is not None:
            names.check(name, node.place)


def _scalar(node: Node, code: str, parse: Callable[[str], T], findings: Findings) -> T | None:
    if isinstance(node, Scalar):
        return parse_at(node, code, parse, findings)
    findings.add(node.place, code, f"{kind_of(node)} is given instead of a text", "write one line")
    return None


def _read_components(fields: Fields, criteria: Sequence[str]) -> Iterator[tuple[Component, Place]]:
    total = 0.0
    whole = True
    for key, value in fields.pairs("components", "a mapping from names to their parts"):
        component = _read_component(key, value, criteria, fields.findings)
        if component is None:
            whole = False
            continue
        total += component.weight
        yield component, key.place
    if "components" in fields and whole and round(total, 9) != 1:
        problem = f"the weights of the components sum to {total:g}, not 1"
        fields.findings.add(
            fields.key_place("components"), "bad-weight", problem, "make them sum to 1"
        )


def _read_component(
    key: Scalar, value: Node, criteria: Sequence[str], findings: Findings
) -> Component | None:
    name = parse_at(key, "bad-name", parse_name, findings)
    if not isinstance(value, Pairs):
        problem = f"the component `{key.text}` is {kind_of(value)}, not a mapping"
        findings.add(value.place, "wrong-type", problem, "write `{of: correctness, weight: 0.5}`")
        return None
    inner = Fields(value, f"the component `{key.text}`", COMPONENT_KEYS, findings)
    inner.require("of", "say which criterion or measure it is made of")
    inner.require("weight", "give it a weight")
    of, weight = inner.text("of"), inner.number("weight", 0, 1)
    full_until = inner.number("full_until", 0)
    if full_until == 0:
        problem = "`full_until` is 0, so nothing would ever count fully"
        findings.add(inner.value_place("full_until"), "out-of-range", problem, "use more than 0")
    if of is not None and criteria and of not in (*criteria, *MEASURES):
        hint = nearest(of, (*criteria, *MEASURES), "name a criterion or a measure")
        problem = f"a component can't be made of `{of}`"
        findings.add(inner.value_place("of"), "unknown-metric", problem, hint)
    if of in MEASURES and "full_until" not in inner:
        problem = f"the measure `{of}` has no `full_until`"
        findings.add(value.place, "missing-key", problem, "say up to which value it counts fully")
    if of in criteria and "full_until" in inner:
        problem = f"`full_until` means nothing for the criterion `{of}`"
        findings.add(inner.key_place("full_until"), "unused-key", problem, "remove it")
    if name is None or of is None or weight is None:
        return None
    return Component(name=name, of=of, weight=float(weight), full_until=full_until)


def _read_metrics(fields: Fields, sample: _Names, taken: Collection[str]) -> Iterator[Metric]:
    for key, value in fields.pairs("metrics", "a mapping from names to formulas"):
        name = parse_at(key, "bad-name", parse_name, fields.findings)
        if name in taken or name in SUMMARY_PARTS:
            problem = f"`{name}` is a part of every run's summary"
            fields.findings.add(
                key.place, "name-taken", problem, "remove it or choose another name"
            )
        formula = _scalar(value, "bad-formula", parse_formula, fields.findings)
        if formula is None or name is None:
            continue
        match formula:
            case Statistic(of=of):
                sample.check(of, value.place)
            case Share(where=where):
                sample.check_comparison(where, value.place)
            case Ratio(of=of, where=where):
                sample.check(of, value.place)
                sample.check_comparison(where, value.place)
        yield Metric(name=name, formula=formula)


def _read_bands(fields: Fields) -> tuple[tuple[Band, ...], int]:
    """Return the bands, the highest first, and how many decimals they are written with."""
    findings = fields.findings
    bands: list[Band] = []
    decimals, unread = 0, 0
    for node in fields.items("bands", "a list such as `[{label: Good, from: 0.7}]`"):
        if not isinstance(node, Pairs):
            problem = f"a band is {kind_of(node)}, not a mapping"
            hint = "write `{label: Good, from: 0.7}`"
            findings.add(node.place, "wrong-type", problem, hint)
            unread += 1
            continue
        inner = Fields(node, "a band", BAND_KEYS, findings)
        inner.require("label", "give it a label")
        inner.require("from", "say from which overall score it begins")
        label, low = inner.text("label"), inner.number("from", 0, 1)
        if label is None or low is None:
            unread += 1
            continue
        written = inner.node("from")
        decimals = max(decimals, decimals_of(written.text) if isinstance(written, Scalar) else 0)
        if any(low == other.low for other in bands):
            problem = f"two bands begin at {show_number(low)}"
            findings.add(inner.value_place("from"), "bad-bands", problem, "move one of them")
        if any(label == other.label for other in bands):
            problem = f"two bands are called `{label}`"
            findings.add(inner.value_place("label"), "bad-bands", problem, "rename one of them")
        bands.append(Band(label=label, low=float(low), meaning=inner.text("meaning") or ""))
    lowest = min((band.low for band in bands), default=0)
    if lowest > 0 and not unread:
        problem = f"overall scores below {show_number(lowest)} have no band"
        findings.add(fields.key_place("bands"), "bad-bands", problem, "add a band `from: 0`")
    return tuple(sorted(bands, key=lambda band: -band.low)), decimals


def _read_decisions(fields: Fields, key: str, names: _Names) -> tuple[Decision, ...]:
    nodes = list(fields.items(key, "a list such as `[{decide: deploy}]`"))
    decisions: list[Decision] = []
    for node in nodes:
        if not isinstance(node, Pairs):
            problem = f"a decision is {kind_of(node)}, not a mapping"
            hint = 'write `{decide: deploy, when_all: ["overall_mean >= 0.7"]}`'
            fields.findings.add(node.place, "wrong-type", problem, hint)
            continue
        is_last = node is nodes[-1]
        decision = _read_decision(node, names, fields.findings, is_last=is_last)
        if decision is not None:
            decisions.append(decision)
    return tuple(decisions)


def _read_decision(
    node: Pairs, names: _Names, findings: Findings, *, is_last: bool
) -> Decision | None:
    inner = Fields(node, "a decision", DECISION_KEYS, findings)
    inner.require("decide", "say what is decided, such as `decide: deploy`")
    decide = inner.parsed("decide", "bad-name", parse_name)
    conditions = [key for key in ("when_any", "when_all") if key in inner]
    for key in conditions:
        if isinstance(value := inner.node(key), Items) and not value.items:
            findings.add(
                value.place, "bad-decision", f"`{key}` is empty", "add a comparison or remove it"
            )
    if len(conditions) > 1:
        problem = "a decision has both `when_any` and `when_all`"
        findings.add(
            inner.key_place("when_all"), "bad-decision", problem, "use one, or two entries"
        )
    if is_last and conditions:
        problem = "the last decision has a condition, so some case would have no decision"
        findings.add(node.place, "bad-decision", problem, "add a last entry without a condition")
    if not is_last and not conditions:
        problem = "a decision without a condition hides the ones below it"
        findings.add(node.place, "bad-decision", problem, "move it to the end")
    when_any = tuple(_comparisons(inner, "when_any", names))
    when_all = tuple(_comparisons(inner, "when_all", names))
    if decide is None:
        return None
    meaning = inner.text("meaning") or ""
    return Decision(decide=decide, when_any=when_any, when_all=when_all, meaning=meaning)
