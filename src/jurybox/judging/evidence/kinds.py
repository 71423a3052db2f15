"""Which evidence a criterion takes: the rubric says it, the sample must have it."""

from collections.abc import Sequence
from typing import Literal

from jurybox.judging.evidence.against_context import by_context
from jurybox.judging.evidence.against_reference import by_knowledge, by_reference
from jurybox.judging.evidence.inquiry import Inquiry
from jurybox.judging.evidence.levels import by_levels
from jurybox.judging.evidence.own_answer import OwnAnswer
from jurybox.rubric.model import Criterion
from jurybox.sample import Sample

Held = Literal["reference", "text", "knowledge", "levels"]
"""What a response is held against: a right answer, a text, what the model knows, or levels."""


def held_against(criterion: Criterion, sample: Sample) -> Held:
    """Return what a criterion holds a response to this sample against.

    A criterion that is measured by a reference is held against the context where that is all there
    is, and the other way round; with neither, what the model knows has to do.
    """
    match criterion.evidence:
        case "reference" if sample.reference:
            return "reference"
        case "reference":
            return "text" if _text(sample) else "knowledge"
        case "context" if _text(sample):
            return "text"
        case _:
            return "levels"


def source_for(criteria: Sequence[Criterion], sample: Sample) -> str | None:
    """Return the text that the model has to answer by itself before it is asked anything else."""
    wanted = any(held_against(each, sample) == "text" for each in criteria)
    return _text(sample) if wanted else None


def _text(sample: Sample) -> str | None:
    return next(
        (each for each in (sample.context, sample.reference) if each and each.strip()), None
    )


def inquiry_for(
    criterion: Criterion, sample: Sample, response: str, vote: int, own: OwnAnswer | None
) -> Inquiry:
    """Return what is asked for one criterion; ``own`` is what the model answered by the source."""
    match held_against(criterion, sample):
        case "text" if own is not None:
            return by_context(sample, own, response, vote)
        case "reference" if sample.reference is not None:
            return by_reference(sample, sample.reference, response, vote)
        case "knowledge":
            return by_knowledge(sample, response, vote)
        case _:
            return by_levels(criterion, sample, response, vote)
