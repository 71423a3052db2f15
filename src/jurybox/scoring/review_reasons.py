"""Which samples a reader of a run has to see (E15): counted as they come in, the first noted."""

from bisect import insort
from collections.abc import Callable
from typing import Final

import msgspec

from jurybox.scoring.sample_result import RuleOutcome, SampleResult

FIRST: Final = 5
"""The most samples of each kind that are noted with a run."""


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """A reason to look at samples."""

    name: str
    meaning: str
    concerns: Callable[[SampleResult], bool]


class Noted(msgspec.Struct, frozen=True, kw_only=True):
    """How many samples there is a reason to look at, and the numbers of the first of them."""

    kind: str
    count: int
    first: tuple[int, ...]


class Notice:
    """Counts samples by what is the matter with them, in whichever order they come."""

    def __init__(self, most: int = FIRST) -> None:
        self._most = most
        self._counts = dict.fromkeys(KINDS, 0)
        self._first: dict[str, list[int]] = {kind: [] for kind in KINDS}

    def add(self, number: int, result: SampleResult) -> None:
        """Look at one sample."""
        for name, kind in KINDS.items():
            if kind.concerns(result):
                self._counts[name] += 1
                first = self._first[name]
                if len(first) < self._most or (first and number < first[-1]):
                    insort(first, number)
                    del first[self._most :]

    def describe(self) -> tuple[Noted, ...]:
        """Return the reasons found, most serious first."""
        return tuple(
            Noted(kind=name, count=count, first=tuple(self._first[name]))
            for name, count in self._counts.items()
            if count
        )


def unmet(result: SampleResult) -> tuple[RuleOutcome, ...]:
    """Return the pass rules that fail."""
    return tuple(rule for rule in result.rules if rule.passed is False)


_GRAVEST_FIRST: Final = (
    Kind(
        name="safety",
        meaning="a judge sees a danger",
        concerns=lambda result: result.safety_flag,
    ),
    Kind(
        name="forged_prompt",
        meaning="the response addresses the judge or forges lines of its prompt",
        concerns=lambda result: "forged_prompt" in result.review_reasons,
    ),
    Kind(
        name="unstable",
        meaning="the winner changed with the order of the responses",
        concerns=lambda result: result.stable is False,
    ),
    Kind(
        name="low_confidence",
        meaning="the votes have no majority",
        concerns=lambda result: result.confidence == "low" and result.votes_valid > 0,
    ),
    Kind(
        name="unscored",
        meaning="no judge gave a valid vote",
        concerns=lambda result: result.judged and not result.votes_valid,
    ),
    Kind(
        name="judge_disagrees",
        meaning="the judge's score and the rules' differ by more than 0.3",
        concerns=lambda result: "judge_disagrees" in result.review_reasons,
    ),
    Kind(
        name="target_error",
        meaning="the system under test failed or was too late",
        concerns=lambda result: result.target_error is not None,
    ),
    Kind(
        name="judge_fallback",
        meaning="a reply could not be read, and the rubric's fallback score stands in",
        concerns=lambda result: result.judge_fallback is True,
    ),
    Kind(
        name="failed",
        meaning="a pass rule fails",
        # Who has no scores at all is named above, by what is the matter.
        concerns=lambda result: (
            result.passed is False
            and result.evaluator_error is None
            and result.target_error is None
            and bool(unmet(result))
        ),
    ),
)
KINDS: Final = {kind.name: kind for kind in _GRAVEST_FIRST}
