"""A browser's part of the conversation with the pages, in the test's own process."""

import asyncio
import functools
from collections.abc import Mapping

import httpx
from fastapi import FastAPI

from jurybox.storage.store import Store
from jurybox.web.app_state import AppState, ServeSettings
from jurybox.web.site import application


class PagesClient:
    """Asks an application one request after the other, and keeps its cookies."""

    def __init__(self, app: FastAPI, base_url: str = "http://127.0.0.1:8080") -> None:
        self.app = app
        self.base_url = base_url
        self.cookies = httpx.Cookies()

    def request(self, method: str, path: str, **more: object) -> httpx.Response:
        """Return the answer; a redirection is one too."""
        return asyncio.run(self._request(method, path, **more))

    async def ask(self, method: str, path: str, headers: Mapping[str, str]) -> httpx.Response:
        """Return the answer, within a loop of the caller's."""
        return await self._request(method, path, headers=headers)

    async def _request(self, method: str, path: str, **more: object) -> httpx.Response:
        transport = httpx.ASGITransport(app=self.app)
        async with httpx.AsyncClient(
            transport=transport, base_url=self.base_url, cookies=self.cookies
        ) as client:
            response = await client.request(method, path, **more)
            self.cookies = client.cookies
        return response

    def get(self, path: str, headers: Mapping[str, str] | None = None) -> httpx.Response:
        """Ask for a page."""
        return self.request("GET", path, headers=headers)

    def post(self, path: str, **more: object) -> httpx.Response:
        """Send a form (``data``) or JSON (``json``)."""
        return self.request("POST", path, **more)


def pages_of(store: Store, **more: object) -> PagesClient:
    """Show a store with the usual settings; other tests show theirs by the same application.

    FastAPI works out the routes of an application at its first request, which takes longer than
    most pages.
    """
    app = _usual()
    app.state.place = AppState(ServeSettings(store=store, **more))
    return PagesClient(app)


@functools.cache
def _usual() -> FastAPI:
    return application(ServeSettings(store=None))  # type: ignore[arg-type] - each test gives its own
