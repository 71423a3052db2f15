"""Replies of judges that the protocol takes."""

import json
from collections.abc import Iterable, Mapping

ITEMS = ("position", "verbosity", "self_enhancement", "formatting", "authority")


def scored(
    scores: Mapping[str, float], why: str = "So it is.", concerns: Iterable[str] = ()
) -> str:
    """Return a verdict with these scores, all for one reason."""
    return _reply(scores, why, concerns, scores=dict(scores))


def preferred(side: str, names: Iterable[str], why: str = "So it is.") -> str:
    """Return a verdict on a pair that prefers one side by every criterion."""
    preferences = dict.fromkeys(names, side)
    return _reply(preferences, why, (), preferences=preferences, winner=side)


def _reply(names: Iterable[str], why: str, concerns: Iterable[str], **verdict: object) -> str:
    reply = {
        "reasoning": dict.fromkeys(names, why),
        "bias_checklist": dict.fromkeys(ITEMS, "It had no effect here."),
        "safety_concerns": [*concerns],
    }
    return json.dumps({**reply, **verdict})
