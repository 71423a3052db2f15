"""The evidence a criterion can take: the reference, the context, or the rubric's levels."""

import re
from collections.abc import Mapping, Sequence
from typing import Final, Literal

import msgspec

from jurybox.judging.evidence.questions import (
    TEACHER,
    Answers,
    Evidence,
    Inquiry,
    Probe,
    answer_part,
    answered,
    context_part,
    decided,
    expit,
    logit,
    question_part,
    shown,
    solution_part,
    text_part,
)
from jurybox.judging.evidence.text_overlap import Vocabulary, statements
from jurybox.judging.flow import Failure, Flow, ModelReply, ModelRequest, Unscored
from jurybox.judging.protocol import Seat
from jurybox.rubric.rubric_model import Criterion
from jurybox.sample import Sample, Turn

_OWN_ANSWER_PROMPTS: Final = (
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
    content = f"{head}\n{_OWN_ANSWER_PROMPTS[seat.vote % len(_OWN_ANSWER_PROMPTS)]}"
    return ModelRequest(
        model=seat.judge,
        messages=(Turn(role="system", content=TEACHER), Turn(role="user", content=content)),
        generation=msgspec.structs.replace(seat.generation, temperature=0.0, max_tokens=_LONGEST),
        vote=seat.vote,
        shared=(len(head),),
    )


_ANSWER_PROMPTS: Final = (
    "Is the student's answer correct?",
    "Does the student's answer deserve full marks?",
    "Would you mark the student's answer as right?",
)


class AgainstAnswer(msgspec.Struct, frozen=True):
    """The same question twice: ``beside`` a right answer, and without one, ``alone``."""

    beside: Probe
    alone: Probe

    def describe(self, answers: Answers) -> str:
        """Return the question and both of its answers."""
        return (
            f"{self.beside.question} Yes: {shown(answers[self.beside])}; without it:"
            f" {shown(answers[self.alone])}."
        )

    def agreement(self, answers: Answers, plausible: float) -> float:
        """Return how far the right answer bears it out, in log-odds.

        ``plausible`` is the part of what it gets without one that doesn't count.
        """
        return logit(answers[self.beside]) - plausible * logit(answers[self.alone])


def against_answer(sample: Sample, right: str, response: str, vote: int) -> AgainstAnswer:
    """Return the questions that hold a response against a right answer."""
    return AgainstAnswer(
        _probe(sample, solution_part(right), response, vote), is_right(sample, response, vote)
    )


def is_right(sample: Sample, response: str, vote: int) -> Probe:
    """Return the question whether a response is right, by what the model knows."""
    return _probe(sample, "", response, vote)


def _probe(sample: Sample, solution: str, response: str, vote: int) -> Probe:
    return Probe(
        role=TEACHER,
        opening=question_part(sample),
        head=solution,
        body=answer_part(response),
        question=_ANSWER_PROMPTS[vote % len(_ANSWER_PROMPTS)],
    )


_WHOLE: Final = (
    "Does the student's answer deserve full marks?",
    "Is the student's answer correct according to the text?",
    "Going by the text, would you mark the student's answer as right?",
)
_CLAIM: Final = "Is the student's answer correct according to the text?"

# Found on the development cases (docs/reference/embedded-judge.md), in log-odds.
_CONTEXT_PLAUSIBLE: Final = 0.5
_OF_LEAST: Final = 0.5
_FAITHFUL: Final = -1.1


def by_context(sample: Sample, own: OwnAnswer, response: str, vote: int) -> Inquiry:
    """Ask of the answer and of each of its claims whether the source bears it out."""
    asked = against_answer(sample, own.text, response, vote)
    head = f"{text_part(own.source)}{question_part(sample)}"

    def probe(text: str, question: str) -> Probe:
        return Probe(role=TEACHER, head=head, body=answer_part(text), question=question)

    whole = probe(response, _WHOLE[vote % len(_WHOLE)])
    pieces = statements(response)
    # A single claim is the whole again.
    claims = {probe(claim, _CLAIM): claim for claim in pieces} if len(pieces) > 1 else {}
    return Inquiry(
        probes=(whole, *claims, asked.beside, asked.alone),
        conclude=lambda answers: _conclude_context(own.text, asked, whole, claims, answers),
    )


def _conclude_context(
    own: str, asked: AgainstAnswer, whole: Probe, claims: dict[Probe, str], answers: Answers
) -> Evidence:
    findings = [
        f'By the text the model itself answers: "{own}" Beside that: {asked.describe(answers)}',
        f"Beside the text: {answered(whole.question, answers[whole])}",
    ]
    findings += [
        f'Its claim "{claim}" alone: {shown(answers[probe])}.' for probe, claim in claims.items()
    ]
    least = min(logit(answers[probe]) for probe in (whole, *claims))
    strength = asked.agreement(answers, _CONTEXT_PLAUSIBLE) + _OF_LEAST * least
    share = decided(strength - _FAITHFUL)
    return Evidence(findings=tuple(findings), share=share, strength=strength)


# Found on the development cases (docs/reference/embedded-judge.md): log-odds, and shares of words.
_REFERENCE_PLAUSIBLE: Final = 0.6
_SAID: Final = 0.34
_WITH_WORDS: Final = 0.05
_LEAST_PARTIAL, _MOST_PARTIAL = 0.3, 0.7


def by_reference(sample: Sample, reference: str, response: str, vote: int) -> Inquiry:
    """Ask whether the answer is right, with and without the reference; look for its words."""
    asked = against_answer(sample, reference, response, vote)
    words = Vocabulary(response)
    said = {each: words.coverage(each) for each in statements(reference)}
    return Inquiry(
        probes=(asked.beside, asked.alone),
        conclude=lambda answers: _conclude_reference(asked, said, answers),
    )


def _conclude_reference(
    asked: AgainstAnswer, said: Mapping[str, float], answers: Answers
) -> Evidence:
    right = asked.agreement(answers, _REFERENCE_PLAUSIBLE) + min(said.values(), default=1.0)
    findings = [f"Beside the reference: {asked.describe(answers)}"]
    findings += [
        f'Of the reference: "{each}" ({share:.0%} of its words are in the answer).'
        for each, share in said.items()
    ]
    sure = logit(answers[asked.beside])
    given = [share + _WITH_WORDS * sure >= _SAID for share in said.values()]
    return Evidence(findings=tuple(findings), share=_share(right, given), strength=right)


def _share(right: float, given: Sequence[bool]) -> float:
    """Put a wrong answer at the bottom, one that gives every statement at the top.

    In between is one that is right as far as it goes.
    """
    if right < 0 or all(given):
        return decided(right)
    return min(max(sum(given) / len(given), _LEAST_PARTIAL), _MOST_PARTIAL)


def by_knowledge(sample: Sample, response: str, vote: int) -> Inquiry:
    """Ask whether the answer is right where nothing is given to hold it against."""
    asked = is_right(sample, response, vote)
    return Inquiry(probes=(asked,), conclude=lambda answers: _known(asked, answers))


def _known(asked: Probe, answers: Answers) -> Evidence:
    finding = (
        f"{asked.question} Yes: {shown(answers[asked])}, by what the model knows; there was"
        " neither a reference nor a context."
    )
    strength = logit(answers[asked])
    return Evidence(findings=(finding,), share=answers[asked], strength=strength)


_ROLE: Final = "You are a strict reviewer of answers."
_QUESTIONS: Final = "question"
_AGAIN: Final = ("{}", "Going by the material above: {}", "As a careful reader, tell: {}")
_LEVEL_PROMPTS: Final = (
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
    wording = _LEVEL_PROMPTS[vote % len(_LEVEL_PROMPTS)]
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
