"""Which evidence a criterion takes: the rubric says it, the sample must have it."""

from jurybox.judging.evidence.against_context import by_context
from jurybox.judging.evidence.against_reference import by_knowledge, by_reference
from jurybox.judging.evidence.inquiry import Inquiry
from jurybox.judging.evidence.levels import by_levels
from jurybox.rubric.model import Criterion
from jurybox.sample import Sample


def inquiry_for(criterion: Criterion, sample: Sample, response: str, vote: int) -> Inquiry:
    """Return what is asked for one criterion.

    A criterion that is measured by a reference is held against the context where that is all there
    is, and the other way round; with neither, what the model knows has to do.
    """
    match criterion.evidence:
        case "reference" if sample.reference:
            return by_reference(sample, sample.reference, response, vote)
        case "context" if sample.context:
            return by_context(sample, sample.context, response, vote)
        case "reference" if sample.context:
            return by_context(sample, sample.context, response, vote)
        case "context" if sample.reference:
            return by_context(sample, sample.reference, response, vote)
        case "reference":
            return by_knowledge(sample, response, vote)
        case _:
            return by_levels(criterion, sample, response, vote)
