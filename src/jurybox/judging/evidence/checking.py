"""The bias checklist of a judge that is asked narrow questions: what keeps each bias out."""

from typing import Final

from jurybox.rubric.model import Rubric

_ALWAYS: Final = {
    "verbosity": "No question asks for length, and no score depends on it.",
    "self_enhancement": (
        "Not looked into: who wrote the response isn't known. {judge} answered questions about"
        " what it says, and gave no opinion on it."
    ),
    "formatting": "No question asks for layout, unless a level of the rubric does.",
    "authority": (
        "The questions hold the response against the material or the rubric's words; a title or"
        " a claimed source in it is no answer to any of them. The model may still be impressed."
    ),
}
_UNKNOWN: Final = "Not looked into: {judge} was asked narrow questions, and none is about this."

_ALONE: Final = "The response was read alone; there was no other to stand before it."
_PAIR: Final = (
    "Each response was also read alone, and the comparison was made in both orders and averaged;"
    " the reasoning says how far the order alone moved it."
)


def completed(checklist: Rubric, judge: str, *, pair: bool) -> dict[str, str]:
    """Return the bias checklist with what the method does against each bias."""
    against = {"position": _PAIR if pair else _ALONE, **_ALWAYS}
    return {
        item.id: against.get(item.id, _UNKNOWN).format(judge=judge) for item in checklist.criteria
    }
