"""A key goes to its endpoint and nowhere else."""

import asyncio
import json
import logging
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest

import loopback
from commands import call
from jurybox.engine.driver import Callers
from jurybox.engine.limiter import Limits
from jurybox.engine.ports import ModelError
from jurybox.errors import InputError
from jurybox.judging.flow import Failure, ModelRequest
from jurybox.models.anthropic import AnthropicModel, anthropic_client
from jurybox.models.connections import Endpoint, HttpOptions, Proxies
from jurybox.models.openai import OpenAIModel, openai_client
from jurybox.rubric.rubric_model import Generation
from jurybox.sample import Turn
from loopback import Fault, Loopback, completion, echo_key, good, status

KEY = "geheim-0123456789"
REQUEST = ModelRequest(
    model="m", messages=(Turn(role="user", content="x"),), generation=Generation()
)
Make = Callable[[str], OpenAIModel | AnthropicModel]
MODELS: dict[str, Make] = {
    "openai": lambda url: OpenAIModel("m", openai_client(url, KEY)),
    "anthropic": lambda url: AnthropicModel("m", anthropic_client(url, KEY)),
}
FAULTS: dict[str, Fault] = {
    "401": echo_key(401),
    "400": echo_key(400),
    "429": echo_key(429),
    "500": echo_key(500),
    "redirect": status(302, Location=f"http://127.0.0.1/?key={KEY}"),
    "plain": good(f"your key is {KEY}".encode(), content_type="text/plain"),
    "content type": good(b"<p>No", content_type=f"text/html; of={KEY}"),
    "cut off": loopback.cut_off,
}

ONCE = Limits(patience=None, attempts=1, rate_limit_attempts=1)


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS.keys())
@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
def test_a_key_is_in_no_message_no_exception_and_no_log(
    make: Make, fault: Fault, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> list[str]:
        async with Loopback(fault) as server:
            model = make(server.url)
            seen = [repr(model), repr(vars(model))]
            try:
                await model.complete(REQUEST)
            except ModelError as trouble:
                seen += [str(trouble), repr(trouble), repr(vars(trouble))]
                seen += traceback.format_exception(trouble)
                seen.append(repr((trouble.__cause__, trouble.__context__)))
            outcome = await Callers(ONCE).caller(model)(REQUEST)
            assert isinstance(outcome, Failure)
            assert KEY in repr(server.requests[0].headers)
            await model.aclose()
            return [*seen, repr(outcome)]

    with caplog.at_level(logging.DEBUG):
        shown = asyncio.run(main(), debug=True)
    assert [text for text in [*shown, caplog.text] if KEY in text] == []


def test_a_part_of_a_key_in_a_header_is_hidden() -> None:
    async def main() -> str:
        async with Loopback(status(302, Location=f"http://127.0.0.1/{KEY[:14]}")) as server:
            with pytest.raises(ModelError) as caught:
                await MODELS["openai"](server.url).complete(REQUEST)
            return str(caught.value)

    assert "it redirects to http://127.0.0.1/[hidden];" in asyncio.run(main())


def replying(text: object, key: str = KEY) -> str:
    """Return the text of a reply as it arrives from an endpoint that was sent this key."""

    async def main() -> str:
        async with Loopback(good(completion(text))) as server:
            model = OpenAIModel("m", openai_client(server.url, key))
            reply = await model.complete(REQUEST)
            await model.aclose()
            return reply.text

    return asyncio.run(main())


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"Your key is {KEY}.", "Your key is [hidden]."),
        (f"{KEY}{KEY} {KEY}", "[hidden][hidden] [hidden]"),
        (f"It ends with {KEY[-12:]}", "It ends with [hidden]"),
        (f"In between: x{KEY[2:15]}x", "In between: x[hidden]x"),
        (f"Too short for one: {KEY[-11:]}", f"Too short for one: {KEY[-11:]}"),
        ("Nothing of it.", "Nothing of it."),
    ],
)
def test_a_key_in_a_reply_is_hidden_as_a_whole_and_in_part(text: str, shown: str) -> None:
    assert replying(text) == shown


def test_a_key_that_json_writes_otherwise_is_hidden_too() -> None:
    assert replying("It is abc/def+ghi/jklm.", "abc/def+ghi/jklm") == "It is [hidden]."


def test_a_key_that_is_put_together_or_decoded_later_is_hidden_too() -> None:
    parts = [{"type": "text", "text": part} for part in (KEY[:9], KEY[9:])]
    assert replying(parts) == "[hidden]"
    escaped = "".join(f"\\u{ord(char):04x}" for char in KEY)
    assert replying(f'{{"scores": "{escaped}"}}') == '{"scores": "[hidden]"}'
    assert replying("Write \\u0041 for A.") == "Write \\u0041 for A."


def test_utf_16_is_no_way_around_the_mask() -> None:
    async def main() -> None:
        # The bytes of this character are a backslash and a `u`, as those of an escape.
        body = completion(KEY).decode().replace("fp_1", "\u755c")
        async with Loopback(good(body.encode("utf-16-le"))) as server:
            with pytest.raises(ModelError, match="can't be read"):
                await MODELS["openai"](server.url).complete(REQUEST)

    asyncio.run(main())


def test_a_word_that_local_servers_take_for_a_key_stays_in_replies() -> None:
    assert replying("There are none.", "none") == "There are none."


def test_a_key_that_is_not_ours_is_hidden_too() -> None:
    async def main() -> str:
        said = {"message": "Incorrect API key provided: sk-proj-abcdefghij1234. Bearer tok123"}
        async with Loopback(status(401, said)) as server:
            model = OpenAIModel("m", openai_client(server.url))
            with pytest.raises(ModelError) as caught:
                await model.complete(REQUEST)
            await model.aclose()
            return str(caught.value)

    assert asyncio.run(main()) == (
        "HTTP 401: Incorrect API key provided: [hidden] Bearer [hidden]; check the API key"
    )


@pytest.mark.parametrize("key", ["", "  ", "two words", "schlüssel", "a\nb", "a\x00b"])
def test_a_key_that_can_be_none_is_refused_without_showing_it(key: str) -> None:
    with pytest.raises(InputError) as caught:
        openai_client("http://127.0.0.1/v1", key)
    assert not key.strip() or key not in str(caught.value)


def test_the_newline_at_the_end_of_a_file_is_no_part_of_a_key() -> None:
    async def main() -> str:
        async with Loopback(good()) as server:
            model = OpenAIModel("m", openai_client(server.url, f"{KEY}\n"))
            await model.complete(REQUEST)
            await model.aclose()
            return server.requests[0].headers["authorization"]

    assert asyncio.run(main()) == f"Bearer {KEY}"


def test_without_a_key_there_is_no_header_for_it() -> None:
    async def main() -> dict[str, str]:
        async with Loopback(good()) as server:
            model = OpenAIModel("m", openai_client(server.url))
            await model.complete(REQUEST)
            await model.aclose()
            return server.requests[0].headers

    headers = asyncio.run(main())
    assert "authorization" not in headers
    assert "cookie" not in headers


def test_a_password_in_an_address_is_sent_and_not_shown() -> None:
    async def main() -> tuple[str, str]:
        async with Loopback(good()) as server:
            url = server.url.replace("//", "//me:topsecret@")
            model = OpenAIModel("m", openai_client(url))
            await model.complete(REQUEST)
            await model.aclose()
            return model.endpoint, server.requests[0].headers["authorization"]

    endpoint, sent = asyncio.run(main())
    assert "topsecret" not in endpoint
    assert "me" not in endpoint
    assert sent.startswith("Basic ")


@pytest.mark.parametrize(
    "url",
    [KEY, f"ftp://{KEY}/", "http://", f"https://host/v1?key={KEY}", f"http://[{KEY}", "http://h:x"],
)
def test_an_address_that_is_none_is_refused_without_showing_it(url: str) -> None:
    with pytest.raises(InputError) as caught:
        openai_client(url)
    assert KEY not in str(caught.value)


def test_a_proxys_password_is_not_shown() -> None:
    options = HttpOptions(proxies=Proxies(https=f"http://me:{KEY}@proxy.example:3128"))
    client = openai_client("https://host.example/v1", options=options)
    assert KEY not in repr(options)
    assert KEY not in repr(client)


@pytest.mark.parametrize("host", ["ho{st", "h^st", "ho<st", "exa%mple.com", "127.0.0.1\\@host"])
def test_a_host_that_no_client_can_reach_is_refused_without_the_password(host: str) -> None:
    with pytest.raises(InputError, match="names no host") as caught:
        Endpoint(f"http://user:geheim@{host}/v1", {}, HttpOptions())
    assert "geheim" not in str(caught.value)


def test_a_key_given_as_user_name_is_a_secret() -> None:
    assert "sk-geheim" in Endpoint("http://sk-geheim@127.0.0.1/v1", {}, HttpOptions()).secrets


LENGTH_RUBRIC = """---
id: length
version: 1.0.0
scale: 0-1
---
# Length

## Criteria

### Short
Not long.

```yaml checks
- characters: "<= 300"
```
"""


@pytest.mark.parametrize("code", [0, 3])
def test_a_key_that_a_command_prints_is_not_stored(
    monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    for variable in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        script = f"echo the key is ${variable} | tee /dev/stderr; exit {code}"
        Path("length.md").write_text(LENGTH_RUBRIC)
        suite = {
            "suite": "echo",
            "rubric": "length.md",
            "rows": [{"task": "Go."}],
            "target": {"command": ["sh", "-c", script]},
        }
        Path("suite.yaml").write_text(json.dumps(suite))
        done = call(monkeypatch, "run", "suite.yaml", **{variable: KEY})
        shown = call(monkeypatch, "show", "last", "--sample", "1")
        assert "the key is [hidden]" in shown.out
        stored = b"".join(file.read_bytes() for file in Path(".jurybox").iterdir())
        assert KEY not in done.out + done.err + shown.out
        assert KEY.encode() not in stored
