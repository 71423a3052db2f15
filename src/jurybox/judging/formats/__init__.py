"""The reply formats: how a judge writes its verdict, one module per format.

A reply that only mentions a verdict hasn't given one, and two different verdicts count as none. No
reader ever returns a score that is not literally in the reply.
"""

from functools import cache
from importlib import import_module

from jurybox.judging.formats.reply_format import ReplyForm, ReplyFormat

__all__ = ["ReplyForm", "ReplyFormat", "reply_format"]


@cache
def reply_format(name: str) -> ReplyFormat:
    """Return the format with this name, a key of `jurybox.rubric.rubric_model.REPLY_FORMATS`.

    The format ``score-line`` is the ``FORMAT`` of the module ``score_line_format``.
    """
    module = import_module(f"{__name__}.{name.replace('-', '_')}_format")
    return module.FORMAT
