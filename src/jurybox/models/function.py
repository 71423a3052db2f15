"""``python/module:function``: the user's function as a model."""

import asyncio
import contextlib
import importlib
import inspect
import math
import sys
import threading
from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec

from jurybox.engine.ports import ModelError
from jurybox.errors import InputError
from jurybox.judging.flow import ModelReply, ModelRequest
from jurybox.text_format import nearest

Function = Callable[..., Any]

_HOW: Final = "write `python/module:function`"
_POSITIONAL: Final = {
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
    inspect.Parameter.VAR_POSITIONAL,
}
_VARIADIC: Final = {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}


class FunctionModel:
    """Answers with what a function returns.

    The function takes the whole request if its first parameter is annotated as a `ModelRequest` or
    is called ``request``; otherwise the prompt: the messages' texts separated by blank lines. It
    returns a string or a `ModelReply`, which may include ``usage`` and ``latency_model_ms``. It may
    be async; otherwise it runs in a thread, and if the request is cancelled, it continues there and
    its result is dropped, because Python can't stop a thread.
    """

    def __init__(self, function: Function, name: str) -> None:
        self._function = function
        self._name = name
        self._whole_request = _takes_request(function, name)

    @property
    def endpoint(self) -> str:
        """The name."""
        return self._name

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Call the function."""
        argument = request if self._whole_request else prompt_of(request)
        returned = await self._returned(argument)
        if isinstance(returned, ModelError):
            raise returned
        if isinstance(returned, str):
            # A function that gets only the prompt can't have used the parameters.
            sent = request.generation if self._whole_request else None
            returned = ModelReply(text=returned, sent=sent, seed_sent=sent is not None)
        if isinstance(returned, ModelReply):
            return _sound(returned)
        what = f"the function returned {type(returned).__name__} instead of a string"
        raise ModelError("failed", what, retry=False)

    async def aclose(self) -> None:
        """Do nothing; there is nothing to close."""

    async def _returned(self, argument: object) -> object:
        if inspect.iscoroutinefunction(self._function):
            returned = self._function(argument)
        else:
            returned = await in_a_thread(self._function, argument)
        try:
            return await returned if inspect.isawaitable(returned) else returned
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            raise _model_error(error) from error
        except (Exception, SystemExit) as error:
            # A function that calls `sys.exit` doesn't end the run.
            raise _model_error(error) from error


async def in_a_thread(function: Function, argument: object) -> object:
    """Run a function in its own daemon thread; return its result, or a `ModelError`.

    The event loop's own threads would keep a stopped program alive until the function returns.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[object] = loop.create_future()

    def settle(result: object) -> None:
        if not future.done():
            future.set_result(result)

    def work() -> None:
        # An error is returned as a value, because a future can't raise a StopIteration.
        result = _attempt(function, argument)
        # The loop may be closed if no caller is waiting anymore.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(settle, result)

    try:
        threading.Thread(target=work, daemon=True).start()
    except RuntimeError as error:
        raise ModelError("rate-limit", str(error), retry=True) from None
    return await future


def _attempt(function: Function, argument: object) -> object:
    try:
        return function(argument)
    except BaseException as error:  # noqa: BLE001 - user code, in a thread of its own
        return _model_error(error)


def _model_error(error: BaseException) -> ModelError:
    if isinstance(error, ModelError):
        return error
    what = f"the function failed with {type(error).__name__}: {error}"
    return ModelError("failed", what, retry=False)


def _sound(reply: ModelReply) -> ModelReply:
    """Return the reply of user code; raise an error if it can't be stored."""
    try:
        msgspec.json.decode(msgspec.json.encode(reply), type=ModelReply)
    except (msgspec.ValidationError, TypeError, UnicodeEncodeError) as error:
        what = f"the function returned an invalid reply: {error}"
        raise ModelError("failed", what, retry=False) from None
    for name in ("latency_ms", "latency_model_ms"):
        value = getattr(reply, name)
        if value is not None and not 0 <= value < math.inf:
            what = f"the function returned a reply with {value} as `{name}`"
            raise ModelError("failed", what, retry=False)
    return reply


def prompt_of(request: ModelRequest) -> str:
    """Return the texts of a request's messages as one string."""
    return "\n\n".join(turn.content for turn in request.messages)


_given: Final[dict[str, Function]] = {}


def function_names(models: str | Function | Iterable[str | Function]) -> tuple[str, ...]:
    """Return the names of one or several models; functions are registered under their names."""
    models = [models] if isinstance(models, str) or callable(models) else models
    known: dict[str, str | Function] = {}
    names: list[str] = []
    for model in models:
        name = model if isinstance(model, str) else _name_of(model)
        if known.setdefault(name, model) is not model and callable(model):
            raise InputError("two functions have this name", "give each its own name", name)
        if callable(model):
            _given[name] = model
        names.append(name)
    return tuple(names)


def _name_of(function: Function) -> str:
    name = getattr(function, "__qualname__", type(function).__qualname__)
    plain = name.replace("<locals>.", "").replace("<lambda>", "lambda_")
    return f"python/{getattr(function, '__module__', None) or '__main__'}:{plain}"


def open_function(name: str, folder: str, _models: object) -> FunctionModel:
    """Return the model ``module:function``; its module may also be in ``folder``."""
    where = f"python/{name}"
    if where in _given:
        return FunctionModel(_given[where], where)
    module_name, colon, path = name.partition(":")
    parts = (*module_name.split("."), *path.split("."))
    if not colon or not all(part.isidentifier() for part in parts):
        raise InputError("that isn't the name of a function", _HOW, where)
    # Added at the end, so that a file `json.py` in the folder doesn't shadow the standard module.
    if folder not in sys.path:
        sys.path.append(folder)
    # No `__pycache__` is written into the user's folder.
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        found: Any = importlib.import_module(module_name)
    except Exception as error:
        problem = f"the module can't be imported ({type(error).__name__}: {error})"
        raise InputError(problem, "check its name, and that it runs", where) from error
    finally:
        sys.dont_write_bytecode = before
    for part in path.split("."):
        if not hasattr(found, part):
            hint = nearest(part, dir(found), f"define it in `{module_name}`")
            raise InputError(f"there is no `{part}`", hint, where)
        found = getattr(found, part)
    if not callable(found):
        raise InputError("that isn't a function", _HOW, where)
    return FunctionModel(found, where)


def _signature(function: Function) -> inspect.Signature:
    if sys.version_info >= (3, 14):
        # This version evaluates annotations lazily, which fails for names that only type checkers
        # know.
        import annotationlib

        return inspect.signature(function, annotation_format=annotationlib.Format.STRING)
    return inspect.signature(function)


def _takes_request(function: Function, name: str) -> bool:
    try:
        parameters = list(_signature(function).parameters.values())
    except (TypeError, ValueError):
        # Some built-in functions have no signature; they are called with the prompt.
        return False
    required = [p for p in parameters[1:] if p.default is p.empty and p.kind not in _VARIADIC]
    if not parameters or parameters[0].kind not in _POSITIONAL or required:
        raise InputError("the function must take one argument", "the request or its prompt", name)
    first = parameters[0]
    annotation = first.annotation if isinstance(first.annotation, str) else None
    if first.annotation is ModelRequest or (annotation or "").rpartition(".")[2] == "ModelRequest":
        return True
    return first.annotation is first.empty and first.name == "request"
