"""A browser's part of the conversation with the pages, in the test's own process."""

import asyncio
from collections.abc import Mapping

import httpx
from fastapi import FastAPI


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
