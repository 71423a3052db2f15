"""The system under test: which request a row of the dataset becomes."""

from collections.abc import Mapping
from typing import Final

import msgspec

from jurybox.errors import InputError
from jurybox.judging.exchange import ModelRequest
from jurybox.rubric.model import Generation
from jurybox.rubric.template import PLACEHOLDERS, Template
from jurybox.sample import Row, Turn

_SHOWN: Final = ("task", "context")
"""What a system under test may be shown: with the reference it would be marking its own work."""


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """A model or a command, with the words it is asked in."""

    model: str
    generation: Generation
    prompt: Template | None = None
    system: str | None = None

    def request(self, row: Row) -> ModelRequest:
        """Return what is asked for one row: the earlier turns, then the task."""
        parts = {"task": row.task, "context": row.context or ""}
        if self.prompt is not None:
            asked = self.prompt.fill(parts)
        elif row.context:
            asked = f"{row.context}\n\n{row.task}"
        else:
            asked = row.task
        system = () if self.system is None else (Turn(role="system", content=self.system),)
        messages = (*system, *row.messages, Turn(role="user", content=asked))
        return ModelRequest(model=self.model, messages=messages, generation=self.generation)


def read_prompt(text: str, origin: str) -> Template:
    """Return the prompt of a system under test.

    Raises:
        InputError: it shows what the system may not see, or never shows the task.

    """
    template = Template(text=text)
    names = [name for name, _ in template.placeholders()]
    for name in names:
        part = PLACEHOLDERS.get(name)
        if part not in _SHOWN:
            known = "a prompt may show `{{task}}` and `{{context}}`"
            problem = f"there is no `{name}` to show" if part is None else _forbidden(name)
            raise InputError(problem, known, origin)
    if "task" not in {PLACEHOLDERS[name] for name in names}:
        raise InputError("the prompt never shows the task", "put `{{task}}` into it", origin)
    return template


def _forbidden(name: str) -> str:
    return f"`{name}` would tell the system under test what it is held against"


def overridden(base: Generation, overrides: Mapping[str, float]) -> Generation:
    """Return the generation parameters with those that were overridden on purpose (A9)."""
    return msgspec.structs.replace(base, **overrides) if overrides else base
