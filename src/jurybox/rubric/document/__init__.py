"""From the Markdown of a rubric document to a frozen ``Rubric``, and back.

A document is read to the end whatever is wrong with it: its author sees all findings at once.
"""

from jurybox.documents.document_text import MAX_BYTES
from jurybox.rubric.document.front_matter import parse_rubric_id
from jurybox.rubric.document.overlay import Base, Find, Reading
from jurybox.rubric.document.parse import check_rubric, parse_rubric
from jurybox.rubric.document.render import render_rubric

__all__ = [
    "MAX_BYTES",
    "Base",
    "Find",
    "Reading",
    "check_rubric",
    "parse_rubric",
    "parse_rubric_id",
    "render_rubric",
]
