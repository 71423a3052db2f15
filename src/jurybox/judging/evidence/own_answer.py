"""What the model itself answers by a text.

A small model hardly sees that an answer goes against a detail of a long text, and it finds the
detail when it is asked for it. So it answers the question first, in few words, and the response is
held against that: two short answers are easy to compare.
"""

import re
from typing import Final

import msgspec

from jurybox.judging.evidence.material import TEACHER, question_part, text_part
from jurybox.judging.exchange import Failure, ModelReply, ModelRequest
from jurybox.judging.flow import Flow, Unscored
from jurybox.judging.panel import Seat
from jurybox.sample import Sample, Turn

_WORDINGS: Final = (
    "Answer from the text alone, in one short sentence.",
    "Reply with what the text says to the question, in one short sentence.",
    "Going by nothing but the text, answer the question briefly.",
)
_LONGEST: Final = 80
_CUT: Final = "length"
_LAST_END: Final = re.compile(r".*[.!?](?=\s)", re.DOTALL)
_SILENT: Final = "the model gave no answer of its own to the question"


class OwnAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """An answer, the text that it goes by, and the reply that it stands in."""

    text: str
    source: str
    reply: ModelReply


def own_answer(seat: Seat, sample: Sample, source: str) -> Flow[OwnAnswer | Unscored]:
    """Ask the model for its own answer by the source."""
    (outcome,) = yield (_request(seat, sample, source),)
    if isinstance(outcome, Failure):
        return Unscored(reason=outcome.message, cause="failure")
    text = " ".join(outcome.text.split())
    if not text:
        # Not asked again: at temperature 0 the same words get the same answer.
        return Unscored(reason=_SILENT, cause="defect", replies=(outcome,))
    if outcome.finish_reason == _CUT:
        text = _whole_sentences(text)
    return OwnAnswer(text=text, source=source, reply=outcome)


def _whole_sentences(text: str) -> str:
    """Return what was said before the words ran out, or show that they did."""
    whole = _LAST_END.match(text)
    return f"{text} ..." if whole is None else whole[0]


# It is asked as the teacher is who is asked about the response: what both read is read once.
def _request(seat: Seat, sample: Sample, source: str) -> ModelRequest:
    head = f"{text_part(source)}{question_part(sample)}"
    content = f"{head}\n{_WORDINGS[seat.vote % len(_WORDINGS)]}"
    return ModelRequest(
        model=seat.judge,
        messages=(Turn(role="system", content=TEACHER), Turn(role="user", content=content)),
        generation=msgspec.structs.replace(seat.generation, temperature=0.0, max_tokens=_LONGEST),
        vote=seat.vote,
        shared=(len(head),),
    )
