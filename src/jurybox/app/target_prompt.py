"""The words in which a target is asked, from the suite, a file or Langfuse, and its plan."""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from jurybox.engine.plan import TargetPlan, overridden, read_prompt
from jurybox.errors import InputError
from jurybox.models.providers import load_prices
from jurybox.rubric.rubric_model import Rubric
from jurybox.rubric_files import read_path
from jurybox.scoring.prices import price_of
from jurybox.suite.target_spec import LANGFUSE, TargetSpec, is_inline
from jurybox.wiring import read_settings


class PromptText(msgspec.Struct, frozen=True, kw_only=True):
    """A prompt and what it is called in records; ``system`` where it brings its own."""

    id: str
    text: str
    system: str | None = None


def read_text(name: str | None, folder: Path) -> PromptText | None:
    """Return a prompt by its text, its path or its name in Langfuse."""
    if name is None:
        return None
    if is_inline(name):
        return PromptText(id="inline", text=name)
    if name.startswith(LANGFUSE):
        from jurybox.app.langfuse_inputs import fetch_prompt

        fetched = fetch_prompt(name)
        # By its version, whatever it was asked for by: a label moves.
        pinned = f"{LANGFUSE}{fetched.name}@{fetched.version}"
        return PromptText(id=pinned, text=fetched.text, system=fetched.system)
    found = read_path(folder / name)
    try:
        return PromptText(id=name, text=found.data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        problem = f"byte {error.start} is not UTF-8"
        raise InputError(problem, "save the file as UTF-8", found.origin) from None


def plan_target(
    spec: TargetSpec,
    rubric: Rubric,
    prompt: PromptText | None,
    system: PromptText | None,
    columns: Mapping[str, str],
) -> TargetPlan:
    """Return the plan of a target; ``columns`` are those that the suite names, by field."""
    if system is not None and system.system is not None:
        raise InputError("this is a chat prompt", "name a text prompt", system.id)
    if prompt is not None and prompt.system is not None:
        if system is not None:
            problem = "the prompt has a system message, and the target a `system` too"
            raise InputError(problem, "keep one of them", prompt.id)
        system = PromptText(id=prompt.id, text=prompt.system)
    shown: dict[str, str] = {}
    if prompt is not None:
        from jurybox.datasets.fields import FIELD_OF

        named = {column: field for field, column in columns.items()}
        shown = read_prompt(prompt.text, prompt.id, {**FIELD_OF, **named})
    command = spec.command or ()
    model = spec.model.model if spec.model else f"command/{Path((*command, '')[0]).name}"
    target = TargetPlan(
        model=model,
        generation=overridden(rubric.generation, spec.generation),
        overrides=spec.generation,
        timeout=spec.timeout,
        command=command,
        stdin=spec.input,
        endpoint=spec.model,
        columns=shown,
        prompt_id=None if prompt is None else prompt.id,
        prompt=None if prompt is None else prompt.text,
        system_id=None if system is None else system.id,
        system=None if system is None else system.text,
        price=price_of(model, load_prices(read_settings().prices)),
    )
    # With the number types of a stored plan: 0 and 0.0 would make two different requests.
    return msgspec.convert(msgspec.to_builtins(target), TargetPlan)
