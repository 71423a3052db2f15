"""From a rubric and a sample to the question that is asked and the reader of its reply."""

from collections.abc import Callable, Sequence
from functools import cache, cached_property

import msgspec

from jurybox.errors import InputError
from jurybox.judging.evaluation_report import RubricName
from jurybox.judging.exchange import Frame
from jurybox.judging.flow import Asking, Defect
from jurybox.judging.formats.json_verdict import read_preference, read_scores
from jurybox.judging.formats.reply_schema import preferences_schema, scores_schema, strict_schema
from jurybox.judging.formats.score_line import read_score_line
from jurybox.judging.formats.strict_json import read_strict_scores
from jurybox.judging.panel import Panel, Question, Seat, Way, any_verdict
from jurybox.judging.prompts import (
    material,
    pair_frame,
    reference_frame,
    reply_form,
    rubric_frame,
)
from jurybox.judging.verdict import Preference, Scores
from jurybox.rubric.model import Criterion, Rubric
from jurybox.rubric.template import PLACEHOLDERS
from jurybox.sample import Sample


class Judging(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A rubric together with the checklist that every reply completes.

    ``way`` is how all judges are asked; None leaves it to what each of them is good at. With
    ``stop_when_decided`` no vote is asked for that can't change the outcome any more. What follows
    from these alone, such as the beginning of every prompt, is worked out once.
    """

    rubric: Rubric
    checklist: Rubric
    way: Way | None = None
    stop_when_decided: bool = False

    @cached_property
    def asking(self) -> Asking:
        """How invalid replies are asked again."""
        protocol = self.rubric.protocol
        return Asking(reasks=protocol.reasks, reask_with=protocol.reask_with)

    @cached_property
    def scored(self) -> tuple[Criterion, ...]:
        """What a reply gives scores for: the criteria, or the response as a whole."""
        whole = self.rubric.protocol.reply_format == "score-line"
        if not whole or len(self.rubric.criteria) == 1:
            return self.rubric.criteria
        rubric = self.rubric
        return (Criterion(id=rubric.overall_name, name=rubric.title, scale=rubric.scale),)

    @cached_property
    def max_score(self) -> float:
        """The most that a response can get in all."""
        return sum(criterion.scale.high for criterion in self.scored)

    @cached_property
    def items(self) -> tuple[str, ...]:
        """The ids of the checklist's items."""
        return tuple(item.id for item in self.checklist.criteria)

    @cached_property
    def rubric_name(self) -> RubricName:
        """Which rubric it is, as a report says it."""
        return RubricName.of(self.rubric)

    def seats(self, judges: Sequence[str], votes: int) -> tuple[Seat, ...]:
        """Deal the votes out among the judges."""
        return self.panel(judges, votes).seats

    def panel(self, judges: Sequence[str], votes: int) -> Panel:
        """Return the seats with what follows from them."""
        return self._panels(tuple(judges), votes)

    @cached_property
    def _panels(self) -> Callable[[tuple[str, ...], int], Panel]:
        def dealt(judges: tuple[str, ...], votes: int) -> Panel:
            return Panel.of(self.rubric, judges, votes, self.way)

        return cache(dealt)

    def asks_for_verdicts(self, judges: Sequence[str]) -> bool:
        """Tell whether any of the judges is asked for a whole verdict."""
        return any_verdict(judges, self.way)

    def check(self, sample: Sample) -> None:
        """See that the rubric's way of asking for a verdict fits the sample.

        Raises:
            InputError: it doesn't.

        """
        if self._fits_all:
            return
        pair = sample.response_b is not None and sample.reference is None
        reply_format = self.rubric.protocol.reply_format
        if pair and reply_format != "json":
            problem = f"replies in the format `{reply_format}` can't compare two responses"
            hint = "use another rubric, or give a reference answer"
            raise InputError(problem, hint, self.rubric.id)
        self._check_prompt(sample, pair=pair)

    @cached_property
    def _fits_all(self) -> bool:
        """Whether every sample fits: ours are the words, and the usual form is the reply's."""
        return self.rubric.template is None and self.rubric.protocol.reply_format == "json"

    def _check_prompt(self, sample: Sample, *, pair: bool) -> None:
        """See that a judge prompt of the rubric's own has a place for all that is given."""
        template = self.rubric.template
        reply_format = self.rubric.protocol.reply_format
        if template is None:
            if reply_format != "json":
                problem = f"nobody tells the judge to reply in the format `{reply_format}`"
                hint = "give the rubric a judge prompt that does, or use `reply_format: json`"
                raise InputError(problem, hint, self.rubric.id)
            return
        shown = {PLACEHOLDERS[name] for name, _ in template.placeholders()}
        context = sample.context or sample.messages
        given = {"response_b": pair, "reference": sample.reference, "context": context}
        for part, is_given in given.items():
            if is_given and part not in shown:
                problem = f"its judge prompt has no place for the {part}"
                raise InputError(
                    problem, f"put `{{{{{part}}}}}` into it, or leave it out", self.rubric.id
                )

    def score_question(self, sample: Sample, response: str) -> Question:
        """Return the question to score one response, against the reference where there is one."""
        reference = sample.reference
        if self.rubric.template is not None:
            filled = self.rubric.template.fill(_parts(sample, response, ""))
            return Question(self._with_form(filled, pair=False), self.score_schema)
        frame = self._rubric_frame if reference is None else self._reference_frame
        given = {} if reference is None else {"REFERENCE": reference}
        return _framed(frame, sample, {**given, "RESPONSE": response}, self.score_schema)

    def pair_question(self, sample: Sample, response_a: str, response_b: str) -> Question:
        """Return the question to compare two responses, shown in this order."""
        if self.rubric.template is not None:
            filled = self.rubric.template.fill(_parts(sample, response_a, response_b))
            return Question(self._with_form(filled, pair=True), self.pair_schema)
        texts = {"RESPONSE A": response_a, "RESPONSE B": response_b}
        return _framed(self._pair_frame, sample, texts, self.pair_schema)

    @cached_property
    def _rubric_frame(self) -> Frame:
        return rubric_frame(self.rubric, self.checklist)

    @cached_property
    def _reference_frame(self) -> Frame:
        return reference_frame(self.rubric, self.checklist)

    @cached_property
    def _pair_frame(self) -> Frame:
        return pair_frame(self.rubric, self.checklist)

    def _with_form(self, filled: str, *, pair: bool) -> str:
        """A prompt of the rubric's own stands as it is, unless its replies need the usual form."""
        if self.rubric.protocol.reply_format != "json":
            return filled
        return f"{filled}\n\n{reply_form(self.rubric, self.checklist, pair=pair)}"

    @cached_property
    def score_schema(self) -> str | None:
        """The JSON schema of a reply with scores, where it is JSON."""
        match self.rubric.protocol.reply_format:
            case "json":
                return scores_schema(self.rubric, self.checklist)
            case "strict-json":
                return strict_schema(self.rubric)
            case "score-line":
                return None

    @cached_property
    def pair_schema(self) -> str | None:
        """The JSON schema of a reply with preferences, where it is JSON."""
        is_json = self.rubric.protocol.reply_format == "json"
        return preferences_schema(self.rubric, self.checklist) if is_json else None

    @cached_property
    def score_reader(self) -> Callable[[str], Scores | Defect]:
        """The reader of replies with scores."""
        protocol = self.rubric.protocol
        scales = {criterion.id: criterion.scale for criterion in self.rubric.criteria}
        items = self.items
        (name, scale), *_ = ((each.id, each.scale) for each in self.scored)
        match protocol.reply_format:
            case "strict-json":
                return lambda text: read_strict_scores(text, scales, protocol.rationale_words)
            case "score-line":
                return lambda text: read_score_line(text, name, scale)
            case "json":
                return lambda text: read_scores(text, scales, items)

    @cached_property
    def pair_reader(self) -> Callable[[str], Preference | Defect]:
        """The reader of replies with preferences."""
        items = self.items
        criteria = tuple(criterion.id for criterion in self.rubric.criteria)
        return lambda text: read_preference(text, criteria, items)


def _framed(frame: Frame, sample: Sample, texts: dict[str, str], schema: str | None) -> Question:
    shown = material(task=sample.task, context=sample.context, messages=sample.messages, **texts)
    return Question(frame.around(shown), schema, frame)


def _parts(sample: Sample, response: str, response_b: str) -> dict[str, str]:
    turns = "\n".join(f"{turn.role}: {turn.content}" for turn in sample.messages)
    return {
        "task": sample.task,
        "reference": sample.reference or "",
        "context": "\n\n".join(text for text in (sample.context, turns) if text),
        "response": response,
        "response_b": response_b,
    }
