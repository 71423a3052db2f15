"""Replies of judges that the protocol takes."""

import json
from collections.abc import Iterable, Mapping

ITEMS = ("position", "verbosity", "self_enhancement", "formatting", "authority")
Why = str | Mapping[str, str]  # one reason for all criteria, or each with its own


def scored(
    scores: Mapping[str, float], why: Why = "So it is.", concerns: Iterable[str] = ()
) -> str:
    """Return a verdict with these scores."""
    return _reply(scores, why, concerns, scores=dict(scores))


def preferred(
    winner: str,
    by: Iterable[str] | Mapping[str, str],
    why: Why = "So it is.",
    concerns: Iterable[str] = (),
) -> str:
    """Return a verdict on a pair; criteria prefer the winner, unless each has its own side."""
    preferences = dict(by) if isinstance(by, Mapping) else dict.fromkeys(by, winner)
    return _reply(preferences, why, concerns, preferences=preferences, winner=winner)


def _reply(names: Iterable[str], why: Why, concerns: Iterable[str], **verdict: object) -> str:
    reply = {
        "reasoning": dict.fromkeys(names, why) if isinstance(why, str) else dict(why),
        "bias_checklist": dict.fromkeys(ITEMS, "It had no effect here."),
        "safety_concerns": [*concerns],
    }
    return json.dumps({**reply, **verdict})
