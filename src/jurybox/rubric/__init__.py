"""The rubric: a document that people read and the program executes."""

from jurybox.documents.findings import MAX_BYTES
from jurybox.rubric.document.parse import Base, Find, Reading, check_rubric, parse_rubric
from jurybox.rubric.document.render import render_rubric
from jurybox.rubric.rubric_model import Criterion, Level, Rubric, parse_rubric_id
from jurybox.rubric.scale import Scale

__all__ = [
    "MAX_BYTES",
    "Base",
    "Criterion",
    "Find",
    "Level",
    "Reading",
    "Rubric",
    "Scale",
    "check_rubric",
    "parse_rubric",
    "parse_rubric_id",
    "render_rubric",
]
