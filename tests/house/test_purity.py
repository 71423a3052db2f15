"""What an import contract cannot see: async code and builtins that reach outside."""

import ast
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "jurybox"

NOWHERE = frozenset({"eval", "exec"})
NOT_IN_PURE_ROOMS = NOWHERE | {"__import__", "breakpoint", "compile", "input", "open", "print"}
ASYNC = (ast.AsyncFunctionDef, ast.AsyncFor, ast.AsyncWith, ast.Await)


def pure_rooms() -> list[str]:
    """The rooms of the import contract, so that there is one list and not two."""
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())
    contracts = {
        contract["id"]: contract for contract in config["tool"]["importlinter"]["contracts"]
    }
    return [name.removeprefix("*.") for name in contracts["pure"]["source_modules"]]


def pure_files() -> list[Path]:
    modules = [SOURCE / f"{room}.py" for room in pure_rooms()]
    packaged = [path for room in pure_rooms() for path in sorted((SOURCE / room).rglob("*.py"))]
    return [path for path in modules if path.exists()] + packaged


def named(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


def mentions(tree: ast.AST, names: frozenset[str]) -> list[str]:
    """A mention is offence enough: `read = open` would hide the call."""
    return [
        f"line {node.lineno}: {node.id}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in names
    ]


def asynchronous(tree: ast.AST) -> list[str]:
    found = [f"line {node.lineno}: async" for node in ast.walk(tree) if isinstance(node, ASYNC)]
    comprehensions = [node for node in ast.walk(tree) if isinstance(node, ast.comprehension)]
    return found + [f"line {c.iter.lineno}: async" for c in comprehensions if c.is_async]


def impurities(source: str) -> list[str]:
    tree = ast.parse(source)
    return asynchronous(tree) + mentions(tree, NOT_IN_PURE_ROOMS)


def test_a_pure_room_neither_waits_nor_reaches_outside() -> None:
    for path in pure_files():
        assert (named(path), impurities(path.read_text())) == (named(path), [])


def test_no_text_is_ever_executed() -> None:
    for path in SOURCE.rglob("*.py"):
        text = path.read_text()
        if any(name in text for name in NOWHERE):
            assert (named(path), mentions(ast.parse(text), NOWHERE)) == (named(path), [])


def test_there_are_pure_rooms_to_scan() -> None:
    assert {"errors.py", "rubric/rubric_model.py"} <= {named(path) for path in pure_files()}


@pytest.mark.parametrize(
    "offence", ["def f(x):\n    return {}(x)", "alias = {}", "list(map({}, []))"]
)
def test_the_scan_finds_a_forbidden_builtin(offence: str) -> None:
    for name in NOT_IN_PURE_ROOMS:
        assert [found.split(": ")[1] for found in impurities(offence.format(name))] == [name]


@pytest.mark.parametrize(
    "offence",
    [
        "async def f():\n    pass",
        "async def f():\n    await g()",
        "async def f():\n    async for x in g():\n        pass",
        "async def f():\n    async with g():\n        pass",
        "async def f():\n    return [x async for x in g()]",
    ],
)
def test_the_scan_finds_asynchronous_code(offence: str) -> None:
    assert impurities(offence)


@pytest.mark.parametrize("name", sorted(NOWHERE))
def test_the_scan_finds_execution_of_text(name: str) -> None:
    assert mentions(ast.parse(f"{name}('1')"), NOWHERE) == [f"line 1: {name}"]


@pytest.mark.parametrize(
    "source", ["import re\nre.compile('a')", "def f(*, scale):\n    yield scale"]
)
def test_the_scan_lets_pure_code_through(source: str) -> None:
    assert impurities(source) == []
