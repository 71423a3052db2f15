"""The names of the reply formats, and the rules for documents that use them.

The formats themselves are in ``jurybox.judging.formats``, one module per name.
"""

from typing import Final

import msgspec

from jurybox.errors import ParseError
from jurybox.text_format import listed, nearest


class FormatRules(msgspec.Struct, frozen=True, kw_only=True):
    """The rules for a document with this reply format."""

    unmentioned: str
    """What happens to a criterion that the document's own judge prompt does not mention."""
    option: str | None = None
    """The front matter key that only this format uses."""
    one_score: bool = False
    """Whether a reply has a single score: judges then score one criterion of a mixed rubric."""
    reserved: tuple[str, ...] = ()
    """Names that replies use themselves, so that no criterion may have them."""


REPLY_FORMATS: Final = {
    "json": FormatRules(unmentioned="judges see no more of it than its id"),
    "strict-json": FormatRules(
        unmentioned="judges won't score it, and their replies are refused without it",
        option="rationale_words",
        reserved=("rationale",),
    ),
    "score-line": FormatRules(
        unmentioned="judges don't score it", option="fallback_score", one_score=True
    ),
    "verdict-text": FormatRules(unmentioned="judges don't score it", one_score=True),
}


def parse_reply_format(text: str) -> str:
    """Read the name of a reply format.

    Raises:
        ParseError: the name is unknown.

    """
    if text not in REPLY_FORMATS:
        hint = nearest(text, REPLY_FORMATS, f"use one of {listed(REPLY_FORMATS)}")
        raise ParseError(f"there is no reply format `{text}`", hint)
    return text
