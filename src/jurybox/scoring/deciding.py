"""Why a run is decided as it is, in words: which figures, of which criteria, worst where (C12)."""

from collections.abc import Iterator, Mapping
from typing import Final

from jurybox.documents.numbers import show_number
from jurybox.rubric.comparison import Comparison
from jurybox.rubric.figures import LOWEST_MEAN
from jurybox.rubric.model import Decision, Rubric

Figures = Mapping[str, float | None]
Groups = Mapping[str, Figures]

_MEAN: Final = "_mean"
_SHOWN: Final = 4
_COMPARED: Final = 6
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
    rubric: Rubric, decision: Decision, figures: Figures, scenarios: Groups
) -> tuple[str, ...]:
    """Return what led to a decision; a decision for every other case has what it falls short of."""
    telling = _Telling(rubric, figures, scenarios)
    rules = (*decision.when_any, *decision.when_all)
    if rules:
        held = (rule for rule in rules if rule.holds(figures.get(rule.name)))
        return tuple(dict.fromkeys(line for rule in held for line in telling.held(rule)))
    return tuple(dict.fromkeys((*telling.missed(decision), *telling.weakest())))


class _Telling:
    """Says what figures mean, with the scenario in which each is lowest."""

    def __init__(self, rubric: Rubric, figures: Figures, scenarios: Groups) -> None:
        self._rubric = rubric
        self._figures = figures
        self._scenarios = scenarios
        self._scores = {rubric.overall_name, *(criterion.id for criterion in rubric.criteria)}

    def held(self, rule: Comparison) -> Iterator[str]:
        """Yield what a comparison that holds says; the lowest mean is told by its criteria."""
        if rule.name != LOWEST_MEAN:
            yield self._line(rule.name, f", {_bound(rule)}", rule)
            return
        means = [f"{criterion.id}{_MEAN}" for criterion in self._rubric.criteria]
        if rule.operator in _LOW:
            below = [name for name in means if rule.holds(self._figures.get(name))]
            yield from (self._line(name, f", {_bound(rule)}", rule) for name in below)
            return
        lowest = self._lowest_criterion()
        if lowest is not None:
            yield self._line(lowest, f", and no criterion averages less: {_bound(rule)}", rule)

    def missed(self, decision: Decision) -> Iterator[str]:
        """Yield what the decisions above one would have needed."""
        for each in self._rubric.decisions:
            if each == decision:
                return
            for rule in each.when_all:
                if not rule.holds(self._figures.get(rule.name)):
                    wanted = f", and {each.decide} needs {_bound(rule)}"
                    yield self._line(rule.name, wanted, rule)

    def weakest(self) -> Iterator[str]:
        """Yield the criterion that is lowest."""
        lowest = self._lowest_criterion()
        if lowest is not None:
            yield f"the weakest criterion: {self._line(lowest, '', None)}"

    def _lowest_criterion(self) -> str | None:
        means = {
            name: value
            for criterion in self._rubric.criteria
            if (value := self._figures.get(name := f"{criterion.id}{_MEAN}")) is not None
        }
        return min(means, key=lambda name: means[name], default=None)

    def _line(self, name: str, tail: str, rule: Comparison | None) -> str:
        value = self._figures.get(name)
        of_scores = name.removesuffix(_MEAN) in self._scores
        subject = name.removesuffix(_MEAN) if of_scores else name
        verb = "averages" if of_scores else "is"
        shown = _shown(value, None if rule is None else rule.number)
        good = rule is not None and rule.operator in _HIGH and rule.holds(value)
        word = "lowest" if good else "worst"
        return f"{subject} {verb} {shown}{tail}{self._worst(name, word) if of_scores else ''}"

    def _worst(self, name: str, word: str) -> str:
        """Name the scenario with the lowest mean, where some scenario is lower than another."""
        known = {
            scenario: round(value, _COMPARED)
            for scenario, figures in self._scenarios.items()
            if (value := figures.get(name)) is not None
        }
        if len(set(known.values())) < 2:  # noqa: PLR2004 - one value is no worst one
            return ""
        scenario = min(known, key=lambda each: known[each])
        return f"; {word} in {scenario} ({_shown(known[scenario], None)})"


def _bound(rule: Comparison) -> str:
    return f"{_WORDS[rule.operator]} {show_number(rule.number)}"


def _shown(value: float | None, bound: float | None) -> str:
    """Show a number shortly, but never as the bound that it misses."""
    if value is None:
        return "unknown"
    short = round(value, _SHOWN)
    return show_number(round(value, _COMPARED) if short == bound else short)
