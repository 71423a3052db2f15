"""Windows of a real browser onto the real server, over runs that were really made."""

import fcntl
import subprocess
from collections.abc import Callable, Generator
from contextlib import ExitStack
from pathlib import Path

import msgspec
import pytest
from playwright.sync_api import Page

from jurybox.storage import open_store
from stage import FRACTIONS, JURYBOX, PAIRS, Server, Stage, rows, run, serving, write_suite
from window import PATIENCE_MS, WIDE, Driver, Watch


@pytest.fixture(scope="session")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Generator[Driver]:
    """Start one browser for all tests of this process."""
    driver = Driver(tmp_path_factory.mktemp("browser"))
    yield driver
    driver.close()


@pytest.fixture(scope="session")
def stage(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Stage:
    """Run a few suites once; the processes that share the tests share their store too."""
    base = tmp_path_factory.getbasetemp()
    folder = (base if worker_id == "master" else base.parent) / "stage"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        told = folder / "stage.json"
        if not told.exists():
            told.write_bytes(msgspec.json.encode(_staged(folder)))
    return msgspec.json.decode(told.read_bytes(), type=Stage)


def _staged(folder: Path) -> Stage:
    store = folder / "runs.db"
    write_suite(folder / "desk", rows(24))
    write_suite(folder / "kinder", rows(24), judges="[python/judges:kind]")
    write_suite(folder / "pairs", rows(12, pairs=True), rubric=PAIRS)
    write_suite(folder / "fractions", rows(4), rubric=FRACTIONS, judges="[python/judges:half]")
    runs = {
        name: run(folder / name, store, "--name", f"{name}-1")
        for name in ("fractions", "pairs", "kinder")
    }
    # Reviews settle what the pages of a run point at, so reviewers have one to themselves.
    named = {"reviewed": "desk-1", "desk": "desk-2"}
    own = {key: run(folder / "desk", store, "--name", name) for key, name in named.items()}
    return Stage(store=str(store), runs=runs | own)


@pytest.fixture(scope="session")
def origins() -> set[str]:
    """Return where the servers under test are; pages may ask nobody else."""
    return set()


@pytest.fixture(scope="session")
def served(stage: Stage, origins: set[str]) -> Generator[Server]:
    """Serve the runs; whoever writes does it under a name of their own."""
    # All tests share it, each with a reviewer of its own.
    with serving(Path(stage.store), "--overlap", "99") as server:
        origins.add(server.url)
        yield server


@pytest.fixture(scope="session")
def own(tmp_path_factory: pytest.TempPathFactory, origins: set[str]) -> Generator[Server]:
    """Serve a store into which tests put runs of their own."""
    store = tmp_path_factory.mktemp("own") / "runs.db"
    open_store(str(store)).close()
    with serving(store) as server:
        origins.add(server.url)
        yield server


@pytest.fixture(scope="session")
def report(tmp_path_factory: pytest.TempPathFactory, stage: Stage) -> str:
    """Return the address of a report."""
    file = tmp_path_factory.mktemp("report") / "report.html"
    made = [JURYBOX, "report", stage.runs["desk"], "--store", stage.store, "-o", file]
    subprocess.run(made, check=True)
    return file.as_uri()


@pytest.fixture
def serve(origins: set[str]) -> Generator[Callable[..., Server]]:
    """Return a function that serves a store for one test."""
    with ExitStack() as stack:

        def start(store: Path, *options: str, **environment: str) -> Server:
            server = stack.enter_context(serving(store, *options, **environment))
            origins.add(server.url)
            return server

        yield start


@pytest.fixture
def troubles() -> list[str]:
    """Return what went wrong on the pages so far; a test that means it to clears the list."""
    return []


@pytest.fixture
def open_page(
    driver: Driver,
    origins: set[str],
    troubles: list[str],
    serve: Callable[..., Server],
) -> Generator[Callable[..., Page]]:
    """Return a function that opens a window with a profile of its own; options are Playwright's.

    The test fails on whatever must not happen on any page.
    """
    del serve  # it is asked for only to end after the windows
    with driver.awake() as browser, ExitStack() as stack:

        def opened(**options: object) -> Page:
            context = browser.new_context(
                **{"viewport": WIDE, "reduced_motion": "reduce", **options}
            )
            stack.callback(context.close)
            context.set_default_timeout(PATIENCE_MS)
            watch = Watch(origins, troubles)
            page = context.new_page()
            watch.over(page)
            return page

        yield opened
    assert troubles == []


@pytest.fixture
def page(open_page: Callable[..., Page]) -> Page:
    """Return a window of a usual size."""
    return open_page()
