"""Batches at OpenAI: a file of requests goes up, and files of answers and errors come back."""

import secrets
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Final
from urllib.parse import quote, urlencode

import msgspec

from jurybox.models.batches import read_line, read_listed
from jurybox.models.http import HttpCall, HttpClient, decode, encoded
from jurybox.models.trouble import quoted, read_refusal, status_trouble
from jurybox.running.batch_model import LapsedTrouble, Look
from jurybox.running.ports import ModelTrouble

_ENDPOINT: Final = "/v1/chat/completions"
_FILES: Final = "/files"
_BATCHES: Final = "/batches"
_MARK: Final = "jurybox_batch"

_OPEN: Final = {"validating", "in_progress", "finalizing", "cancelling"}
_ENDED: Final = {"completed", "expired", "cancelled"}
_PAGE: Final = 100
_MOST_PAGES: Final = 100
# Their clock and ours may differ.
_SKEW: Final = timedelta(minutes=10)


class _File(msgspec.Struct):
    id: str


class _Counts(msgspec.Struct):
    completed: int = 0
    failed: int = 0


class _Error(msgspec.Struct):
    code: str | None = None
    message: str | None = None


class _Errors(msgspec.Struct):
    data: list[_Error] | None = None


class _Batch(msgspec.Struct):
    id: str
    status: str = ""
    output_file_id: str | None = None
    error_file_id: str | None = None
    errors: _Errors | None = None
    request_counts: _Counts | None = None


class _Listed(msgspec.Struct):
    """A batch in the list, which may be anybody's."""

    id: str
    metadata: dict[str, object] | None = None
    created_at: object = None

    def has(self, mark: str) -> bool:
        return (self.metadata or {}).get(_MARK) == mark

    def is_before(self, oldest: float) -> bool:
        return isinstance(self.created_at, int | float) and self.created_at < oldest


class _Page(msgspec.Struct):
    data: list[msgspec.Raw]
    has_more: bool = False


class _Response(msgspec.Struct):
    status_code: int = HTTPStatus.OK
    body: msgspec.Raw = msgspec.Raw(b"null")


class _Line(msgspec.Struct):
    response: _Response | None = None
    error: _Error | None = None


class OpenAIBatches:
    """How OpenAI, and what is compatible with it, wants batches."""

    def line(self, name: str, payload: Mapping[str, object]) -> bytes:
        """Return a request as it stands in the file."""
        asked = {"custom_id": name, "method": "POST", "url": _ENDPOINT, "body": payload}
        return encoded(asked) + b"\n"

    async def submit(self, client: HttpClient, lines: Sequence[bytes], mark: str) -> str:
        """Upload the requests, then have a batch made of them."""
        boundary = f"jurybox-{secrets.token_hex(16)}"
        call = HttpCall(
            method="POST",
            path=_FILES,
            body=_form(lines, boundary),
            content_type=f"multipart/form-data; boundary={boundary}",
        )
        file = decode(await client.send(call), _File)
        wanted = {
            "input_file_id": file.id,
            "endpoint": _ENDPOINT,
            "completion_window": "24h",
            "metadata": {_MARK: mark},
        }
        return decode(await client.post(_BATCHES, wanted), _Batch).id

    async def find(self, client: HttpClient, mark: str, since: str, requests: int) -> Sequence[str]:
        """Return the batch that was given the mark, where there is one."""
        del requests
        oldest = (datetime.fromisoformat(since) - _SKEW).timestamp()
        after: dict[str, str] = {}
        for _ in range(_MOST_PAGES):
            query = urlencode({"limit": _PAGE, **after})
            page = decode(await client.send(HttpCall(path=f"{_BATCHES}?{query}")), _Page)
            listed = read_listed(page.data, _Listed)
            found = [each.id for each in listed if each.has(mark)]
            if found:
                return found
            # The newest come first.
            if not page.has_more or all(each.is_before(oldest) for each in listed):
                return []
            after = {"after": listed[-1].id}
        return []

    async def look(self, client: HttpClient, batch_id: str) -> Look:
        """Return how far a batch is."""
        path = f"{_BATCHES}/{quote(batch_id, safe='')}"
        batch = decode(await client.send(HttpCall(path=path)), _Batch)
        counts = batch.request_counts
        answered = None if counts is None else counts.completed + counts.failed
        if batch.status in _OPEN:
            return Look(state="open", answered=answered)
        if batch.status in _ENDED:
            files = [batch.output_file_id, batch.error_file_id]
            places = tuple(f"{_FILES}/{quote(each, safe='')}/content" for each in files if each)
            return Look(state="ended", answered=answered, places=places)
        if batch.status == "failed":
            errors = (batch.errors.data if batch.errors else None) or [_Error()]
            said = quoted(errors[0].message or errors[0].code or "it doesn't say why")
            return Look(
                state="refused", problem=said, too_much=errors[0].code == "token_limit_exceeded"
            )
        said = f"batch {quoted(batch_id)} has the unknown status `{quoted(batch.status)}`"
        raise ModelTrouble("unreadable", said, retry=False)

    def answer(self, line: bytes) -> bytes:
        """Return the body of the answer in a line of the results."""
        told = read_line(line, _Line)
        if told.response is None:
            raise _never_answered(told.error or _Error())
        body = bytes(told.response.body)
        if told.response.status_code >= HTTPStatus.MULTIPLE_CHOICES:
            refusal = read_refusal(body, "application/json", ())
            raise status_trouble(told.response.status_code, refusal)
        return body


def _never_answered(error: _Error) -> ModelTrouble:
    said = quoted(error.message or error.code or "the line has neither an answer nor an error")
    match error.code:
        case "batch_expired":
            return LapsedTrouble("timeout", f"the batch expired: {said}")
        case "batch_cancelled":
            return LapsedTrouble("unreachable", f"the batch was cancelled: {said}")
        case "request_timeout":
            return ModelTrouble("timeout", f"timed out: {said}", retry=True)
        case _:
            return ModelTrouble("unreadable", said, retry=True)


def _form(lines: Sequence[bytes], boundary: str) -> bytes:
    """Return the form that uploads a file for a batch (RFC 7578)."""
    head = (
        f"--{boundary}\r\n"
        'Content-Disposition: form-data; name="purpose"\r\n\r\nbatch\r\n'
        f"--{boundary}\r\n"
        'Content-Disposition: form-data; name="file"; filename="jurybox.jsonl"\r\n'
        "Content-Type: application/jsonl\r\n\r\n"
    )
    return b"".join((head.encode(), *lines, f"\r\n--{boundary}--\r\n".encode()))
