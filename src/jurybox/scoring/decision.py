"""Explains a run's decision: the metrics and criteria behind it, and the worst scenarios (C12)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from jurybox.documents.numbers import show_number
from jurybox.rubric.metrics import LOWEST_MEAN, LOWEST_SCENARIO, Comparison
from jurybox.rubric.rubric_model import Decision, Rubric

Metrics = Mapping[str, float | None]
Groups = Mapping[str, Metrics]

_MEAN: Final = "_mean"
_SHOWN: Final = 4
_COMPARED: Final = 6
_NAMED: Final = 6
_WORDS: Final = {
    "<": "below",
    "<=": "at most",
    ">": "above",
    ">=": "at least",
    "==": "which is",
    "!=": "other than",
}
_LOW: Final = ("<", "<=")
_HIGH: Final = (">", ">=")


def decision_reasons(
    rubric: Rubric, decision: Decision, metrics: Metrics, scenarios: Groups
) -> tuple[str, ...]:
    """Return the reasons for a decision; for the default decision, the conditions not met.

    At least one criterion is named: if no condition is about one, the weakest.
    """
    explainer = _Explainer(rubric, metrics, scenarios)
    rules = (*decision.when_any, *decision.when_all)
    if not rules:
        return tuple(dict.fromkeys((*explainer.missed(decision), *explainer.weakest())))
    held = [rule for rule in rules if rule.passes(metrics.get(rule.name))]
    lines = (
        *explainer.met(held),
        *(() if explainer.names_criterion(held) else explainer.weakest()),
    )
    return tuple(dict.fromkeys(lines))


class _Explainer:
    """Describes metrics in words, each with the scenario in which it is lowest."""

    def __init__(self, rubric: Rubric, metrics: Metrics, scenarios: Groups) -> None:
        self._rubric = rubric
        self._metrics = metrics
        self._scenarios = scenarios
        self._means = tuple(f"{criterion.id}{_MEAN}" for criterion in rubric.criteria)
        self._scores = {rubric.overall_name, *(criterion.id for criterion in rubric.criteria)}

    def names_criterion(self, rules: Iterable[Comparison]) -> bool:
        """Whether a comparison is about a criterion."""
        return any(rule.name in (*self._means, LOWEST_MEAN) for rule in rules)

    def met(self, rules: Iterable[Comparison]) -> Iterator[str]:
        """Yield the conditions that are met, one line per metric.

        The lowest mean is named by its criteria.
        """
        of_metric: dict[str, list[Comparison]] = {}
        for rule in rules:
            for name in self._about(rule):
                of_metric.setdefault(name, []).append(rule)
        for name, bounds in of_metric.items():
            lowest = self._lowest_criterion() if name == LOWEST_MEAN else None
            if name == LOWEST_SCENARIO:
                yield from self._every_scenario(bounds)
            elif lowest is None:
                yield self._line(name, f", {_bounds(bounds)}", bounds)
            else:
                tail = f", and no criterion averages less: {_bounds(bounds)}"
                yield self._line(lowest, tail, bounds)

    def _about(self, rule: Comparison) -> Sequence[str]:
        if rule.name != LOWEST_MEAN or rule.operator not in _LOW:
            return (rule.name,)
        return [name for name in self._means if rule.passes(self._metrics.get(name))]

    def missed(self, decision: Decision) -> Iterator[str]:
        """Yield the unmet conditions of the better decisions."""
        for each in self._rubric.decisions:
            if each == decision:
                return
            for rule in each.when_all:
                if rule.passes(self._metrics.get(rule.name)):
                    continue
                wanted = f"{each.decide} needs {_bounds([rule])}"
                if rule.name == LOWEST_SCENARIO:
                    yield from self._failing_scenarios(rule, wanted)
                else:
                    yield self._line(rule.name, f", and {wanted}", [rule])

    def _every_scenario(self, rules: Sequence[Comparison]) -> Iterator[str]:
        """Yield a line if there are several scenarios and all are good enough."""
        value = self._metrics.get(LOWEST_SCENARIO)
        if len(self._scenarios) > 1 and value is not None:
            shown = _shown(value, [rule.number for rule in rules])
            there = self._where(f"{self._rubric.overall_name}{_MEAN}", "lowest")
            yield f"no scenario averages less than {shown}, {_bounds(rules)}{there}"

    def _failing_scenarios(self, rule: Comparison, wanted: str) -> Iterator[str]:
        """Yield the scenarios whose average is not good enough, each with its weakest criterion."""
        name = f"{self._rubric.overall_name}{_MEAN}"
        for scenario, metrics in self._scenarios.items():
            value = metrics.get(name)
            if not rule.passes(value):
                weakest = _lowest_of(self._means, metrics)
                criterion = "" if weakest is None else f", weakest in {weakest.removesuffix(_MEAN)}"
                shown = _shown(value, [rule.number])
                yield f"scenario {scenario} averages {shown}{criterion}, and {wanted} in every one"

    def weakest(self) -> Iterator[str]:
        """Yield the criterion that is lowest."""
        lowest = self._lowest_criterion()
        if lowest is not None:
            yield f"the weakest criterion: {self._line(lowest, '', [])}"

    def _lowest_criterion(self) -> str | None:
        return _lowest_of(self._means, self._metrics)

    def _line(self, name: str, tail: str, rules: Sequence[Comparison]) -> str:
        value = self._metrics.get(name)
        of_scores = name.removesuffix(_MEAN) in self._scores
        subject = name.removesuffix(_MEAN) if of_scores else name
        verb = "averages" if of_scores else "is"
        shown = _shown(value, [rule.number for rule in rules])
        good = any(rule.operator in _HIGH and rule.passes(value) for rule in rules)
        word = "lowest" if good else "worst"
        return f"{subject} {verb} {shown}{tail}{self._where(name, word) if of_scores else ''}"

    def _where(self, name: str, word: str) -> str:
        """Name the scenarios with the lowest mean, or state that all have the same mean."""
        known = {
            scenario: round(value, _COMPARED)
            for scenario, metrics in self._scenarios.items()
            if (value := metrics.get(name)) is not None
        }
        if not known:
            return ""
        lowest = min(known.values())
        there = [scenario for scenario, value in known.items() if value == lowest]
        if len(known) == 1:
            return f"; in {there[0]}, the only scenario"
        if len(there) == len(known):
            return f"; the same in all scenarios ({_few(there)})"
        return f"; {word} in {_few(there)} ({_shown(lowest, [])})"


def _lowest_of(names: Iterable[str], metrics: Metrics) -> str | None:
    known = {name: value for name in names if (value := metrics.get(name)) is not None}
    return min(known, key=lambda name: known[name], default=None)


def _few(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def _bounds(rules: Iterable[Comparison]) -> str:
    """Return the bounds of comparisons, those in the same direction together."""
    numbers: dict[str, dict[str, None]] = {}
    for rule in rules:
        numbers.setdefault(_WORDS[rule.operator], {})[show_number(rule.number)] = None
    return " and ".join(f"{word} {' and '.join(each)}" for word, each in numbers.items())


def _shown(value: float | None, bounds: Sequence[float]) -> str:
    """Round a number for display, but never to a bound that it misses."""
    if value is None:
        return "unknown"
    short = round(value, _SHOWN)
    return show_number(round(value, _COMPARED) if short in bounds else short)
