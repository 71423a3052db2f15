"""The shared parts of judge prompts: the full rubric, the reply format and the checklist.

The rubric comes before the material, so that all samples share one long beginning, which providers
can cache.
"""

from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import Any, Final, Literal

from jurybox.documents.numbers import show_number
from jurybox.judging.flow import Frame
from jurybox.judging.formats import ReplyForm
from jurybox.judging.formats.json_format import CHECKLIST
from jurybox.rubric import parse_rubric
from jurybox.rubric.rubric_model import Criterion, Indicators, Rubric
from jurybox.rubric.template import PLACEHOLDERS
from jurybox.sample import Turn

_ROLE = (
    "You are a judge. Judge only by the rubric below, criterion by criterion."
    " Weigh what a response says, not how long, how polished or how confident it is."
)
_LOOK_FOR = "what to look for"
_CHECK_YOURSELF = (
    "Before you decide, check yourself for each of these biases. For each item, write a sentence"
    f' about this specific material into "{CHECKLIST}".'
)

PromptKind = Literal["rubric", "reference", "pair"]

_SCORE: Final = "Score the response on every criterion: choose the level whose description fits."
_HOW: Final[dict[PromptKind, str]] = {
    "rubric": _SCORE,
    "reference": f"{_SCORE} The reference answer is the ground truth: compare the response with"
    " it. Different wording with the same meaning is just as correct; anything that contradicts"
    " the reference is wrong, no matter how well it is written.",
    "pair": "Compare the two responses on every criterion, then overall. Ignore the order in which"
    ' they are shown. Answer "tie" if there is no difference that would matter to a reader.',
}


def prompt_frame(
    kind: PromptKind, rubric: Rubric, checklist: Rubric, form: ReplyForm[Any]
) -> Frame:
    """Return the prompt around the material, to score it (with or without reference) or compare."""
    task = f"# Your task\n\n{_HOW[kind]}"
    before = "\n\n".join((_ROLE, rubric_text(rubric), task, form.instructions or ""))
    return Frame(f"{before}\n\n", f"\n\n{bias_checklist_prompt(checklist)}")


def filled_template(
    rubric: Rubric,
    checklist: Rubric,
    form: ReplyForm[Any],
    *,
    context: str | None,
    messages: Sequence[Turn],
    **texts: str,
) -> str:
    """Return the rubric's own judge prompt, filled with the material and the reply instructions.

    Lines of the material that look like lines of the prompt are marked as material.
    """
    template = rubric.template
    if template is None:
        raise ValueError("the rubric has no judge prompt of its own")
    turns = "\n".join(f"{turn.role}: {turn.content}" for turn in messages)
    parts = dict.fromkeys(PLACEHOLDERS.values(), "") | texts
    apart = bool(messages) and "messages" in template.parts()
    parts["messages"] = turns
    parts["context"] = "\n\n".join(text for text in (context, "" if apart else turns) if text)
    text = template.fill({name: template.neutralize(part) for name, part in parts.items()})
    if form.instructions is not None:
        text += f"\n\n{form.instructions}\n\n{bias_checklist_prompt(checklist)}"
    return text


@cache
def bundled_checklist() -> Rubric:
    """Return the checklist that comes with the package."""
    document = resources.files("jurybox.rubric") / "library" / "bias-awareness.md"
    return parse_rubric(document.read_bytes(), "bias-awareness")


def bias_checklist_prompt(checklist: Rubric | None = None) -> str:
    """Return the checklist that a judge completes in every reply; the bundled one by default."""
    lines = ["# Bias checklist", "", _CHECK_YOURSELF]
    for item in (checklist or bundled_checklist()).criteria:
        lines += ["", f"## {item.id}", item.definition]
        for indicators in item.indicators:
            if indicators.label.casefold() == _LOOK_FOR:
                lines += [f"- {each}" for each in indicators.items]
    return "\n".join(lines)


def rubric_text(rubric: Rubric) -> str:
    """Return the rubric's text for judges: definitions, levels, indicators, guidance."""
    parts = [f"# Rubric: {rubric.title}", rubric.description, "## Criteria"]
    parts += [_criterion_text(criterion) for criterion in rubric.criteria]
    parts += [f"## {section.title}\n\n{section.text}" for section in rubric.sections]
    return "\n\n".join(part for part in parts if part)


def _criterion_text(criterion: Criterion) -> str:
    parts = [
        f"### {criterion.name} (`{criterion.id}`: {criterion.scale.describe()})",
        criterion.definition,
        *([_levels_text(criterion)] if criterion.levels else []),
        *(_indicators_text(indicators) for indicators in criterion.indicators),
    ]
    return "\n\n".join(part for part in parts if part)


def _levels_text(criterion: Criterion) -> str:
    lines: list[str] = []
    for level in criterion.levels:
        ends = dict.fromkeys([show_number(level.low), show_number(level.high)])
        label = f" ({level.label})" if level.label else ""
        lines.append(f"- {' to '.join(ends)}{label}: {level.meaning}")
    return "\n".join(["Levels:", *lines])


def _indicators_text(indicators: Indicators) -> str:
    intro = [indicators.text] if indicators.text else []
    return "\n".join([f"{indicators.label}:", *intro, *(f"- {item}" for item in indicators.items)])
