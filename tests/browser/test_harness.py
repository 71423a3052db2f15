"""The tests of this folder can fail: what must not happen on a page is noticed."""

import asyncio
import http.server
import threading
from collections.abc import Generator

import pytest
from playwright.sync_api import Page

from window import find_browser, grave_findings

BODIES = {
    "/plain": "<h1>Plain</h1>",
    "/thrown": "<script>throw new Error('thrown')</script>",
    "/said": "<script>console.error('said')</script>",
    "/asked": "<script>alert('asked')</script>",
    "/foreign": "<img alt='' src='http://127.0.0.1:9/x.png'>",
    "/missing": "<script src='/nowhere.js'></script>",
    "/faint": "<p style='color:#bbb;background:#fff'>Faint</p>",
}


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = BODIES.get(self.path)
        self.send_response(200 if body else 404)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        if body:
            head = "<!doctype html><html lang=en><title>x</title><link rel=icon href=data:,><main>"
            self.wfile.write(f"{head}{body}</main>".encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def site(origins: set[str]) -> Generator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        url = f"http://127.0.0.1:{server.server_port}"
        origins.add(url)
        yield url
        server.shutdown()
        thread.join()


TOLD = {
    "/thrown": "error: thrown",
    "/said": "console error: said",
    "/asked": "dialog: asked",
    "/foreign": "foreign request: http://127.0.0.1:9/x.png",
    "/missing": "404: ",
}


def test_trouble_on_a_page_is_noticed(page: Page, site: str, troubles: list[str]) -> None:
    for path, told in TOLD.items():
        page.goto(site + path)
        assert [each for each in troubles if told in each], path
        troubles.clear()


def test_faint_text_is_a_grave_finding_and_a_plain_page_is_no_trouble(
    page: Page, site: str
) -> None:
    page.goto(f"{site}/plain")
    assert grave_findings(page) == []
    page.goto(f"{site}/faint")
    assert [each for each in grave_findings(page) if each.startswith("color-contrast (serious)")]


@pytest.mark.usefixtures("driver")
def test_other_tests_of_the_process_have_their_own_event_loops() -> None:
    async def one() -> int:
        return 1

    assert asyncio.run(one()) == 1


def test_a_browser_that_is_not_there_fails_in_one_line() -> None:
    with pytest.raises(pytest.fail.Exception, match="this test needs a browser, and there is no x"):
        find_browser("x-that-is-nowhere")
