"""What each judge said by itself, as far as its reply can be read: scores, and why."""

from collections.abc import Iterable
from typing import Any, Final, cast

import msgspec

from jurybox.engine.records import ExchangeRow, read_outcome, read_request
from jurybox.judging.exchange import Failure
from jurybox.reporting.metric_text import shown
from jurybox.web.page_text import CutText, cut_text

_MOST: Final = 30
_MOST_CRITERIA: Final = 60
_LONGEST: Final = 600


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """What one reply says on one criterion."""

    criterion: str
    score: str
    reasoning: CutText


class Vote(msgspec.Struct, frozen=True, kw_only=True):
    """One reply of a judge; ``exchange`` is its place among all exchanges, from 1."""

    exchange: int
    model: str
    said: tuple[Said, ...]


def votes_of(exchanges: Iterable[ExchangeRow]) -> list[Vote]:
    """Return the votes in replies that say them in JSON; others are read as they stand.

    Raises:
        msgspec.DecodeError: what is stored can't be read.

    """
    votes: list[Vote] = []
    for place, row in enumerate(exchanges, start=1):
        outcome = read_outcome(row)
        if row.role != "judge" or isinstance(outcome, Failure):
            continue
        said = _said(outcome.text)
        if said:
            votes.append(Vote(exchange=place, model=read_request(row).model, said=said))
        if len(votes) == _MOST:
            break
    return votes


def _said(text: str) -> tuple[Said, ...]:
    try:
        reply: Any = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return ()
    if not isinstance(reply, dict):
        return ()
    told = cast("dict[str, Any]", reply)
    scores = _object(told.get("scores")) or _object(told.get("preferences"))
    why = _object(told.get("reasoning"))
    names = [name for name in dict.fromkeys((*scores, *why)) if _is_said(scores.get(name))]
    return tuple(
        Said(
            criterion=name,
            score=_score(scores.get(name)),
            reasoning=cut_text(str(why.get(name, "")), _LONGEST),
        )
        for name in names[:_MOST_CRITERIA]
    )


def _object(value: Any) -> dict[str, Any]:  # noqa: ANN401 - whatever a model says
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _is_said(value: object) -> bool:
    return value is None or isinstance(value, str | int | float)


def _score(value: object) -> str:
    if isinstance(value, bool) or value is None:
        return ""
    return shown(value) if isinstance(value, int | float) else str(value)[:20]
