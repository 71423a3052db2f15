"""Batches at OpenAI: a file of requests goes up, and files of answers and errors come back."""

import secrets
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote

import msgspec

from jurybox.engine.ports import ModelError
from jurybox.models.batch_providers import BatchStatus, listed_batches, read_line
from jurybox.models.http import HttpCall, HttpClient, decode, encoded
from jurybox.models.model_errors import quoted, read_refusal, status_error

_ENDPOINT: Final = "/v1/chat/completions"
_FILES: Final = "/files"
_BATCHES: Final = "/batches"

_OPEN: Final = {"validating", "in_progress", "finalizing", "cancelling"}
_ENDED: Final = {"completed", "expired", "cancelled"}


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
    request_counts: _Counts = msgspec.field(default_factory=_Counts)


class _Response(msgspec.Struct):
    status_code: int = HTTPStatus.OK
    body: msgspec.Raw = msgspec.Raw(b"null")


class _Line(msgspec.Struct):
    response: _Response | None = None
    error: _Error | None = None


class OpenAIBatches:
    """How OpenAI, and what is compatible with it, takes batches."""

    def line(self, name: str, payload: Mapping[str, object]) -> bytes:
        """Return a request as a line of the file."""
        asked = {"custom_id": name, "method": "POST", "url": _ENDPOINT, "body": payload}
        return encoded(asked) + b"\n"

    async def submit(self, client: HttpClient, lines: Sequence[bytes], mark: str) -> str:
        """Upload the requests, then create a batch of them."""
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
            "metadata": {"jurybox_batch": mark},
        }
        return decode(await client.post(_BATCHES, wanted), _Batch).id

    async def find(self, client: HttpClient, mark: str, since: str, requests: int) -> Sequence[str]:
        """Return the batch that has the mark, where there is one."""
        del requests
        listed = await listed_batches(client, _BATCHES, "after", since)
        return [each["id"] for each in listed if _mark_of(each) == mark]

    async def status(self, client: HttpClient, batch_id: str) -> BatchStatus:
        """Return how far a batch is."""
        path = f"{_BATCHES}/{quote(batch_id, safe='')}"
        batch = decode(await client.send(HttpCall(path=path)), _Batch)
        answered = batch.request_counts.completed + batch.request_counts.failed
        if batch.status in _OPEN:
            return BatchStatus(state="open", answered=answered)
        if batch.status in _ENDED:
            files = [batch.output_file_id, batch.error_file_id]
            places = tuple(f"{_FILES}/{quote(each, safe='')}/content" for each in files if each)
            return BatchStatus(state="ended", answered=answered, places=places)
        if batch.status == "failed":
            errors = (batch.errors.data if batch.errors else None) or [_Error()]
            said = quoted(errors[0].message or errors[0].code or "it doesn't say why")
            too_much = errors[0].code == "token_limit_exceeded"
            return BatchStatus(state="refused", problem=said, too_much=too_much)
        said = f"batch {quoted(batch_id)} has the unknown status `{quoted(batch.status)}`"
        raise ModelError("unreadable", said, retry=False)

    def answer(self, line: bytes) -> bytes:
        """Return the body of the answer in a line of the results."""
        result = read_line(line, _Line)
        if result.response is None:
            raise _unanswered(result.error or _Error())
        body = bytes(result.response.body)
        if result.response.status_code >= HTTPStatus.MULTIPLE_CHOICES:
            refusal = read_refusal(body, "application/json", ())
            raise status_error(result.response.status_code, refusal)
        return body


def _mark_of(batch: dict[str, Any]) -> object:
    match batch:
        case {"metadata": {"jurybox_batch": mark}}:
            return mark
        case _:
            return None


def _unanswered(error: _Error) -> ModelError:
    said = quoted(error.message or error.code or "the line has neither an answer nor an error")
    match error.code:
        case "batch_expired":
            return ModelError("timeout", f"the batch expired: {said}", retry=True)
        case "batch_cancelled":
            return ModelError("unreachable", f"the batch was cancelled: {said}", retry=True)
        case "request_timeout":
            return ModelError("timeout", f"timed out: {said}", retry=True)
        case _:
            return ModelError("unreadable", said, retry=True)


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
