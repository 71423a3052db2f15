"""Reading how sure a model is from the alternatives to the first word of its reply."""

import math
from collections.abc import Mapping
from typing import Final

import msgspec

from jurybox.judging.exchange import ModelReply
from jurybox.judging.flow import Defect

ALTERNATIVES: Final = 20
"""How many alternatives are asked for: the most that common endpoints give."""

_LEAST: Final = 0.001
_MARKS: Final = " \t\r\n.,:;!*_`\"'()[]"


class _Alternative(msgspec.Struct):
    token: str
    logprob: float


class _Token(msgspec.Struct):
    top_logprobs: list[_Alternative] = []


class _Logprobs(msgspec.Struct):
    content: list[_Token] | None = None


def probabilities(reply: ModelReply, words: tuple[str, ...]) -> Mapping[str, float] | Defect:
    """Return the probability of each of some words as the reply; together they have all of it.

    Spellings of a word (``Yes``, ``" yes"``, ``YES.``) count together. A model may be about to
    begin with another word, such as "The"; what it thinks shows in the rest. A reply that is any
    of the words less than once in a thousand times says nothing about them.
    """
    if reply.logprobs is None:
        return Defect("the model gave no token probabilities, which this way of judging reads")
    try:
        read = msgspec.json.decode(reply.logprobs, type=_Logprobs)
    except msgspec.DecodeError as error:
        return Defect(f"its token probabilities can't be read: {error}")
    alternatives = read.content[0].top_logprobs if read.content else []
    masses = dict.fromkeys(words, 0.0)
    for each in alternatives:
        word = each.token.strip(_MARKS).lower()
        for known in words:
            if word == known.lower():
                masses[known] += math.exp(min(each.logprob, 0.0))
    whole = sum(masses.values())
    if not whole >= _LEAST:
        wanted = " nor ".join(f"`{word}`" for word in words)
        return Defect(f"the model would answer neither {wanted} (it would {whole:.1%} of the time)")
    return {word: mass / whole for word, mass in masses.items()}
