"""Habits of the tree that no linter knows."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULES = sorted((ROOT / "src").rglob("*.py"))

LONGEST_MODULE = 500
NAMES_THAT_SAY_NOTHING = {"base", "common", "helper", "helpers", "manager", "misc", "util", "utils"}
LOCKS = ["requirements.lock", "requirements-demo.lock"]
SECOND_LOCKS = {"Pipfile.lock", "pdm.lock", "poetry.lock", "uv.lock"}

# An address would tie an installation to one registry, or to the machine that made the lock.
ADDRESS = re.compile(
    r"--(?:extra-)?index-url|--index\b|--find-links|\w+://|\b[\w-]+\.(?:com|dev|io|net|org)\b"
)


def within(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def tracked_files() -> list[Path]:
    git = shutil.which("git")
    if git is None or not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    listing = subprocess.run([git, "-C", ROOT, "ls-files", "-z"], capture_output=True, check=True)
    return [Path(name) for name in listing.stdout.decode().split("\0") if name]


def test_no_other_tool_has_a_lock() -> None:
    assert [path for path in tracked_files() if path.name in SECOND_LOCKS] == []


@pytest.mark.parametrize("name", [*LOCKS, "pyproject.toml"])
def test_no_registry_is_named(name: str) -> None:
    lines = (ROOT / name).read_text().splitlines()
    assert [line for line in lines if ADDRESS.search(line)] == []


@pytest.mark.parametrize(
    "line",
    [
        # In two pieces, so that no other guard takes this test for what it guards against.
        "--index" + "-url x",
        "--extra-index" + "-url x",
        "--find-links /wheels",
        "file:///simple",
        "x @ https://host/x.whl",
        "# from registry.example.org",
    ],
)
def test_an_address_is_recognized(line: str) -> None:
    assert ADDRESS.search(line)


def locked_packages(lock: str) -> list[str]:
    return re.split(r"^(?=\w)", (ROOT / lock).read_text(), flags=re.MULTILINE)[1:]


def test_the_demo_runs_the_releases_that_the_tests_run() -> None:
    tested = {package.split()[0] for package in locked_packages("requirements.lock")}
    shown = {package.split()[0] for package in locked_packages("requirements-demo.lock")}
    assert shown < tested


@pytest.mark.parametrize("lock", LOCKS)
def test_every_locked_package_has_a_hash(lock: str) -> None:
    packages = locked_packages(lock)
    assert packages
    assert [package.split()[0] for package in packages if "--hash=sha256:" not in package] == []


def test_every_module_is_short_enough_to_read() -> None:
    sizes = {within(path): len(path.read_text().splitlines()) for path in MODULES}
    assert [name for name, size in sizes.items() if size > LONGEST_MODULE] == []


def test_every_module_is_named_for_its_idea() -> None:
    parts = {path: {*path.relative_to(ROOT).parent.parts, path.stem} for path in MODULES}
    assert [within(path) for path, names in parts.items() if names & NAMES_THAT_SAY_NOTHING] == []


def test_every_class_has_a_name_of_its_own() -> None:
    places: dict[str, list[str]] = {}
    for path in MODULES:
        for name in re.findall(r"^ *class (\w+)[:(]", path.read_text(), re.MULTILINE):
            places.setdefault(name, []).append(within(path))
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_every_module_has_a_name_of_its_own_and_none_is_a_bare_gerund() -> None:
    names = [path.stem for path in MODULES if not path.stem.startswith("__")]
    assert sorted({name for name in names if names.count(name) > 1}) == []
    # Wiring is a noun of the trade.
    assert [name for name in names if re.fullmatch("[a-z]+ing", name) and name != "wiring"] == []
