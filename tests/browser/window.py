"""A real browser for tests: started once, with a fresh profile for every window."""

import asyncio
import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect, sync_playwright

CHROMIUM: Final = os.environ.get("JURYBOX_CHROMIUM")  # before any test has it taken away
_SCREENSHOTS: Final = os.environ.get("JURYBOX_SCREENSHOTS")
SCREENSHOTS: Final = Path(_SCREENSHOTS).absolute() if _SCREENSHOTS else None
_PICTURES: Final = os.environ.get("JURYBOX_PICTURES")
PICTURES: Final = Path(_PICTURES).absolute() if _PICTURES else None
NAMES: Final = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
OPTIONS: Final = (
    "--no-sandbox",  # it needs rights that a container doesn't give, and only our own pages are met
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
)
PATIENCE_MS: Final = 20_000  # other tests work at the same time
WIDE: Final = {"width": 1280, "height": 800}
NARROW: Final = {"width": 390, "height": 844}
GRAVE: Final = {"serious", "critical"}

_AXE: Final = Axe()
expect.set_options(timeout=PATIENCE_MS)


def find_browser(named: str | None = CHROMIUM) -> str:
    """Return the path of a browser; a test that needs one that isn't there fails, and says so."""
    names = (named,) if named else NAMES
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        pytest.fail(
            f"this test needs a browser, and there is no {' or '.join(names)}: run"
            " `scripts/browser`, or name another one in JURYBOX_CHROMIUM",
            pytrace=False,
        )
    return found


class Driver:
    """The browser of a process, which goes on while other tests have event loops of their own.

    Playwright's loop stays marked as the thread's running one between its calls, so that no other
    could run. It is marked only while a test drives the browser.
    """

    def __init__(self, folder: Path) -> None:
        path = find_browser()
        self._playwright = sync_playwright().start()
        self._loop = asyncio.get_running_loop()
        # Whatever a browser keeps of its user goes with the folder.
        environment = {**os.environ, "HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
        self._browser = self._playwright.chromium.launch(
            executable_path=path, args=list(OPTIONS), env=environment
        )
        asyncio._set_running_loop(None)

    @contextmanager
    def awake(self) -> Generator[Browser]:
        """Lend the browser."""
        asyncio._set_running_loop(self._loop)
        try:
            yield self._browser
        finally:
            asyncio._set_running_loop(None)

    def close(self) -> None:
        """End the browser, and the process that drives it."""
        asyncio._set_running_loop(self._loop)
        self._browser.close()
        self._playwright.stop()
        asyncio._set_running_loop(None)


class Watch:
    """Notes what must not happen on any page: errors, dialogs, requests that leave the server."""

    def __init__(self, origins: set[str], troubles: list[str]) -> None:
        self._origins = origins
        self.troubles = troubles

    def over(self, page: Page) -> None:
        """Look at all that happens on a page from now on."""
        page.on("console", lambda message: self._console(message.type, message.text))
        page.on("pageerror", lambda error: self.troubles.append(f"error: {error}"))
        page.on("dialog", self._dialog)
        page.on("request", lambda request: self._request(request.url))
        page.on("requestfailed", lambda request: self._failed(request.url, request.failure))
        page.on("response", lambda response: self._response(response.status, response.url))

    def _console(self, kind: str, text: str) -> None:
        if kind in {"error", "warning"}:
            self.troubles.append(f"console {kind}: {text}")

    def _dialog(self, dialog: Any) -> None:  # noqa: ANN401 - Playwright's
        self.troubles.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _request(self, url: str) -> None:
        if url.startswith(("data:", "about:", "file:")):
            return
        if not any(url == origin or url.startswith(f"{origin}/") for origin in self._origins):
            self.troubles.append(f"foreign request: {url}")

    def _failed(self, url: str, why: str | None) -> None:
        # Leaving a page while it asks for news is no failure.
        if why != "net::ERR_ABORTED":
            self.troubles.append(f"failed request: {url} ({why})")

    def _response(self, status: int, url: str) -> None:
        if status >= 400:
            self.troubles.append(f"{status}: {url}")


def grave_findings(page: Page, *rules: str) -> list[str]:
    """Return what keeps people from using a page, as axe sees it; by all rules, or by some."""
    options: dict[str, Any] = {"resultTypes": ["violations"]}
    if rules:
        options["runOnly"] = list(rules)
    if page.evaluate("typeof axe") == "undefined":
        page.evaluate(_AXE.axe_script)
    found = page.evaluate("options => axe.run(options)", options)["violations"]
    return [
        f"{each['id']} ({each['impact']}): {node['target']} {node['html'][:200]}"
        for each in found
        if each["impact"] in GRAVE
        for node in each["nodes"]
    ]


def picture(page: Page, name: str) -> None:
    """Keep a picture of a page, where pictures are wanted; the documentation has the light ones."""
    if PICTURES is not None and name.endswith("-light"):
        path = PICTURES / f"{name.removesuffix('-light')}.png"
        for foot in page.locator("footer").all():  # it names the store
            foot.evaluate("foot => foot.style.visibility = 'hidden'")
        page.screenshot(path=path)
    if SCREENSHOTS is not None:
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=True)
