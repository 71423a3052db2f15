"""A function as a model: how it is found, what it is given, what becomes of what it returns."""

import asyncio
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from jurybox.engine.driver import Callers
from jurybox.engine.ports import ModelError
from jurybox.errors import InputError
from jurybox.judging.flow import Failure, ModelReply, ModelRequest
from jurybox.models.function import FunctionModel, open_function
from jurybox.rubric.rubric_model import Generation
from jurybox.sample import Turn, Usage
from jurybox.scoring.evaluate_sample import response_of
from jurybox.suite.model_spec import ModelSpec

REQUEST = ModelRequest(
    model="python/m:f",
    messages=(Turn(role="system", content="Judge."), Turn(role="user", content="This.")),
    generation=Generation(),
)


def call(function: Callable[..., Any]) -> ModelReply:
    return asyncio.run(FunctionModel(function, "python/m:f").complete(REQUEST))


# ---- what it is given


def annotated(anything: ModelRequest) -> str:
    return type(anything).__name__


def annotated_in_words(anything: "ModelRequest") -> str:
    return type(anything).__name__


def named(request):  # noqa: ANN001, ANN201 - that is the point
    return type(request).__name__


def annotated_as_text(request: str) -> str:
    return type(request).__name__


def with_options(prompt: str, *more: object, temperature: float = 0, **options: object) -> str:
    return f"{type(prompt).__name__}{len(more)}{temperature}{len(options)}"


class Judge:
    def __call__(self, request: ModelRequest) -> str:
        return type(request).__name__


@pytest.mark.parametrize(
    ("function", "given"),
    [
        (annotated, "ModelRequest"),
        (annotated_in_words, "ModelRequest"),
        (named, "ModelRequest"),
        (Judge(), "ModelRequest"),
        (annotated_as_text, "str"),
        (with_options, "str000"),
        (lambda *parts: type(parts[0]).__name__, "str"),
    ],
)
def test_the_signature_says_what_it_wants(function: Callable[..., Any], given: str) -> None:
    assert call(function).text == given


def no_argument() -> str:
    return ""


def two_arguments(one: str, other: str) -> str:
    return one + other


def only_by_name(*, prompt: str) -> str:
    return prompt


def one_more_by_name(prompt: str, *, other: str) -> str:
    return prompt + other


@pytest.mark.parametrize("function", [no_argument, two_arguments, only_by_name, one_more_by_name])
def test_a_function_must_take_one_argument(function: Callable[..., Any]) -> None:
    with pytest.raises(InputError, match="python/m:f: the function must take one argument"):
        FunctionModel(function, "python/m:f")


# ---- what it returns


def test_a_reply_is_passed_on_as_it_is() -> None:
    usage = Usage(input_tokens=12, output_tokens=3)
    reply = ModelReply(text="x", finish_reason="length", usage=usage, latency_model_ms=7.5)
    assert call(lambda _: reply) is reply


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        (ModelReply(text=None), "Expected `str`, got `null` - at `$.text`"),  # type: ignore[arg-type]
        (ModelReply(text="x", usage=3), "got `int` - at `$.usage`"),  # type: ignore[arg-type]
        (ModelReply(text="x", usage=object()), "object"),  # type: ignore[arg-type]
        (ModelReply(text="x", latency_model_ms="7"), "at `$.latency_model_ms`"),  # type: ignore[arg-type]
        (ModelReply(text="x", latency_model_ms=-1), "-1 as `latency_model_ms`"),
        (ModelReply(text="x", latency_ms=float("nan")), "nan as `latency_ms`"),
        (ModelReply(text="x", latency_model_ms=float("inf")), "inf as `latency_model_ms`"),
    ],
)
def test_a_reply_with_parts_that_are_none_is_trouble(reply: ModelReply, problem: str) -> None:
    """Whoever reads it later would break over it, and with it the whole run."""
    with pytest.raises(ModelError) as caught:
        call(lambda _: reply)
    assert problem in str(caught.value)
    assert (caught.value.kind, caught.value.retry) == ("failed", False)


@pytest.mark.parametrize("returned", [None, 3, b"x", ["x"]])
def test_anything_else_is_trouble(returned: object) -> None:
    with pytest.raises(ModelError, match="instead of a string") as caught:
        call(lambda _: returned)
    assert not caught.value.retry


def fail(_: str) -> str:
    raise ValueError("no such thing")


async def fail_slowly(_: str) -> str:
    raise ValueError("no such thing")


@pytest.mark.parametrize("function", [fail, fail_slowly])
def test_an_exception_is_trouble_with_its_type_and_message(function: Callable[..., Any]) -> None:
    with pytest.raises(ModelError, match="failed with ValueError: no such thing") as caught:
        call(function)
    assert (caught.value.kind, caught.value.retry) == ("failed", False)


def test_a_stop_iteration_does_not_hang() -> None:
    with pytest.raises(ModelError, match="failed with StopIteration"):
        call(lambda _: next(iter(())))


def test_a_function_that_hangs_can_be_given_up() -> None:
    release = threading.Event()

    def hang(_: str) -> str:
        release.wait(20)
        return "too late"

    model = FunctionModel(hang, "python/m:f")
    caller = Callers().caller(model, ModelSpec(model="m", timeout=0.05), retry_timeouts=False)
    try:
        failure = asyncio.run(caller(REQUEST))
    finally:
        release.set()
    assert isinstance(failure, Failure)
    assert (failure.kind, failure.message) == ("timeout", "python/m:f: timed out after 0.05 s")


# ---- how it is found


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[str]:
    (tmp_path / "own_judges.py").write_text(
        "number = 3\n"
        "def strict(prompt):\n    return 'strict'\n"
        "class Deep:\n    @staticmethod\n    def judge(prompt):\n        return 'deep'\n"
    )
    (tmp_path / "broken_judges.py").write_text("import nothing_of_this_name\n")
    before = list(sys.path)
    yield str(tmp_path)
    sys.path[:] = before
    sys.modules.pop("own_judges", None)


@pytest.mark.parametrize(
    ("name", "text"), [("own_judges:strict", "strict"), ("own_judges:Deep.judge", "deep")]
)
def test_a_function_is_found_in_a_folder(folder: str, name: str, text: str) -> None:
    model = open_function(name, folder, None)
    assert model.endpoint == f"python/{name}"
    assert asyncio.run(model.complete(REQUEST)).text == text
    assert sys.path[-1] == folder


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("own_judges", "that isn't the name of a function; write `python/module:function`"),
        ("own_judges:", "that isn't the name of a function"),
        (":strict", "that isn't the name of a function"),
        ("own judges:strict", "that isn't the name of a function"),
        ("../own_judges:strict", "that isn't the name of a function"),
        ("own_judges:strickt", "there is no `strickt`; did you mean `strict`?"),
        ("own_judges:number", "that isn't a function"),
        ("no_judges:strict", "the module can't be imported (ModuleNotFoundError: "),
        ("broken_judges:strict", "No module named 'nothing_of_this_name'"),
    ],
)
def test_a_name_that_leads_nowhere_is_one_clear_error(folder: str, name: str, problem: str) -> None:
    with pytest.raises(InputError) as caught:
        open_function(name, folder, None)
    assert str(caught.value).startswith(f"python/{name}: ")
    assert problem in str(caught.value)


def test_a_response_says_once_that_the_function_failed() -> None:
    failed = Failure(kind="failed", message="the function failed with ValueError: no")
    assert response_of(failed).error == failed.message
    assert response_of(Failure(kind="refused", message="HTTP 400")).error == "refused: HTTP 400"
