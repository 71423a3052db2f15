"""Explains a run's decision: the metrics and criteria behind it, and the worst scenarios."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

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


class DecisionReason(msgspec.Struct, frozen=True, kw_only=True):
    """A reason for a decision: a sentence, and the score and the scenario that it is about."""

    sentence: str
    score: str = ""  # a criterion, or the overall score
    scenario: str = ""  # the one in which the score is lowest


def _rounded(value: float, bound: float | None) -> str:
    """Round a number for display, but never to the bound that it is compared with."""
    short = round(value, _SHOWN)
    return show_number(round(value, _COMPARED) if short == bound else short)


def decision_reasons(
    rubric: Rubric,
    decision: Decision,
    metrics: Metrics,
    scenarios: Groups,
    *,
    title: Callable[[str], str] = str,
    shown: Callable[[float, float | None], str] = _rounded,
) -> tuple[DecisionReason, ...]:
    """Return the reasons for a decision; for the default decision, the conditions that failed.

    If no condition is about a criterion, the weakest criterion is named as well. ``title`` names
    scores in the sentences, and ``shown`` formats values, each with the bound that it meets or not.
    """
    explainer = _Explainer(rubric, metrics, scenarios, title, shown)
    rules = (*decision.when_any, *decision.when_all)
    held = [rule for rule in rules if rule.passes(metrics.get(rule.name))]
    lines = [line for rule in held for line in explainer.met(rule, held)]
    if not rules:
        lines = [*explainer.missed(decision)]
    if not any(rule.name in (*explainer.means, LOWEST_MEAN) for rule in held):
        lines += explainer.weakest()
    return tuple({each.sentence: each for each in lines}.values())


class _Explainer(msgspec.Struct, frozen=True):
    """Describes metrics in words, each with the scenario in which it is lowest."""

    rubric: Rubric
    metrics: Metrics
    scenarios: Groups
    title: Callable[[str], str]
    format: Callable[[float, float | None], str]

    @property
    def overall(self) -> str:
        return f"{self.rubric.overall_name}{_MEAN}"

    @property
    def means(self) -> tuple[str, ...]:
        return tuple(f"{criterion.id}{_MEAN}" for criterion in self.rubric.criteria)

    def met(self, rule: Comparison, held: Sequence[Comparison]) -> Iterator[DecisionReason]:
        """Yield why a condition is met; for a condition on the lowest mean, name the criteria.

        A condition on every scenario shares a line with the same one on the overall mean.
        """
        lowest = _lowest_of(self.means, self.metrics)
        wanted = {(each.name, _bound(each)) for each in held}
        both = {(self.overall, _bound(rule)), (LOWEST_SCENARIO, _bound(rule))} <= wanted
        several = len(self.scenarios) > 1
        if rule.name == LOWEST_SCENARIO:
            if several and not both:
                yield self._reason(self.overall, f"every scenario averages {_bound(rule)}")
        elif rule.name == self.overall and several and both:
            yield self._line(rule.name, f", and every scenario {_bound(rule)}", rule)
        elif rule.name != LOWEST_MEAN or lowest is None:
            yield self._line(rule.name, f", {_bound(rule)}", rule)
        elif rule.upward is False:
            for name in self.means:
                if rule.passes(self.metrics.get(name)):
                    yield self._line(name, f", {_bound(rule)}", rule)
        else:
            yield self._line(lowest, f", and no criterion averages less: {_bound(rule)}", rule)

    def missed(self, decision: Decision) -> Iterator[DecisionReason]:
        """Yield the unmet ``when_all`` conditions of the decisions before this one."""
        for each in self.rubric.decisions:
            if each == decision:
                return
            for rule in each.when_all:
                if rule.passes(self.metrics.get(rule.name)):
                    continue
                wanted = f"{each.decide} needs {_bound(rule)}"
                if rule.name == LOWEST_SCENARIO:
                    yield from self._failing_scenarios(rule, wanted)
                else:
                    yield self._line(rule.name, f", and {wanted}", rule)

    def _failing_scenarios(self, rule: Comparison, wanted: str) -> Iterator[DecisionReason]:
        """Yield the scenarios whose average is not good enough, each with its weakest criterion."""
        for scenario, metrics in self.scenarios.items():
            value = metrics.get(self.overall)
            if not rule.passes(value):
                weakest = (_lowest_of(self.means, metrics) or "").removesuffix(_MEAN)
                criterion = f", weakest in {self.title(weakest)}" if weakest else ""
                averages = f"scenario {scenario} averages {self._shown(value, rule)}{criterion}"
                sentence = f"{averages}, and {wanted} in every one"
                yield DecisionReason(sentence=sentence, score=weakest, scenario=scenario)

    def weakest(self) -> Iterator[DecisionReason]:
        """Yield a line on the criterion with the lowest mean."""
        lowest = _lowest_of(self.means, self.metrics)
        if lowest is not None:
            yield self._line(lowest, "", head="the weakest criterion: ")

    def _line(
        self, name: str, tail: str, rule: Comparison | None = None, head: str = ""
    ) -> DecisionReason:
        value, title = self._shown(self.metrics.get(name), rule), self.title
        if name not in (*self.means, self.overall):
            return DecisionReason(sentence=f"{title(name)} is {value}{tail}")
        return self._reason(name, f"{head}{title(name.removesuffix(_MEAN))} averages {value}{tail}")

    def _reason(self, name: str, words: str) -> DecisionReason:
        """Return a reason that ends with the scenarios in which a mean is lowest, and its value."""
        known = {
            scenario: round(value, _COMPARED)
            for scenario, metrics in self.scenarios.items()
            if (value := metrics.get(name)) is not None
        }
        lowest = min(known.values(), default=None)
        there = [scenario for scenario, value in known.items() if value == lowest]
        if len(there) == len(self.scenarios) > 1:
            there, words = [], f"{words}; the same in every scenario"
        named = ", ".join(there[:_MOST_NAMED])
        more = f" and {left} more" if (left := len(there) - _MOST_NAMED) > 0 else ""
        words += f"; lowest in {named}{more} ({self._shown(lowest)})" if there else ""
        alone = there[0] if len(there) == 1 else ""
        return DecisionReason(sentence=words, score=name.removesuffix(_MEAN), scenario=alone)

    def _shown(self, value: float | None, rule: Comparison | None = None) -> str:
        return "unknown" if value is None else self.format(value, rule and rule.number)


def _lowest_of(names: Iterable[str], metrics: Metrics) -> str | None:
    known = {name: value for name in names if (value := metrics.get(name)) is not None}
    return min(known, key=lambda name: known[name], default=None)


def _bound(rule: Comparison) -> str:
    return f"{_WORDS[rule.operator]} {show_number(rule.number)}"
