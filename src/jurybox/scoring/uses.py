"""What the exchanges of one sample used, by model."""

from collections.abc import Iterable

import msgspec

from jurybox.judging.exchange import Failure, ModelReply, ModelRequest, Outcome
from jurybox.sample import Usage
from jurybox.scoring.result import ModelUse, Role, SampleResult


class Exchanged(msgspec.Struct, frozen=True, kw_only=True):
    """A request and what came of it."""

    role: Role
    request: ModelRequest
    outcome: Outcome


def with_uses(result: SampleResult, exchanges: Iterable[Exchanged]) -> SampleResult:
    """Return the result with what its exchanges used."""
    uses: dict[tuple[Role, str], _Use] = {}
    for each in exchanges:
        key = (each.role, each.request.model)
        uses.setdefault(key, _Use(*key)).add(each)
    if not uses:
        return result
    return msgspec.structs.replace(result, uses=tuple(use.value() for use in uses.values()))


class _Use:
    """The use of one model in one role while it is being added up."""

    def __init__(self, role: Role, model: str) -> None:
        self._role: Role = role
        self._model = model
        self._calls = self._cached = self._failed = self._unknown = 0
        self._usage = Usage()
        self._versions: dict[str, None] = {}

    def add(self, exchanged: Exchanged) -> None:
        self._calls += 1
        reply = exchanged.outcome
        if isinstance(reply, Failure):
            self._failed += 1
            return
        version = reported_version(reply)
        if version is not None:
            self._versions[version] = None
        if reply.cached:
            self._cached += 1
        elif reply.usage.input_tokens is None or reply.usage.output_tokens is None:
            self._unknown += 1
        else:
            self._usage += reply.usage

    def value(self) -> ModelUse:
        return ModelUse(
            model=self._model,
            role=self._role,
            calls=self._calls,
            cached=self._cached,
            failed=self._failed,
            unknown=self._unknown,
            usage=self._usage,
            versions=tuple(self._versions),
        )


def reported_version(reply: ModelReply) -> str | None:
    """Return the model and build that the provider says it used (A10)."""
    parts = [part for part in (reply.model, reply.fingerprint) if part is not None]
    return " ".join(parts) or None
