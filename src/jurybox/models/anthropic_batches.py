"""Batches at Anthropic: requests go up in one piece, and a file of results comes back."""

from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

import msgspec

from jurybox.engine.ports import ModelError
from jurybox.models.batch_providers import BatchStatus, listed_batches, read_line
from jurybox.models.http import HttpCall, HttpClient, decode, encoded
from jurybox.models.model_errors import quoted, read_refusal, status_error

_BATCHES: Final = "/v1/messages/batches"

# The status that the same error has as an answer of its own.
_STATUSES: Final[Mapping[str, int]] = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "timeout_error": 504,
    "overloaded_error": 529,
}
_INTERNAL: Final = 500


class _Counts(msgspec.Struct):
    processing: int = 0
    succeeded: int = 0
    errored: int = 0
    canceled: int = 0
    expired: int = 0

    @property
    def answered(self) -> int:
        return self.succeeded + self.errored + self.canceled + self.expired


class _Batch(msgspec.Struct):
    id: str
    processing_status: str = ""
    request_counts: _Counts = msgspec.field(default_factory=_Counts)


class _Result(msgspec.Struct):
    type: str
    message: msgspec.Raw = msgspec.Raw(b"null")
    error: msgspec.Raw = msgspec.Raw(b"null")


class _Line(msgspec.Struct):
    result: _Result


class AnthropicBatches:
    """How Anthropic takes batches."""

    def line(self, name: str, payload: Mapping[str, object]) -> bytes:
        """Return a request as an item of the list of requests."""
        return encoded({"custom_id": name, "params": payload})

    async def submit(self, client: HttpClient, lines: Sequence[bytes], mark: str) -> str:
        """Submit the requests; there is no room for a mark except in their names."""
        del mark
        body = b"".join((b'{"requests":[', b",".join(lines), b"]}"))
        answer = await client.send(HttpCall(method="POST", path=_BATCHES, body=body))
        return decode(answer, _Batch).id

    async def find(self, client: HttpClient, mark: str, since: str, requests: int) -> Sequence[str]:
        """Return the batches since then that have as many requests."""
        del mark
        listed = await listed_batches(client, _BATCHES, "after_id", since)
        return [each["id"] for each in listed if _requests(each) == requests]

    async def status(self, client: HttpClient, batch_id: str) -> BatchStatus:
        """Return how far a batch is."""
        path = f"{_BATCHES}/{quote(batch_id, safe='')}"
        batch = decode(await client.send(HttpCall(path=path)), _Batch)
        answered = batch.request_counts.answered
        match batch.processing_status:
            case "in_progress" | "canceling":
                return BatchStatus(state="open", answered=answered)
            case "ended":
                # Not the address that it names: our key goes to the endpoint only.
                return BatchStatus(state="ended", answered=answered, places=(f"{path}/results",))
            case status:
                said = f"batch {quoted(batch_id)} has the unknown status `{quoted(status)}`"
                raise ModelError("unreadable", said, retry=False)

    def answer(self, line: bytes) -> bytes:
        """Return the body of the answer in a line of the results."""
        result = read_line(line, _Line).result
        match result.type:
            case "succeeded":
                return bytes(result.message)
            case "errored":
                refusal = read_refusal(bytes(result.error), "application/json", ())
                raise status_error(_STATUSES.get(refusal.code, _INTERNAL), refusal)
            case "expired":
                said = "the batch expired before it was tried"
                raise ModelError("timeout", said, retry=True)
            case "canceled":
                said = "the batch was cancelled before it was tried"
                raise ModelError("unreachable", said, retry=True)
            case kind:
                said = f"the answer is of the unknown kind `{quoted(kind)}`"
                raise ModelError("unreadable", said, retry=True)


def _requests(batch: dict[str, Any]) -> int | None:
    try:
        counts = msgspec.convert(batch.get("request_counts"), _Counts)
    except msgspec.ValidationError:
        return None
    return counts.processing + counts.answered
