"""No name may mean two things: rules, reports and exports go by it."""

from collections.abc import Iterator, Sequence

from jurybox.documents.findings import Findings, Place
from jurybox.rubric.document.criteria import CriterionText
from jurybox.rubric.document.front_matter import Head
from jurybox.rubric.document.thresholds import Thresholds
from jurybox.rubric.figures import run_figures, sample_figures

_RATIONALE = "rationale"


def check_names(
    criteria: Sequence[CriterionText], head: Head, thresholds: Thresholds, findings: Findings
) -> None:
    """Hold the names that the document gives against those that are taken."""
    components = bool(thresholds.components)
    of_sample = set(sample_figures((), overall="", components=components))
    if not head.overall_given:
        of_sample.add(head.overall_name)
    of_run = set(run_figures((), overall="", components=components))
    for name, place, what in _given(criteria, head, thresholds):
        # A heading that gives no name at all is noted where it is read.
        if name and name in of_sample | of_run:
            problem = f"{what} is called `{name}`, which is the name of a figure"
            findings.add(place, "name-taken", problem, "choose another name")
        elif name and f"{name}_mean" in of_run:
            problem = f"the mean of `{name}` would be called `{name}_mean`, which is another figure"
            findings.add(place, "name-taken", problem, "choose another name")
    ids = {criterion.id for criterion in criteria}
    for component, place in zip(thresholds.components, thresholds.component_places, strict=True):
        if component.name in ids | {head.overall_name}:
            problem = f"a component is called like the score `{component.name}`"
            findings.add(place, "name-taken", problem, f"call it `{component.name}_norm`")
    for criterion in criteria:
        if head.protocol.reply_format == "strict-json" and criterion.id == _RATIONALE:
            problem = f"a `strict-json` reply has `{_RATIONALE}` for its reasons"
            mend = "give the criterion another id in backticks"
            findings.add(criterion.place, "name-taken", problem, mend)


def _given(
    criteria: Sequence[CriterionText], head: Head, thresholds: Thresholds
) -> Iterator[tuple[str, Place, str]]:
    for criterion in criteria:
        yield criterion.id, criterion.place, "a criterion"
    if head.overall_given:
        yield head.overall_name, head.overall_place, "the overall score"
    for component, place in zip(thresholds.components, thresholds.component_places, strict=True):
        yield component.name, place, "a component"
