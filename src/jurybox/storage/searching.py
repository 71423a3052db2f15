"""Whether a sample has a text in it: in its id, its inputs' own words, or its responses.

Neither database could tell: one knows the case of ASCII letters only, the other goes by its locale,
and both would find the names of fields, too. So the texts are looked through here, as they are
stored; only those are taken apart in which the text stands anywhere.
"""

from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from jurybox.sample import Turn


class _Inputs(msgspec.Struct, frozen=True, kw_only=True):
    task: str
    reference: str | None = None
    context: str | None = None
    messages: tuple[Turn, ...] = ()


class _Response(msgspec.Struct, frozen=True, kw_only=True):
    text: str


class _Responses(msgspec.Struct, frozen=True, kw_only=True):
    response: _Response
    response_b: _Response | None = None


_INPUTS: Final = msgspec.json.Decoder(_Inputs)
_RESPONSES: Final = msgspec.json.Decoder(_Responses)


def finder(wanted: str) -> Callable[[str, str, str], bool]:
    """Return what tells whether a sample's id, inputs or responses have a text in them.

    In a text of ASCII alone only the case of ASCII letters is of no account: folding whatever
    else is in a long text takes ten times as long.
    """
    fold = _ascii_folded if wanted.isascii() else _folded
    try:
        needle = fold(wanted)
    except UnicodeEncodeError:
        return _nowhere  # half of a surrogate pair is in no stored text
    in_json = fold(as_json(wanted))

    def has(sample_id: str, inputs: str, responses: str) -> bool:
        return (
            needle in fold(sample_id)
            or (in_json in fold(inputs) and _among(needle, fold, _of_inputs(inputs)))
            or (in_json in fold(responses) and _among(needle, fold, _of_responses(responses)))
        )

    return has


def as_json(text: str) -> str:
    """Return a text as it stands within JSON."""
    return msgspec.json.encode(text).decode()[1:-1]


def pattern(text: str) -> str:
    """Return what a database takes for any text with this one in it; ``!`` escapes."""
    for sign in "!%_":
        text = text.replace(sign, f"!{sign}")
    return f"%{text}%"


def _nowhere(*_texts: str) -> bool:
    return False


def _ascii_folded(text: str) -> bytes:
    return text.encode().lower()


def _folded(text: str) -> bytes:
    return text.casefold().encode()


def _among(needle: bytes, fold: Callable[[str], bytes], texts: Iterator[str | None]) -> bool:
    return any(text is not None and needle in fold(text) for text in texts)


def _of_inputs(stored: str) -> Iterator[str | None]:
    try:
        inputs = _INPUTS.decode(stored)
    except msgspec.DecodeError:
        return  # an audit finds it
    yield from (inputs.task, inputs.context, inputs.reference)
    yield from (turn.content for turn in inputs.messages)


def _of_responses(stored: str) -> Iterator[str | None]:
    try:
        responses = _RESPONSES.decode(stored)
    except msgspec.DecodeError:
        return
    yield responses.response.text
    if responses.response_b is not None:
        yield responses.response_b.text
