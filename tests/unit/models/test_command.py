"""A command as a model: what it is given, what becomes of its output, and that it ends."""

import asyncio
import contextlib
import json
import os
import stat
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import msgspec
import pytest

from jurybox.engine.driver import Callers
from jurybox.engine.ports import ModelError
from jurybox.judging.flow import Failure, ModelReply, ModelRequest
from jurybox.models import command as command_module
from jurybox.models.command import CommandModel
from jurybox.rubric.rubric_model import Generation
from jurybox.sample import Turn, Usage
from jurybox.suite.model_spec import ModelSpec

REQUEST = ModelRequest(
    model="command/bot",
    messages=(Turn(role="system", content="Be kind."), Turn(role="user", content="Wie gehts? 😀")),
    generation=Generation(temperature=0.5, seed=7),
)


def python(code: str, stdin: Literal["text", "json"] = "text") -> CommandModel:
    """Return a command that runs a few lines of Python, quickly."""
    argv = (sys.executable, "-I", "-S", "-c", f"import os, sys, time\n{code}")
    return CommandModel(argv, stdin=stdin, cwd=Path.cwd())


def ask(model: CommandModel, request: ModelRequest = REQUEST) -> ModelReply:
    return asyncio.run(model.complete(request))


def trouble_of(model: CommandModel, request: ModelRequest = REQUEST) -> ModelError:
    with pytest.raises(ModelError) as caught:
        ask(model, request)
    return caught.value


def saying(text: str) -> ModelRequest:
    return msgspec.structs.replace(REQUEST, messages=(Turn(role="user", content=text),))


# ---- what it is given


def test_a_command_is_given_all_of_the_request_as_json() -> None:
    code = "import json\nprint(json.dumps({'text': sys.stdin.read()}))"
    reply = ask(python(code, "json"))
    assert json.loads(reply.text) == {
        "messages": [
            {"role": "system", "content": "Be kind."},
            {"role": "user", "content": "Wie gehts? 😀"},
        ],
        "generation": {"temperature": 0.5, "top_p": 1.0, "max_tokens": 1024, "seed": 7},
    }
    assert reply.text.count("\n") == 1
    assert (reply.sent, reply.seed_sent) == (REQUEST.generation, True)


def test_a_command_runs_in_its_folder_with_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Path.cwd() / "bot"
    folder.mkdir()
    script = folder / "bot.py"
    script.write_text(
        f"#!{sys.executable}\nimport os\nprint(os.getcwd(), os.environ['OPENAI_API_KEY'])"
    )
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("OPENAI_API_KEY", "key-of-the-user")
    model = CommandModel(("./bot.py",), stdin="text", cwd=folder)
    assert ask(model).text == f"{folder} key-of-the-user"
    assert model.endpoint == "command/bot.py"


# ---- what it prints


@pytest.mark.parametrize(
    ("printed", "text"),
    [
        (b"fine\n", "fine"),
        (b"fine", "fine"),
        (b"fine\n\n", "fine\n"),
        (b" fine \r\n", " fine \r"),
        (b"", ""),
        (b"\n", ""),
        ("ä\u2028\x00😀".encode(), "ä\u2028\x00😀"),
    ],
)
def test_the_reply_is_what_is_printed_but_for_one_newline(printed: bytes, text: str) -> None:
    assert ask(python(f"sys.stdout.buffer.write({printed!r})")).text == text


@pytest.mark.parametrize("stdin", ["text", "json"])
def test_what_is_no_utf_8_is_unreadable(stdin: Literal["text", "json"]) -> None:
    trouble = trouble_of(python(r"sys.stdout.buffer.write(b'ab\xff')", stdin))
    assert (trouble.kind, trouble.retry) == ("unreadable", False)
    assert str(trouble) == "the command's output isn't UTF-8 (byte 2)"


def test_an_object_may_tell_the_tokens_and_the_models_time() -> None:
    said = {"text": "fine", "input_tokens": 12, "output_tokens": 3, "latency_model_ms": 7.5}
    reply = ask(python(f"print({json.dumps(said)!r})", "json"))
    assert reply.text == "fine"
    assert reply.usage == Usage(input_tokens=12, output_tokens=3)
    assert reply.latency_model_ms == 7.5
    assert ask(python("""print('{"text": "x\\\\n"}')""", "json")).text == "x\n"


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ("All is fine.", "JSON is malformed"),
        ("", "truncated"),
        ("{}", "missing required field `text`"),
        ('{"text": "a"} {"text": "b"}', "JSON is malformed"),
        ('{"text": "a", "output_token": 3}', "unknown field `output_token`"),
        ('{"text": "a", "output_tokens": -1}', "`int` >= 0"),
        ('{"text": "a", "latency_model_ms": -0.5}', "`float` >= 0"),
    ],
)
def test_an_object_that_is_none_is_unreadable_and_says_why(said: str, problem: str) -> None:
    trouble = trouble_of(python(f"sys.stdout.write({said!r})", "json"))
    assert (trouble.kind, trouble.retry) == ("unreadable", False)
    assert str(trouble).startswith('the command must print an object such as {"text": "..."}: ')
    assert problem in str(trouble)


def test_an_endless_output_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command_module, "LARGEST", 3_000_000)
    trouble = trouble_of(python("while True: os.write(1, b'x' * 65536)"))
    assert (trouble.kind, trouble.retry) == ("unreadable", False)
    assert str(trouble) == "the command printed more than 3 MB"


# ---- how it takes what it is given


def test_a_large_prompt_goes_in_while_a_large_reply_comes_out() -> None:
    """One after the other would wait for each other forever."""
    text = "wörter " * 300_000
    code = "while piece := sys.stdin.buffer.read(1000): sys.stdout.buffer.write(piece)"
    assert ask(python(code), saying(text)).text == text


@pytest.mark.parametrize("size", [10, 5_000_000])
def test_a_command_need_not_listen(size: int) -> None:
    assert ask(python("print('fine')"), saying("x" * size)).text == "fine"
    assert ask(python("sys.stdin.close(); print('fine')"), saying("x" * size)).text == "fine"


# ---- how it ends


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("sys.exit(3)", "the command ended with code 3"),
        ("print('a\\nb', file=sys.stderr); sys.exit(1)", "the command ended with code 1: b"),
        ("print('b\\n\\n \\n', file=sys.stderr); sys.exit(1)", "the command ended with code 1: b"),
        ("sys.exit('\\x1b[31mred')", "the command ended with code 1: [31mred"),
        ("sys.exit('bad key sk-abcdefghijkl')", "the command ended with code 1: bad key [hidden]"),
        ("os.write(2, b'\\xff'); os._exit(255)", "the command ended with code 255: \ufffd"),
        ("os.kill(os.getpid(), 9)", "the command was ended by SIGKILL"),
        ("os.kill(os.getpid(), 40)", "the command was ended by signal 40"),
    ],
)
def test_a_bad_end_is_a_failure_with_the_last_complaint(code: str, said: str) -> None:
    trouble = trouble_of(python(f"print('half a reply', flush=True)\n{code}"))
    assert str(trouble) == said
    assert (trouble.kind, trouble.retry, trouble.fatal) == ("failed", False, False)


def no_program() -> CommandModel:
    return CommandModel(("no-such-program",), stdin="text", cwd=Path.cwd())


def no_folder() -> CommandModel:
    return CommandModel((sys.executable,), stdin="text", cwd=Path("nowhere"))


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (no_program, "No such file or directory: no-such-program"),
        (no_folder, "No such file or directory: nowhere"),
    ],
)
def test_a_command_that_can_not_be_started_is_fatal(
    make: Callable[[], CommandModel], said: str
) -> None:
    trouble = trouble_of(make())
    assert str(trouble).startswith(f"the command can't be started ({said})")
    assert (trouble.kind, trouble.retry, trouble.fatal) == ("refused", False, True)


# ---- nothing is left running


def read_numbers() -> list[int]:
    """Return the numbers that the command has written down, as soon as they are there."""
    until = time.monotonic() + 20
    while time.monotonic() < until:
        with contextlib.suppress(FileNotFoundError):
            numbers = Path("numbers").read_text().split()
            if len(numbers) == 2:
                return [int(number) for number in numbers]
        time.sleep(0.01)
    raise AssertionError("the command wrote nothing down")


def wait_until_gone(numbers: list[int]) -> None:
    """A grandchild is init's to wait for, which may take a moment."""
    until = time.monotonic() + 20
    while any(is_alive(number) for number in numbers) and time.monotonic() < until:
        time.sleep(0.01)
    assert [number for number in numbers if is_alive(number)] == []


def is_alive(number: int) -> bool:
    try:
        state = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


# Both write their number down; the child of the command holds its output and input open.
FORK = """
def note():
    with open("numbers", "a") as file:
        file.write(f"{os.getpid()}\\n")
note()
child = os.fork()
if not child:
    note()
    time.sleep(60)
    os._exit(0)
while len(open("numbers").read().split()) < 2:
    time.sleep(0.01)
"""


@pytest.mark.parametrize("prompt", ["short", "x" * 1_000_000])
def test_on_a_time_out_a_command_and_its_children_end(prompt: str) -> None:
    def give_up_after(timeout: float) -> list[int]:
        Path("numbers").write_text("")
        call = Callers().caller(model, ModelSpec(model="m", timeout=timeout), retry_timeouts=False)
        failure = asyncio.run(call(saying(prompt)))
        assert isinstance(failure, Failure)
        assert (failure.kind, failure.fatal) == ("timeout", False)
        assert failure.latency_ms is not None
        assert failure.latency_ms >= timeout * 1000
        return [int(number) for number in Path("numbers").read_text().split()]

    model = python(f"{FORK}time.sleep(60)")
    # A busy machine may need long to start them both.
    tries = (give_up_after(timeout) for timeout in (0.3, 1, 5, 20))
    wait_until_gone(next(numbers for numbers in tries if len(numbers) == 2))


@pytest.mark.parametrize("times", [1, 2])
def test_on_cancellation_a_command_and_its_children_end(times: int) -> None:
    async def main() -> None:
        task = asyncio.create_task(python(f"{FORK}time.sleep(60)").complete(REQUEST))
        numbers = await asyncio.to_thread(read_numbers)
        for _ in range(times):
            task.cancel()
            await asyncio.sleep(0)
        with pytest.raises(asyncio.CancelledError):
            await task
        assert asyncio.all_tasks() == {asyncio.current_task()}
        # The command itself has been waited for: not even a dead one is left.
        assert children() == before
        wait_until_gone(numbers)

    before = children()
    asyncio.run(main())


def children() -> set[int]:
    """Return the processes that this one has started, the dead ones too."""
    found: set[int] = set()
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            parent = path.read_text().rpartition(")")[2].split()[1]
            if int(parent) == os.getpid():
                found.add(int(path.parent.name))
    return found


def test_what_a_command_leaves_behind_ends_with_the_reply() -> None:
    """Its child holds the output open, and nothing waits for it."""
    assert ask(python(f"{FORK}print('fine')")).text == "fine"
    wait_until_gone(read_numbers())
