"""What a client asks for, read from a body that may hold anything."""

import re
from typing import Annotated, Any, Final, Literal, NoReturn, cast

import msgspec
from msgspec import Meta

from jurybox.rubric.model import Generation
from jurybox.sample import Turn
from jurybox.web.model_server.refusals import Refused

_BAD: Final = 400
_ANY_OBJECT: Final = '{"type":"object"}'
# A runtime turns a schema into a grammar, with a call of a function for every level.
_DEEPEST_SCHEMA: Final = 64
_LONGEST_SCHEMA: Final = 256 * 1024
# llama.cpp writes a repetition out as often as it may happen: a large number takes all memory, and
# nothing can stop it then.
_MOST_REPEATED: Final = 1000
_REPEATING: Final = frozenset({"maxItems", "maxLength", "minItems", "minLength"})
_COUNTS: Final = re.compile(r"\{\s*(\d*)\s*,?\s*(\d*)")
# More than fit into any prompt.
_MOST_MESSAGES: Final = 2048
_PLACE: Final = re.compile(r"(?P<what>.*?)(?: - at `\$\.?(?P<where>.*)`)?", re.DOTALL)
_FIELD: Final = re.compile(r"(?:unknown|required) field `(.*)`", re.DOTALL)

# What doesn't change an answer.
_IGNORED: Final = frozenset(
    {
        "metadata",
        "parallel_tool_calls",
        "prompt_cache_key",
        "prompt_cache_retention",
        "safety_identifier",
        "service_tier",
        "store",
        "user",
    }
)
# What would change it and can't be done, with the values that mean "as if nothing was said".
_NOT_DONE: Final[dict[str, tuple[object, ...]]] = {
    "frequency_penalty": (0,),
    "function_call": ("none", "auto"),
    "functions": ([],),
    "logit_bias": ({},),
    "modalities": (["text"],),
    "n": (1,),
    "presence_penalty": (0,),
    "stop": ([],),
    "tool_choice": ("none", "auto"),
    "tools": ([],),
}


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A request for a completion.

    Attributes:
        model: the name that the client uses.
        schema: the JSON schema of the reply, as text.
        logprobs: how many alternatives to every token are wanted; None for no probabilities.
        include_usage: whether a stream ends with the number of tokens.

    """

    model: str
    messages: tuple[Turn, ...]
    generation: Generation
    schema: str | None = None
    logprobs: int | None = None
    stream: bool = False
    include_usage: bool = False


class _Part(msgspec.Struct, forbid_unknown_fields=True):
    type: Literal["text"]
    text: str


class _Message(msgspec.Struct, forbid_unknown_fields=True):
    role: Literal["system", "developer", "user", "assistant"]
    content: str | list[_Part]


class _Described(msgspec.Struct, forbid_unknown_fields=True):
    schema: dict[str, Any]
    name: str = ""
    description: str | None = None
    strict: bool | None = None


class _Format(msgspec.Struct, forbid_unknown_fields=True):
    type: Literal["text", "json_object", "json_schema"]
    json_schema: _Described | None = None


class _StreamOptions(msgspec.Struct, forbid_unknown_fields=True):
    include_usage: bool = False
    include_obfuscation: bool = False


_Tokens = Annotated[int, Meta(ge=1, le=2**31 - 1)]


class _Body(msgspec.Struct, forbid_unknown_fields=True):
    model: str
    messages: Annotated[list[_Message], Meta(min_length=1, max_length=_MOST_MESSAGES)]
    # As OpenAI has it where nothing is said.
    temperature: Annotated[float, Meta(ge=0, le=2)] = 1.0
    top_p: Annotated[float, Meta(ge=0, le=1)] = 1.0
    max_tokens: _Tokens | None = None
    max_completion_tokens: _Tokens | None = None
    seed: Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)] | None = None
    response_format: _Format = msgspec.field(default_factory=lambda: _Format("text"))
    logprobs: bool = False
    top_logprobs: Annotated[int, Meta(ge=0, le=20)] | None = None
    stream: bool = False
    stream_options: _StreamOptions = msgspec.field(default_factory=_StreamOptions)


def read_request(body: bytes, seed: int) -> Asked:
    """Read a body; ``seed`` is used where it names none.

    Raises:
        Refused: it can't be read, or asks for what can't be done; the field is named.

    """
    try:
        read = msgspec.convert(_fields(body), _Body)
    except msgspec.ValidationError as error:
        _blame(str(error))
    return Asked(
        model=read.model,
        messages=tuple(_turn(message) for message in read.messages),
        generation=Generation(
            temperature=read.temperature,
            top_p=read.top_p,
            max_tokens=_limit(read),
            seed=seed if read.seed is None else read.seed,
        ),
        schema=_schema(read.response_format),
        logprobs=_logprobs(read),
        stream=read.stream,
        include_usage=read.stream_options.include_usage,
    )


def _fields(body: bytes) -> dict[str, Any]:
    """Return what is said at all: null and what changes nothing are as good as nothing."""
    try:
        said = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise Refused(_BAD, "the body isn't valid JSON", code="invalid_json") from None
    if not isinstance(said, dict):
        raise Refused(_BAD, "the body isn't a JSON object", code="invalid_json")
    fields = _without_nulls(cast("dict[str, Any]", said))
    for name, neutral in _NOT_DONE.items():
        if name in fields:
            value = fields.pop(name)
            if isinstance(value, bool) or value not in neutral:
                only = " or ".join(msgspec.json.encode(each).decode() for each in neutral)
                message = f"`{name}`: not supported here; only {only} is allowed"
                raise Refused(_BAD, message, param=name, code="unsupported_value")
    if isinstance(fields.get("messages"), list):
        fields["messages"] = [_plain(each) for each in fields["messages"]]
    return {name: value for name, value in fields.items() if name not in _IGNORED}


def _without_nulls(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _plain(message: object) -> object:
    """Return a message without what is empty: clients send answers back with all their fields."""
    if not isinstance(message, dict):
        return message
    fields = _without_nulls(cast("dict[str, Any]", message))
    return {name: value for name, value in fields.items() if value != [] or name == "content"}


def _blame(problem: str) -> NoReturn:
    """Refuse with what the reader says and with the name of the field."""
    found = _PLACE.fullmatch(problem)
    what, where = (problem, None) if found is None else (found["what"], found["where"])
    field = _FIELD.search(what)
    names = [name for name in (where, None if field is None else field[1]) if name]
    param = ".".join(names) or None
    if what.startswith("Object contains unknown"):
        message, code = f"`{param}`: unknown here, or not supported", "unknown_parameter"
    elif what.startswith("Object missing"):
        message, code = f"`{param}`: missing", "missing_required_parameter"
    else:
        message, code = f"`{param}`: {what[:1].lower()}{what[1:]}", "invalid_value"
    raise Refused(_BAD, message, param=param, code=code)


def _turn(message: _Message) -> Turn:
    content = message.content
    if not isinstance(content, str):
        content = "".join(part.text for part in content)
    # The newer name of the same role.
    return Turn(role="system" if message.role == "developer" else message.role, content=content)


def _limit(body: _Body) -> int:
    older, newer = body.max_tokens, body.max_completion_tokens
    if older is not None and newer is not None and older != newer:
        message = "`max_completion_tokens`: differs from `max_tokens`; name one of the two"
        raise Refused(_BAD, message, param="max_completion_tokens", code="invalid_value")
    return newer or older or Generation().max_tokens


def _logprobs(body: _Body) -> int | None:
    if body.logprobs:
        return body.top_logprobs or 0
    if body.top_logprobs:
        message = "`top_logprobs`: needs `logprobs` to be true"
        raise Refused(_BAD, message, param="top_logprobs", code="invalid_value")
    return None


def _schema(form: _Format) -> str | None:
    match form.type:
        case "text":
            return None
        case "json_object":
            return _ANY_OBJECT
        case "json_schema":
            pass
    param = "response_format.json_schema"
    if form.json_schema is None:
        message = f"`{param}`: missing"
        raise Refused(_BAD, message, param=param, code="missing_required_parameter")
    schema = form.json_schema.schema
    problem = _too_much(schema)
    # What is nested too deep can't be written either.
    text = "" if problem else msgspec.json.encode(schema).decode()
    if len(text) > _LONGEST_SCHEMA:
        problem = "longer than 256 KiB"
    if problem:
        message = f"`{param}.schema`: {problem}"
        raise Refused(_BAD, message, param=f"{param}.schema", code="invalid_value")
    return text


def _too_much(schema: dict[str, Any]) -> str | None:
    """Return what of a schema a runtime could choke on; level by level, without calling itself."""
    level: list[object] = [schema]
    for _ in range(_DEEPEST_SCHEMA):
        below: list[object] = []
        for each in level:
            if isinstance(each, dict):
                fields = cast("dict[str, object]", each)
                if any(_repeats(name, value) > _MOST_REPEATED for name, value in fields.items()):
                    return f"repeats something more than {_MOST_REPEATED} times"
                below += fields.values()
            elif isinstance(each, list):
                below += cast("list[object]", each)
        level = below
    return f"nested deeper than {_DEEPEST_SCHEMA} levels" if level else None


def _repeats(name: str, value: object) -> float:
    """Return how often something is repeated at most, as one field of a schema has it."""
    if name in _REPEATING and isinstance(value, int | float):
        return value
    if name == "pattern" and isinstance(value, str):
        counts = [count for found in _COUNTS.findall(value) for count in found if count]
        # A number of many digits isn't even read.
        return max((int(count[:9]) for count in counts), default=0)
    return 0
