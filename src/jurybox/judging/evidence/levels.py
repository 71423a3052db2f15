"""Evidence from the rubric's own words: is the best level true of the answer, or the worst?"""

from collections.abc import Sequence
from typing import Final

from jurybox.judging.evidence.inquiry import Answers, Evidence, Inquiry
from jurybox.judging.evidence.material import context_part, question_part, solution_part
from jurybox.judging.evidence.probes import Probe
from jurybox.judging.evidence.telling import answered, expit, logit
from jurybox.rubric.model import Criterion
from jurybox.sample import Sample

_ROLE: Final = "You are a strict reviewer of answers."
_QUESTIONS: Final = "question"
_AGAIN: Final = ("{}", "Going by the material above: {}", "As a careful reader, tell: {}")
_WORDINGS: Final = (
    'Is this true of the answer: "{}"?',
    'Does this describe the answer well: "{}"?',
    'Would a careful reader say of the answer: "{}"?',
)


def by_levels(criterion: Criterion, sample: Sample, response: str, vote: int) -> Inquiry:
    """Ask the rubric's questions, where it has some, or whether its levels fit."""
    reference = solution_part(sample.reference) if sample.reference else ""
    head = f"{context_part(sample)}{question_part(sample)}{reference}"
    body = f"Answer: {response}\n"

    def probe(question: str) -> Probe:
        return Probe(role=_ROLE, head=head, body=body, question=question)

    own = _own_questions(criterion)
    if own:
        again = _AGAIN[vote % len(_AGAIN)]
        asked = tuple(probe(again.format(question)) for question in own)
        return Inquiry(probes=asked, conclude=lambda answers: _from_questions(asked, answers))
    wording = _WORDINGS[vote % len(_WORDINGS)]
    for_it, against_it = _extremes(criterion)
    good = tuple(probe(wording.format(text)) for text in for_it)
    bad = tuple(probe(wording.format(text)) for text in against_it)
    return Inquiry(probes=(*good, *bad), conclude=lambda answers: _weighed(good, bad, answers))


def _own_questions(criterion: Criterion) -> tuple[str, ...]:
    """Return the questions that the document asks itself; a yes speaks for the response."""
    return tuple(
        item
        for indicators in criterion.indicators
        if indicators.label.casefold().startswith(_QUESTIONS)
        for item in indicators.items
    )


def _extremes(criterion: Criterion) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return what is said of the best and of the worst, as the document says it."""
    if len(criterion.levels) > 1:
        ordered = sorted(criterion.levels, key=lambda level: level.low)
        return (ordered[-1].meaning,), (ordered[0].meaning,)
    items = {
        polarity: tuple(
            item
            for indicators in criterion.indicators
            if indicators.polarity == polarity
            for item in indicators.items
        )
        for polarity in ("positive", "negative")
    }
    if any(items.values()):
        return items["positive"], items["negative"]
    about = criterion.definition or criterion.name
    return (f"It does well by this measure: {about}",), ()


def _from_questions(asked: Sequence[Probe], answers: Answers) -> Evidence:
    share = sum(answers[probe] for probe in asked) / len(asked)
    findings = tuple(answered(probe.question, answers[probe]) for probe in asked)
    strength = sum(logit(answers[probe]) for probe in asked) / len(asked)
    return Evidence(findings=findings, share=share, strength=strength)


def _weighed(good: Sequence[Probe], bad: Sequence[Probe], answers: Answers) -> Evidence:
    """Weigh what speaks for the response against what speaks against it; equal is the middle."""
    good_logits = [logit(answers[probe]) for probe in good]
    bad_logits = [logit(answers[probe]) for probe in bad]
    means = [sum(each) / len(each) for each in (good_logits, bad_logits) if each]
    strength = means[0] if not bad_logits else means[0] - means[-1] if good_logits else -means[0]
    findings = [answered(probe.question, answers[probe]) for probe in (*good, *bad)]
    return Evidence(findings=tuple(findings), share=expit(strength), strength=strength)
