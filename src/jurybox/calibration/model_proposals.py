"""Changes proposed by a model: asked for without I/O, and read strictly."""

from collections.abc import Sequence
from typing import Annotated, Final

import msgspec

from jurybox.calibration.calibration_record import Round
from jurybox.calibration.gold import GoldCase, gold_scales, loss_of
from jurybox.calibration.proposals import Proposal
from jurybox.calibration.rubric_changes import (
    judged_texts,
    quoted_samples,
    replaced,
    verdicts_text,
)
from jurybox.calibration.tuning_loop import ToPropose, Unusable
from jurybox.documents.numbers import show_number
from jurybox.judging.flow import Answer, Defect, Flow, ModelRequest, ReaskPolicy, ask
from jurybox.judging.prompts import rubric_text
from jurybox.rubric.rubric_model import Criterion, Generation, Rubric
from jurybox.sample import Turn

_SHOWN: Final = 8
_MAX_LENGTH: Final = 2000
_POLICY: Final = ReaskPolicy(reasks=2)
_GENERATION: Final = Generation(max_tokens=2048)
_FORM: Final = (
    '{"hypothesis": "why judge and people differ, in a sentence or two", "criterion": "its id",'
    ' "definition": "the new definition, or null to leave it", "levels": {"4": "the new'
    ' meaning of level 4, for those to be changed"}}'
)
_TASK: Final = (
    "A judge scores responses by the rubric below, and people have scored the same responses."
    " Find out why they differ, and reword one criterion so that the judge comes nearer to the"
    " people. Write for all responses of this kind, not for the samples shown: the change is"
    " measured on others."
)


_Text = Annotated[str, msgspec.Meta(pattern=r"\S", max_length=_MAX_LENGTH)]


class _Change(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A model's reply."""

    hypothesis: Annotated[str, msgspec.Meta(pattern=r"\S")]
    criterion: str
    definition: _Text | None = None
    levels: dict[str, _Text] | None = None


def suggest(model: str, wanted: ToPropose) -> Flow[Proposal | Unusable]:
    """Ask a model for one change; an unusable reply is asked again with its defect."""
    if wanted.rubric.template is not None:
        return Unusable(reason="the rubric has a judge prompt of its own, which no model rewrites")
    request = ModelRequest(
        model=model,
        generation=_GENERATION,
        messages=(Turn(role="user", content=prompt_of(wanted)),),
    )
    answer = yield from ask(request, lambda text: read_change(text, wanted.rubric), _POLICY)
    if isinstance(answer, Answer):
        return answer.value
    return Unusable(reason=answer.reason)


def prompt_of(wanted: ToPropose) -> str:
    """Return the prompt: the rubric, where its judge and people differ, and earlier rounds."""
    lines = [f"- {each.bias.sentence}" for each in wanted.metrics.criteria if each.bias is not None]
    parts = [
        _TASK,
        f"# The rubric\n\n{rubric_text(wanted.rubric)}",
        "\n".join(["# Where they differ\n", *(lines or ["- they prefer different responses"])]),
        _samples_text(wanted.rubric, wanted.cases),
        *_earlier_text(wanted.earlier),
        f"# Your reply\n\nReply with one JSON object and nothing else, in this form:\n\n{_FORM}",
    ]
    return "\n\n".join(parts)


def _samples_text(rubric: Rubric, cases: Sequence[GoldCase]) -> str:
    scales = gold_scales(rubric)
    wrong = sorted(cases, key=lambda case: (-loss_of(case, scales), case.id))[:_SHOWN]
    texts = [
        {
            **judged_texts(case),
            **{f"judge on {name}": why for name, why in case.verdict.reasoning.items()},
            **{f"people on {name or 'it'}": why for name, why in case.comments.items()},
        }
        for case in wrong
    ]
    verdicts = [verdicts_text(case, list(scales)) for case in wrong]
    return quoted_samples("Samples, the furthest apart first.", "Sample", texts, verdicts)


def _earlier_text(rounds: Sequence[Round]) -> list[str]:
    if not rounds:
        return []
    lines = [f"- {each.hypothesis or each.kind}: {_outcome(each)}" for each in rounds]
    return ["\n".join(["# What was tried already", "", *lines])]


def _outcome(made: Round) -> str:
    """Describe a round without the select part, which is only used to decide."""
    if made.tune is None:
        return f"refused, {made.reason}"
    decided = "kept" if made.kept else "refused"
    return f"{decided}; where it was made, {made.tune.gain.sentence}"


def read_change(text: str, rubric: Rubric) -> Proposal | Defect:
    """Read a model's reply; only the wording of one criterion is ever taken from it."""
    body = text.strip()
    if body.startswith("```"):
        body = body.partition("\n")[2].rpartition("```")[0]
    try:
        change = msgspec.json.decode(body, type=_Change)
    except msgspec.ValidationError as error:
        return Defect(f"the reply isn't in the form asked for: {error}")
    except msgspec.DecodeError:
        return Defect("the reply isn't one JSON object")
    criterion = rubric.criterion(change.criterion)
    if criterion is None:
        known = ", ".join(each.id for each in rubric.criteria)
        return Defect(f"`criterion` must be one of {known}")
    changed = _changed(criterion, change)
    if changed == criterion:
        return Defect("nothing is changed; give a new definition, or levels with new meanings")
    if isinstance(changed, Defect):
        return changed
    meanings = [each.meaning for each in changed.levels]
    return Proposal(
        key=f"model {criterion.id} {changed.definition} {meanings}",
        kind="model",
        criterion=criterion.id,
        hypothesis=" ".join(change.hypothesis.split())[:_MAX_LENGTH],
        rubric=replaced(rubric, changed),
    )


def _changed(criterion: Criterion, change: _Change) -> Criterion | Defect:
    changed = criterion
    if change.definition is not None:
        lines = (line.strip() for line in change.definition.strip().split("\n"))
        changed = msgspec.structs.replace(changed, definition="\n".join(lines))
    levels = list(criterion.levels)
    for key, meaning in (change.levels or {}).items():
        place = _level_place(criterion, key)
        if place is None:
            known = ", ".join(f'"{show_number(each.low)}"' for each in levels) or "none"
            return Defect(f"`{criterion.id}` has no level `{key}`; its levels are {known}")
        levels[place] = msgspec.structs.replace(levels[place], meaning=" ".join(meaning.split()))
    return msgspec.structs.replace(changed, levels=tuple(levels))


def _level_place(criterion: Criterion, key: str) -> int | None:
    """Return the place of the level that a score belongs to."""
    try:
        score = float(key)
    except ValueError:
        return None
    places = (i for i, level in enumerate(criterion.levels) if level.low <= score <= level.high)
    return next(places, None)
