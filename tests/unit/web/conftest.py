"""Pages over a real store, asked as a browser on this machine asks."""

from collections.abc import Callable
from importlib import import_module

import pytest

from jurybox.storage.store import Store
from jurybox.web import app_state
from jurybox.web.app_state import ServeSettings
from jurybox.web.review import review_pages
from jurybox.web.site import application
from pages_client import PagesClient, pages_of
from stored_runs import make_run, row, store

__all__ = ["make_run", "row", "store"]

Open = Callable[..., PagesClient]


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let pages wait until all they show is worked out, however busy this machine is."""
    monkeypatch.setattr(app_state.soon, "__defaults__", (60.0,))
    monkeypatch.setattr(app_state.AppState.verdict, "__defaults__", (60.0, None))
    pages = {"run_page": "PATIENCE", "runs_page": "PATIENCE", "compare_page": "_PATIENCE"}
    for page, name in pages.items():
        monkeypatch.setattr(import_module(f"jurybox.web.pages.{page}"), name, 60.0)
    monkeypatch.setattr(review_pages, "_PATIENCE", 60.0)


@pytest.fixture
def said() -> list[str]:
    """Return what the server says to whoever started it."""
    return []


@pytest.fixture
def open_pages(store: Store, said: list[str]) -> Open:
    def make(**settings: object) -> PagesClient:
        if settings.keys() <= {"at_store", "overlap", "reveal", "reviewers"}:
            return pages_of(store, say=said.append, **settings)
        return PagesClient(application(ServeSettings(store=store, say=said.append, **settings)))

    return make


@pytest.fixture
def pages(open_pages: Open) -> PagesClient:
    return open_pages()
