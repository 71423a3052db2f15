"""What an endpoint doesn't take, and what is sent instead.

Endpoints that call themselves compatible differ in their parameters, and none says so beforehand.
So everything is sent, and where the endpoint names a parameter that it won't have, the request goes
out again without it. What went out in the end is in the reply.
"""

import re
from collections.abc import Set as AbstractSet
from typing import Final, Literal, get_args

import msgspec

from jurybox.models.model_errors import Refusal, StatusError

TokenLimit = Literal["max_tokens", "max_completion_tokens"]
ReplyForm = Literal["json_schema", "json_object", "text"]

# Bad request, and the same as some frameworks say it.
_NEGOTIABLE: Final = {400, 422}
_OPTIONAL: Final = ("temperature", "top_p", "seed", "top_logprobs", "logprobs", "cache_control")
_FORM = re.compile(r"response.?format|json.?schema|json.?object|structured.output", re.IGNORECASE)
# A value out of range, or a prompt that is too long, is the user's to fix, so naming isn't enough.
_NOT_TAKEN = re.compile(
    r"unsupported|n[o']t (?:be )?(?:\w+ )?(?:support|permit|allow|accept|implement|available)|"
    r"unavailable|only .{1,40}(?:allowed|supported)|unknown|unrecogni[sz]ed|unexpected|"
    r"extra (?:input|field)|deprecated|invalid (?:param|arg)|cannot both|no longer",
    re.IGNORECASE,
)


class Accepted(msgspec.Struct, frozen=True, kw_only=True):
    """What an endpoint takes from one model's requests, as far as is known."""

    form: ReplyForm = "json_schema"
    token_limit: TokenLimit = "max_tokens"  # noqa: S105 - tokens of text, no secret
    without: frozenset[str] = frozenset()


def less_of(one: Accepted, other: Accepted) -> Accepted:
    """Return what remains where both have given way."""
    forms: tuple[ReplyForm, ...] = get_args(ReplyForm)
    limits: tuple[TokenLimit, ...] = get_args(TokenLimit)
    return Accepted(
        form=forms[max(forms.index(one.form), forms.index(other.form))],
        token_limit=limits[max(limits.index(one.token_limit), limits.index(other.token_limit))],
        without=one.without | other.without,
    )


def concede(accepted: Accepted, trouble: StatusError, sent: AbstractSet[str]) -> Accepted | None:
    """Return what to try after a refusal; None where giving way wouldn't help.

    Every step gives up something that was sent, so there is an end to it.
    """
    if trouble.status not in _NEGOTIABLE:
        return None
    refusal = trouble.refusal
    if "response_format" in sent and _FORM.search(f"{refusal.param} {refusal.message}"):
        form: ReplyForm = "json_object" if accepted.form == "json_schema" else "text"
        return msgspec.structs.replace(accepted, form=form)
    if not _NOT_TAKEN.search(f"{refusal.code} {refusal.message}"):
        return None
    if "max_tokens" in sent and _names(refusal, "max_tokens"):
        return msgspec.structs.replace(accepted, token_limit="max_completion_tokens")  # noqa: S106
    for name in _OPTIONAL:
        if name in sent and _names(refusal, name):
            return msgspec.structs.replace(accepted, without=accepted.without | {name})
    return None


def _names(refusal: Refusal, parameter: str) -> bool:
    if refusal.param:
        return refusal.param == parameter
    return re.search(rf"(?<!\w){parameter}(?!\w)", refusal.message) is not None
