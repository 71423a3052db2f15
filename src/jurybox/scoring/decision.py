"""Explains a run's decision: the metrics and criteria behind it, and the worst scenarios."""

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
_MOST_NAMED: Final = 3
_WORDS: Final = {
    "<": "below",
    "<=": "at most",
    ">": "above",
    ">=": "at least",
    "==": "which is",
    "!=": "other than",
}


def decision_reasons(
    rubric: Rubric, decision: Decision, metrics: Metrics, scenarios: Groups
) -> tuple[str, ...]:
    """Return the reasons for a decision; for the default decision, the conditions that failed.

    If no condition is about a criterion, the weakest criterion is named as well.
    """
    explainer = _Explainer(rubric, metrics, scenarios)
    rules = (*decision.when_any, *decision.when_all)
    held = [rule for rule in rules if rule.passes(metrics.get(rule.name))]
    lines = [line for rule in held for line in explainer.met(rule, held)]
    if not rules:
        lines = [*explainer.missed(decision)]
    if not any(rule.name in (*explainer.means, LOWEST_MEAN) for rule in held):
        lines += explainer.weakest()
    return tuple(dict.fromkeys(lines))


class _Explainer:
    """Describes metrics in words, each with the scenario in which it is lowest."""

    def __init__(self, rubric: Rubric, metrics: Metrics, scenarios: Groups) -> None:
        self._rubric = rubric
        self._metrics = metrics
        self._scenarios = scenarios
        self._overall = f"{rubric.overall_name}{_MEAN}"
        self.means = tuple(f"{criterion.id}{_MEAN}" for criterion in rubric.criteria)

    def met(self, rule: Comparison, held: Sequence[Comparison]) -> Iterator[str]:
        """Yield why a condition is met; for a condition on the lowest mean, name the criteria.

        A condition on every scenario shares a line with the same one on the overall mean.
        """
        lowest = _lowest_of(self.means, self._metrics)
        wanted = {(each.name, _bound(each)) for each in held}
        both = {(self._overall, _bound(rule)), (LOWEST_SCENARIO, _bound(rule))} <= wanted
        several = len(self._scenarios) > 1
        if rule.name == LOWEST_SCENARIO:
            if several and not both:
                yield f"every scenario averages {_bound(rule)}{self._where(self._overall)}"
        elif rule.name == self._overall and several and both:
            yield self._line(rule.name, f", and every scenario {_bound(rule)}", rule)
        elif rule.name != LOWEST_MEAN or lowest is None:
            yield self._line(rule.name, f", {_bound(rule)}", rule)
        elif rule.upward is False:
            for name in self.means:
                if rule.passes(self._metrics.get(name)):
                    yield self._line(name, f", {_bound(rule)}", rule)
        else:
            yield self._line(lowest, f", and no criterion averages less: {_bound(rule)}", rule)

    def missed(self, decision: Decision) -> Iterator[str]:
        """Yield the unmet ``when_all`` conditions of the decisions before this one."""
        for each in self._rubric.decisions:
            if each == decision:
                return
            for rule in each.when_all:
                if rule.passes(self._metrics.get(rule.name)):
                    continue
                wanted = f"{each.decide} needs {_bound(rule)}"
                if rule.name == LOWEST_SCENARIO:
                    yield from self._failing_scenarios(rule, wanted)
                else:
                    yield self._line(rule.name, f", and {wanted}", rule)

    def _failing_scenarios(self, rule: Comparison, wanted: str) -> Iterator[str]:
        """Yield the scenarios whose average is not good enough, each with its weakest criterion."""
        for scenario, metrics in self._scenarios.items():
            value = metrics.get(self._overall)
            if not rule.passes(value):
                weakest = _lowest_of(self.means, metrics)
                criterion = "" if weakest is None else f", weakest in {weakest.removesuffix(_MEAN)}"
                averages = f"scenario {scenario} averages {_shown(value, rule)}{criterion}"
                yield f"{averages}, and {wanted} in every one"

    def weakest(self) -> Iterator[str]:
        """Yield a line on the criterion with the lowest mean."""
        lowest = _lowest_of(self.means, self._metrics)
        if lowest is not None:
            yield f"the weakest criterion: {self._line(lowest, '')}"

    def _line(self, name: str, tail: str, rule: Comparison | None = None) -> str:
        value = _shown(self._metrics.get(name), rule)
        if name not in (*self.means, self._overall):
            return f"{name} is {value}{tail}"
        return f"{name.removesuffix(_MEAN)} averages {value}{tail}{self._where(name)}"

    def _where(self, name: str) -> str:
        """Return the end of a line: in which scenarios a metric is lowest, and its value."""
        known = {
            scenario: round(value, _COMPARED)
            for scenario, metrics in self._scenarios.items()
            if (value := metrics.get(name)) is not None
        }
        lowest = min(known.values(), default=None)
        there = [scenario for scenario, value in known.items() if value == lowest]
        if len(there) == len(self._scenarios) > 1:
            return "; the same in every scenario"
        named = ", ".join(there[:_MOST_NAMED])
        more = f" and {left} more" if (left := len(there) - _MOST_NAMED) > 0 else ""
        return f"; lowest in {named}{more} ({_shown(lowest)})" if there else ""


def _lowest_of(names: Iterable[str], metrics: Metrics) -> str | None:
    known = {name: value for name in names if (value := metrics.get(name)) is not None}
    return min(known, key=lambda name: known[name], default=None)


def _bound(rule: Comparison) -> str:
    return f"{_WORDS[rule.operator]} {show_number(rule.number)}"


def _shown(value: float | None, rule: Comparison | None = None) -> str:
    """Round a number for display, but never to the bound that it is compared with."""
    if value is None:
        return "unknown"
    short = round(value, _SHOWN)
    misleads = rule is not None and short == rule.number
    return show_number(round(value, _COMPARED) if misleads else short)
