"""Whether what is known of a judge still holds for a run: calibrated, stale, or neither."""

from collections.abc import Sequence

import msgspec

from jurybox.calibration.record import Calibration
from jurybox.documents.numbers import show_number


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """What a calibration depends on, as a run has it.

    ``methods`` are how its samples were judged; None where that was not looked up.
    """

    rubric_version: str
    rubric_sha256: str
    judges: tuple[str, ...]
    judge_version: str | None
    prompt_sha256: str
    votes: int
    methods: tuple[str, ...] | None = None


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """How a run stands with people.

    Attributes:
        id: the calibration's.
        date: when it was made.
        rubric_version: of which version of the rubric.
        n: how many samples its figures are from.
        agreement: kappa with people by criterion; ``winner`` for pairs.
        stale: what has changed since; empty where it still holds.

    """

    id: str
    date: str
    rubric_version: str
    n: int
    agreement: dict[str, float | None]
    stale: tuple[str, ...] = ()

    @property
    def line(self) -> str:
        """All that in one line."""
        if self.stale:
            why = ", ".join(self.stale)
            return f"calibration is stale: {why} since ({self.rubric_version}, {self.date})"
        told = ", ".join(f"{name} {_shown(value)}" for name, value in self.agreement.items())
        return f"calibrated: {told} with people (n {self.n}, {self.date})"


def standing(known: Sequence[Calibration], setting: Setting) -> Standing | None:
    """Return the newest calibration that holds, or else the newest with what has changed.

    ``known`` are those of the rubric's id, the newest first.
    """
    if not known:
        return None
    changes = [(each, _changes(each, setting)) for each in known]
    chosen, stale = next((pair for pair in changes if not pair[1]), changes[0])
    return Standing(
        id=chosen.id,
        date=chosen.created_at[:10],
        rubric_version=chosen.rubric_version,
        n=chosen.figures.n,
        agreement={each.criterion: each.kappa.value for each in chosen.figures.criteria},
        stale=stale,
    )


def _changes(then: Calibration, now: Setting) -> tuple[str, ...]:
    found: list[str] = []
    if then.rubric_sha256 != now.rubric_sha256:
        found.append("the rubric has changed")
    elif then.prompt_sha256 != now.prompt_sha256:
        # The rubric is in the prompt, so that with another rubric this goes without saying.
        found.append("the words in which judges are asked have changed")
    if sorted(then.judges) != sorted(now.judges):
        found.append(f"the judge has changed (it was {', '.join(then.judges)})")
    elif then.judge_version != now.judge_version:
        found.append(f"the judge's version has changed (it was {then.judge_version or 'unknown'})")
    if then.votes != now.votes:
        found.append(f"the number of votes has changed (it was {then.votes})")
    if now.methods is not None and not set(now.methods) <= set(then.figures.methods):
        was = ", ".join(then.figures.methods) or "unknown"
        found.append(f"the method of judging has changed (it was {was})")
    return tuple(found)


def _shown(value: float | None) -> str:
    return "unknown" if value is None else show_number(round(value, 2))
