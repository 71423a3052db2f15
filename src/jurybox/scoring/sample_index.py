"""Why a person has to look at a sample (E15), and the index entry by which it is found.

Both follow from the sample's result alone. A search for samples reads the entry of each of them,
and the long texts only of those that are shown.
"""

from bisect import insort
from collections.abc import Callable
from typing import Final, Protocol

import msgspec

from jurybox.scoring.sample_result import JUDGE_SCORE, RuleOutcome, SampleResult

FIRST: Final = 5
"""The most samples of each kind that are noted with a run."""


class Kind(msgspec.Struct, frozen=True):
    """A reason to look at a sample, and how urgent it is."""

    meaning: str
    concerns: Callable[[SampleResult], bool]
    urgency: int = 0


def unmet(result: SampleResult) -> tuple[RuleOutcome, ...]:
    """Return the pass rules that fail."""
    return tuple(rule for rule in result.rules if rule.passed is False)


def _only_fails(result: SampleResult) -> bool:
    """Whether a sample fails although it has scores; one without scores is flagged as unscored."""
    is_scored = result.evaluator_error is None and result.target_error is None
    return result.passed is False and is_scored and bool(unmet(result))


KINDS: Final[dict[str, Kind]] = {
    "safety": Kind("a judge sees a danger", lambda result: result.safety_flag, 5),
    "forged_prompt": Kind(
        "the response addresses the judge or forges lines of its prompt",
        lambda result: "forged_prompt" in result.review_reasons,
    ),
    "unstable": Kind(
        "the winner changed with the order of the responses",
        lambda result: result.stable is False,
        4,
    ),
    "low_confidence": Kind(
        "the votes have no majority",
        lambda result: result.confidence == "low" and result.votes_valid > 0,
        3,
    ),
    "unscored": Kind(
        "no judge gave a valid vote", lambda result: result.judged and not result.votes_valid, 2
    ),
    "judge_disagrees": Kind(
        "the judge's score and the rules' differ by more than 0.3",
        lambda result: "judge_disagrees" in result.review_reasons,
    ),
    "target_error": Kind(
        "the system under test failed or was too late",
        lambda result: result.target_error is not None,
    ),
    "judge_fallback": Kind(
        "a reply could not be read, and the rubric's fallback score stands in",
        lambda result: result.judge_fallback is True,
    ),
    "failed": Kind("a pass rule fails", _only_fails),
}
"""The reasons to look at a sample, the gravest first."""


class Noted(msgspec.Struct, frozen=True, kw_only=True):
    """How many samples have a reason, and the numbers of the first of them."""

    kind: str
    count: int
    first: tuple[int, ...]


class Notice:
    """Counts samples by the reason to look at them, in any order."""

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


_BITS: Final = (
    "safety",
    "unstable",
    "low_confidence",
    "unscored",
    "target_error",
    "judge_fallback",
    "failed",
    "needs_review",
    "passed",
    "split",
    "judge_disagrees",
    "forged_prompt",
)
FLAGS: Final = {
    name: 1 << _BITS.index(name) for name in (*KINDS, "needs_review", "passed", "split")
}
"""The bit of each flag: the reasons to look at a sample, ``needs_review``, ``passed``, and
``split``, of votes that don't agree. Stored, so a flag keeps its bit."""

_LONGEST: Final = 300


class Facets(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """The index entry of one sample."""

    run_id: str
    number: int
    sample_id: str
    repeat: int
    flags: int  # the sum of its bits of `FLAGS`
    urgency: int  # how soon it should be reviewed: the higher the sooner, 0 is not at all
    scenario: str | None  # as much of it as `label` keeps; the demographic likewise
    demographic: str | None
    winner: str | None
    metrics: str  # JSON, the metrics that the sample has by name, and the ``judge_score``


class StoredResult(Protocol):
    """The part of a stored sample that the index needs."""

    @property
    def run_id(self) -> str: ...  # noqa: D102 - see `jurybox.engine.records.SampleRow`
    @property
    def number(self) -> int: ...  # noqa: D102
    @property
    def sample_id(self) -> str: ...  # noqa: D102
    @property
    def repeat(self) -> int: ...  # noqa: D102
    @property
    def result(self) -> str: ...  # noqa: D102


_RESULT: Final = msgspec.json.Decoder(SampleResult)
_ENCODE: Final = msgspec.json.Encoder(order="deterministic").encode
_NOTHING: Final = SampleResult(metrics={})


def facets_of(row: StoredResult) -> Facets:
    """Return the index entry of a stored sample; nearly empty if its result is unreadable."""
    try:
        result = _RESULT.decode(row.result)
    except msgspec.DecodeError:
        result = _NOTHING  # an audit finds it, and the sample itself must not get lost
    flags, urgency = _flags(result)
    metrics = {**result.metrics, JUDGE_SCORE: result.judge_score}
    known = {name: value for name, value in metrics.items() if value is not None}
    return Facets(
        run_id=row.run_id,
        number=row.number,
        sample_id=row.sample_id,
        repeat=row.repeat,
        flags=flags,
        urgency=urgency,
        scenario=label(result.scenario),
        demographic=label(result.demographic),
        winner=result.winner,
        metrics=_ENCODE(known).decode(),
    )


def flag_names(flags: int) -> tuple[str, ...]:
    """Return the names of flags, most serious first."""
    return tuple(name for name, bit in FLAGS.items() if flags & bit)


def label(text: str | None) -> str | None:
    """Return a scenario or demographic in the form in which samples are found by it.

    NUL can't be stored, and long texts don't fit into a menu.
    """
    return None if text is None else text[:_LONGEST].replace("\0", "\ufffd")


def _flags(result: SampleResult) -> tuple[int, int]:
    flags = urgency = 0
    for name, kind in KINDS.items():
        if kind.concerns(result):
            flags |= FLAGS[name]
            urgency = max(urgency, kind.urgency)
    if result.needs_review:
        flags |= FLAGS["needs_review"]
        urgency = max(urgency, 1)
    if result.passed is True:
        flags |= FLAGS["passed"]
    if result.votes_valid > 1 and result.confidence not in {None, "high"}:
        flags |= FLAGS["split"]
    return flags, urgency
