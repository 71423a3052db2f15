"""A model that follows a script."""

from collections.abc import Callable, Iterable

from jurybox.engine.ports import ModelError
from jurybox.judging.flow import ModelReply, ModelRequest

Line = str | ModelReply | ModelError


class ScriptedModel:
    """Answers with the lines of a script in order, or with the result of a function.

    A line is the text of a reply, a whole reply, or an error to be raised. ``requests`` has all
    requests so far.
    """

    def __init__(
        self, script: Iterable[Line] | Callable[[ModelRequest], Line], name: str = "scripted"
    ) -> None:
        self._next = script if callable(script) else _reader(script)
        self._name = name
        self.requests: list[ModelRequest] = []

    @property
    def endpoint(self) -> str:
        """The name."""
        return self._name

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Return the next line."""
        self.requests.append(request)
        line = self._next(request)
        if isinstance(line, ModelError):
            raise line
        if isinstance(line, str):
            return ModelReply(text=line, sent=request.generation, model=request.model)
        return line

    async def aclose(self) -> None:
        """Do nothing; there is nothing to close."""


def _reader(script: Iterable[Line]) -> Callable[[ModelRequest], Line]:
    lines = iter(script)
    finished = ModelError("refused", "the script has no more lines", retry=False)
    return lambda _: next(lines, finished)
