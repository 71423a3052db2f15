"""The index entry of a sample, by which it is found, filtered and sorted.

It follows from the sample's result alone. A search for samples reads this of each of them, and
the long texts only of those that are shown.
"""

from typing import Final, Protocol

import msgspec

from jurybox.scoring.review_reasons import KINDS
from jurybox.scoring.sample_result import JUDGE_SCORE, SampleResult

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

_URGENCIES: Final = {"safety": 5, "unstable": 4, "low_confidence": 3, "unscored": 2}
_REASONS: Final = tuple(
    (kind.concerns, FLAGS[name], _URGENCIES.get(name, 0)) for name, kind in KINDS.items()
)
_LONGEST: Final = 300


class Facets(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """The index entry of one sample.

    Attributes:
        flags: the sum of its bits of `FLAGS`.
        urgency: how soon it should be reviewed: the higher the sooner, 0 is not at all.
        scenario: as much of it as `label` keeps; the demographic likewise.
        metrics: JSON, the metrics that the sample has by name, and the ``judge_score``.

    """

    run_id: str
    number: int
    sample_id: str
    repeat: int
    flags: int
    urgency: int
    scenario: str | None
    demographic: str | None
    winner: str | None
    metrics: str


class StoredResult(Protocol):
    """A stored sample, as far as it matters here."""

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
    for concerns, bit, grade in _REASONS:
        if concerns(result):
            flags |= bit
            urgency = max(urgency, grade)
    if result.needs_review:
        flags |= FLAGS["needs_review"]
        urgency = max(urgency, 1)
    if result.passed is True:
        flags |= FLAGS["passed"]
    if result.votes_valid > 1 and result.confidence not in {None, "high"}:
        flags |= FLAGS["split"]
    return flags, urgency
