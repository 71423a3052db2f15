"""A real endpoint that misbehaves: the outcome of each fault, the calls it took and the waits."""

import asyncio
import contextlib
import json
import socket
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

import loopback
from clocks import Clock
from jurybox.engine.driver import Callers
from jurybox.engine.limiter import Limits
from jurybox.judging.flow import Failure, ModelReply, ModelRequest, Outcome
from jurybox.models.connections import HttpOptions, Proxies
from jurybox.models.http import HttpCall, HttpClient
from jurybox.models.model_errors import LARGEST_REFUSAL, StatusError
from jurybox.models.openai import OpenAIModel, openai_client
from jurybox.rubric.rubric_model import Generation
from jurybox.sample import Turn, Usage
from jurybox.suite.model_spec import ModelSpec
from loopback import Exchange, Fault, Loopback, completion, good, html, status

REQUEST = ModelRequest(
    model="openai/m",
    messages=(Turn(role="user", content="How good is it?"),),
    generation=Generation(),
)
TODAY = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


class Result(msgspec.Struct):
    outcome: Outcome
    calls: int
    waits: list[float]

    @property
    def reply(self) -> ModelReply:
        assert isinstance(self.outcome, ModelReply), self.outcome
        return self.outcome

    @property
    def failure(self) -> Failure:
        assert isinstance(self.outcome, Failure), self.outcome
        return self.outcome


ONCE = Limits(patience=None, attempts=1, rate_limit_attempts=1)


def ask(
    *script: Fault,
    options: HttpOptions | None = None,
    limits: Limits | None = None,
    request: ModelRequest = REQUEST,
) -> Result:
    """Put one request to an endpoint with these faults; every wait is as long as it can be."""

    async def main() -> Result:
        clock = Clock()
        async with Loopback(*script) as server:
            client = HttpClient(server.url, {}, options=options, today=lambda: TODAY)
            model = OpenAIModel("m", client)
            call = Callers(limits, clock=clock, draw=lambda: 1.0).caller(model)
            outcome = await call(request)
            await model.aclose()
            return Result(outcome, len(server.requests), clock.waits)

    return asyncio.run(main())


def test_a_good_reply_is_one_call_and_no_wait() -> None:
    result = ask(good())
    assert result.reply.text == "fine"
    assert result.reply.usage == Usage(input_tokens=12, output_tokens=3, cached_tokens=4)
    assert (result.reply.model, result.reply.fingerprint) == ("model-2025-01-01", "fp_1")
    assert (result.calls, result.waits) == (1, [])


# ---- what a reply took


def headed(**headers: str) -> Fault:
    """Answer well, with these headers."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda exchange: exchange.answer(completion(), headers=named)


def with_fields(**fields: object) -> Fault:
    """Answer well, with these fields beside the choices."""
    return good(json.dumps({**json.loads(completion()), **fields}).encode())


@pytest.mark.parametrize(
    ("header", "latency"),
    [
        ("412", 412),
        ("", None),
        ("-1", None),
        ("inf", None),
        ("soon", None),
    ],
)
def test_the_models_own_time_is_that_of_the_header(header: str, latency: float | None) -> None:
    assert ask(headed(OpenAI_Processing_MS=header)).reply.latency_model_ms == latency


@pytest.mark.parametrize(
    ("timings", "latency"),
    [
        ({"prompt_ms": 30.5, "predicted_ms": 400, "predicted_n": 12}, 430.5),
        ({"predicted_ms": 400}, None),
        ({"prompt_ms": -30, "predicted_ms": 400}, None),
        ({"prompt_ms": 10**400, "predicted_ms": 400}, None),
        (None, None),
    ],
)
def test_the_models_own_time_is_else_that_of_llama_cpp(
    timings: object, latency: float | None
) -> None:
    assert ask(with_fields(timings=timings)).reply.latency_model_ms == latency


def test_without_either_the_models_own_time_is_unknown() -> None:
    assert ask(good()).reply.latency_model_ms is None


def test_latency_is_from_sending_to_the_last_byte_of_the_answer_that_counts() -> None:
    async def in_pieces(exchange: loopback.Exchange) -> None:
        body = completion()
        await exchange.answer(body[:10], length=len(body))
        await asyncio.sleep(0.1)
        await exchange.send(body[10:])

    # The clock of the caller stands still, so this is what the client has measured.
    reply = ask(status(503), in_pieces).reply
    assert reply.latency_ms is not None
    assert reply.latency_ms >= 100


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"prompt_tokens": 5, "completion_tokens": 2}, Usage(input_tokens=5, output_tokens=2)),
        ({"prompt_tokens": 0}, Usage(input_tokens=0)),
        ({"prompt_tokens": True, "completion_tokens": -1}, Usage()),
        ({"prompt_tokens": "5", "completion_tokens": 2.5}, Usage()),
        ({"prompt_tokens": 10**30}, Usage()),
        ({"prompt_tokens_details": None}, Usage()),
        ([], Usage()),
        (None, Usage()),
    ],
)
def test_usage_is_taken_where_it_is_given(usage: object, expected: Usage) -> None:
    assert ask(with_fields(usage=usage)).reply.usage == expected


# ---- trouble that passes


@pytest.mark.parametrize("code", [408, 409, 500, 502, 503, 504])
def test_a_status_that_may_pass_is_tried_again(code: int) -> None:
    result = ask(status(code), good())
    assert result.reply.text == "fine"
    assert (result.calls, result.waits) == (2, [0.5])


BROKEN: dict[str, Fault] = {
    "502 with a page": html(502),
    "cut off": loopback.cut_off,
    "reset in the body": loopback.reset,
    "reset before the head": loopback.reset_at_once,
    "half a body": loopback.half_a_body,
    "half a chunk": loopback.half_a_chunk,
    "badly packed": loopback.badly_zipped,
    "no HTTP": loopback.no_http,
    "empty": good(b""),
    "blank": good(b"   "),
    "half of JSON": good(b"{"),
    "no UTF-8": good(b"\xff\xfe"),
    "a list": good(b"[]"),
    "null": good(b"null"),
    "a page": good(b"<html>", content_type="text/html"),
    "JSON as a page": good(completion(), content_type="text/html; charset=utf-8"),
    "a stream": good(b"data: {}\n\n", content_type="text/event-stream"),
    "empty choices": good(b'{"choices": []}'),
    "null choices": good(b'{"choices": null}'),
    "nothing": good(b"{}"),
    "no message": good(b'{"choices": [{}]}'),
    "null content": good(completion(None)),
    "no parts": good(completion([])),
    "no part with text": good(completion([{"type": "image"}])),
    "a number as content": good(completion(3)),
    "an error as success": good(b'{"error": {"message": "no backend"}}'),
    "a status as success": good(b'{"error": {"message": "no backend", "code": 502}}'),
}


@pytest.mark.parametrize("fault", BROKEN.values(), ids=BROKEN.keys())
def test_what_came_broken_is_asked_for_again(fault: Fault) -> None:
    result = ask(fault, good())
    assert result.reply.text == "fine"
    assert (result.calls, result.waits) == (2, [0.5])


@pytest.mark.parametrize("fault", [loopback.reset, loopback.reset_at_once, loopback.cut_off])
def test_a_lost_connection_is_waited_out(fault: Fault) -> None:
    assert ask(*[fault] * 9, good()).reply.text == "fine"


def test_a_refusal_that_breaks_off_is_still_a_refusal() -> None:
    assert sum(ask(loopback.half_a_refusal, good()).waits) == 7.0


def test_an_html_error_page_is_not_quoted() -> None:
    failure = ask(html(502)).failure
    assert "HTTP 502: an HTML page, and no answer for 300 s" in failure.message
    assert "<" not in failure.message


def test_a_wrong_content_type_is_named() -> None:
    failure = ask(good(b"<html>", content_type="text/html")).failure
    assert failure.kind == "unreadable"
    assert "the answer is text/html instead of JSON" in failure.message


def test_a_content_type_left_out_or_plain_is_no_reason_to_refuse_json() -> None:
    assert ask(good(content_type=None)).reply.text == "fine"
    assert ask(good(content_type="text/plain")).reply.text == "fine"


# ---- being told to slow down


def test_429_waits_as_long_as_asked() -> None:
    result = ask(status(429, Retry_After="7"), good())
    assert result.reply.text == "fine"
    assert (result.calls, result.waits) == (2, [7])


def test_a_date_to_wait_for_is_obeyed() -> None:
    when = (TODAY + timedelta(seconds=20)).strftime("%a, %d %b %Y %H:%M:%S GMT")
    result = ask(status(503, Retry_After=when), good())
    assert (result.calls, sum(result.waits)) == (2, 20)


def test_a_date_in_the_past_means_now() -> None:
    result = ask(status(429, Retry_After="Sun, 01 Mar 2026 11:59:00 GMT"), good())
    assert (result.calls, result.waits) == (2, [0.5])


@pytest.mark.parametrize(
    "nonsense",
    ["soon", "-5", "nan", "inf", "", "1e999", f"Sun, 01 Mar {'9' * 20} 12:00:00 GMT"],
)
def test_a_wait_that_makes_no_sense_is_ignored(nonsense: str) -> None:
    result = ask(status(429, Retry_After=nonsense), good())
    assert (result.calls, result.waits) == (2, [0.5])


def test_a_used_up_quota_is_no_rate_limit() -> None:
    quota = {"message": "You exceeded your current quota", "code": "insufficient_quota"}
    result = ask(status(429, quota))
    assert (result.calls, result.waits) == (1, [])
    assert result.failure.kind == "refused"
    assert result.failure.message.endswith("check the plan and its billing")


# ---- trouble that stays


@pytest.mark.parametrize("code", [400, 401, 403, 404, 405, 413, 422])
def test_a_refusal_is_final_and_quoted(code: int) -> None:
    result = ask(status(code, {"message": "no such model\n\x1b[31m"}))
    assert (result.calls, result.waits) == (1, [])
    assert result.failure.kind == "refused"
    assert f"HTTP {code}: no such model" in result.failure.message
    assert "\x1b" not in result.failure.message
    assert result.failure.fatal is (code in {401, 403, 404})


ABOUT_ONE: dict[str, Fault] = {
    "flagged": status(403, {"message": "Your input was flagged"}),
    "content": status(403, {"message": "Denied", "code": "content_policy_violation"}),
    "moderation": status(403, {"message": "The model requires moderation"}),
    "a firewall's page": html(403),
}


@pytest.mark.parametrize("fault", ABOUT_ONE.values(), ids=ABOUT_ONE.keys())
def test_a_refusal_of_what_a_request_says_is_not_fatal(fault: Fault) -> None:
    """Else one such sample would stop a run for good."""
    failure = ask(fault).failure
    assert (failure.kind, failure.fatal) == ("refused", False)


ABOUT_ALL: dict[str, Fault] = {
    "401 with a page": html(401),
    "404 with a page": html(404),
    "nothing left to pay with": status(402, {"message": "Insufficient balance"}),
    "quota": status(429, {"message": "You exceeded it", "code": "insufficient_quota"}),
    "redirection": status(302, Location="http://127.0.0.1:1/login"),
    "404 as success": good(b'{"error": {"message": "no such model", "code": 404}}'),
}


@pytest.mark.parametrize("fault", ABOUT_ALL.values(), ids=ABOUT_ALL.keys())
def test_a_refusal_of_the_key_the_account_or_the_address_is_fatal(fault: Fault) -> None:
    failure = ask(fault).failure
    assert (failure.kind, failure.fatal) == ("refused", True)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"error": "model not found"}, "model not found"),
        ({"detail": "not here"}, "not here"),
        ({"message": "no", "code": 7}, "no"),
        ({"detail": [{"loc": ["body", "n"], "msg": "too small"}]}, "too small"),
    ],
)
def test_every_habit_of_saying_no_is_understood(body: object, said: str) -> None:
    async def refuse(exchange: loopback.Exchange) -> None:
        await exchange.answer(json.dumps(body).encode(), status=404)

    assert said in ask(refuse).failure.message


def test_a_long_refusal_is_cut() -> None:
    message = ask(status(400, {"message": "x" * 5000})).failure.message
    assert "x" * 300 + "..." in message
    assert len(message) < 400


def refused(fault: Fault, *, secret: str = "") -> StatusError:
    async def main() -> StatusError:
        async with Loopback(fault) as server:
            client = HttpClient(server.url, {}, secrets=(secret,))
            with pytest.raises(StatusError) as caught:
                await client.send(HttpCall(path="/x"))
            await client.aclose()
            return caught.value

    return asyncio.run(main())


def test_no_more_of_a_refusal_is_looked_at_than_its_beginning() -> None:
    said = b"no, " * 5_000_000
    found = refused(lambda exchange: exchange.answer(said, status=404, content_type="text/plain"))
    assert str(found).startswith("HTTP 404: no, no, no")
    assert 1000 < len(found.refusal.message) <= LARGEST_REFUSAL


def test_a_refusal_without_end_is_not_read_to_its_end() -> None:
    sent = 0

    async def endless(exchange: Exchange) -> None:
        nonlocal sent
        await exchange.answer(b"no", status=404, content_type="text/plain", length=10**12)
        while True:
            await exchange.send(b" no" * 100_000)
            sent += 300_000

    assert str(refused(endless)).startswith("HTTP 404: no no")
    # The rest is in the buffers of the system.
    assert sent < 15_000_000


def test_a_secret_that_is_cut_in_two_is_not_shown_by_half() -> None:
    secret = "geheim" * 200
    for kept in (4, 10, 700, len(secret) - 1):
        said = b"\n" * (LARGEST_REFUSAL - kept) + secret.encode() + b"\n" * 1000
        found = refused(
            lambda exchange, said=said: exchange.answer(said, status=404, content_type="x/y"),
            secret=secret,
        )
        assert "gehe" not in f"{found} {found.refusal}"


def test_a_large_page_is_still_a_page_and_not_quoted() -> None:
    page = b"<html>" + b"sorry " * 50_000
    found = refused(lambda exchange: exchange.answer(page, status=404, content_type="text/html"))
    assert str(found).startswith("HTTP 404: an HTML page")


@pytest.mark.parametrize("code", [301, 302, 307, 308])
def test_a_redirect_is_not_followed(code: int) -> None:
    result = ask(status(code, Location="http://127.0.0.1:1/elsewhere"))
    assert result.calls == 5  # the last one is short
    assert result.failure.fatal
    assert "redirects to http://127.0.0.1:1/elsewhere; give that address" in result.failure.message


def test_one_redirect_stops_nothing() -> None:
    assert ask(status(307, Location="http://127.0.0.1:1/elsewhere"), good()).reply.text == "fine"


# ---- size


@pytest.mark.parametrize("fault", [loopback.endless, loopback.zip_bomb])
def test_a_reply_of_70_mb_is_refused_and_asked_for_again(fault: Fault) -> None:
    result = ask(fault)
    assert result.calls == 5  # the last one is short
    assert "larger than 1 MB after 4 attempts" in result.failure.message
    assert ask(fault, good()).reply.text == "fine"


# ---- what is in a reply


def test_half_a_character_becomes_a_replacement() -> None:
    body = completion("cut off in a \ud83d")
    assert rb"\ud83d" in body
    assert ask(good(body)).reply.text == "cut off in a \ufffd"


def test_half_a_character_is_not_sent() -> None:
    turn = Turn(role="user", content="\udcff")
    result = ask(good(), request=msgspec.structs.replace(REQUEST, messages=(turn,)))
    assert (result.calls, result.failure.kind) == (0, "refused")


def test_content_may_come_in_parts() -> None:
    parts = [
        {"type": "thinking", "thinking": "hm"},
        {"type": "text", "text": "one, "},
        {"type": "text", "text": "two"},
    ]
    assert ask(good(completion(parts))).reply.text == "one, two"


@pytest.mark.parametrize("text", ["half a repl", "", None])
def test_a_truncated_reply_is_a_reply(text: str | None) -> None:
    reply = ask(good(completion(text, finish_reason="length"))).reply
    assert (reply.text, reply.finish_reason) == (text or "", "length")


def test_a_filtered_reply_is_a_reply() -> None:
    reply = ask(good(completion(None, finish_reason="content_filter"))).reply
    assert (reply.text, reply.finish_reason) == ("", "content_filter")


def test_a_refusal_to_answer_is_a_reply() -> None:
    message = {"content": None, "refusal": "I can't help with that."}
    reply = ask(good(completion(message=message))).reply
    assert (reply.text, reply.finish_reason) == ("I can't help with that.", "refusal")


# ---- time-outs, with real ones as short as they can be


def test_a_hang_is_a_time_out() -> None:
    limits = Limits(patience=None, attempts=2)
    result = ask(loopback.hang, options=HttpOptions(read=0.05), limits=limits)
    # The calls aren't counted: a busy machine may see the second only when it is over.
    assert len(result.waits) == 1
    assert result.failure.kind == "timeout"
    assert "timed out: no data for 0.05 s after 2 attempts" in result.failure.message


def test_a_hang_in_the_middle_is_a_time_out() -> None:
    result = ask(loopback.hang_in_body, options=HttpOptions(read=0.05), limits=ONCE)
    assert result.failure.kind == "timeout"


def test_a_slow_drip_ends_with_the_total() -> None:
    result = ask(loopback.drip, options=HttpOptions(total=0.15), limits=ONCE)
    assert result.failure.kind == "timeout"
    assert "timed out after 0.15 s" in result.failure.message


@pytest.mark.parametrize("fault", [loopback.hang, loopback.hang_in_body, loopback.drip])
def test_a7_a_call_has_a_time_limit_of_its_own_and_leaves_no_connection(fault: Fault) -> None:
    async def main() -> Outcome:
        async with Loopback(fault) as server:
            model = OpenAIModel("m", openai_client(server.url))
            call = Callers().caller(model, ModelSpec(model="m", timeout=0.3), retry_timeouts=False)
            outcome = await call(REQUEST)
            await server.until(lambda server: server.open == 0)
            await model.aclose()
            assert len(server.requests) <= 1
            return outcome

    failure = asyncio.run(main())
    assert isinstance(failure, Failure)
    assert failure.kind == "timeout"
    assert failure.message.endswith("/v1: timed out after 0.3 s")
    assert failure.latency_ms is not None
    assert failure.latency_ms >= 300


def test_a_connection_that_never_stands_is_given_up() -> None:
    """Where as many wait as may, the system doesn't answer the next."""

    async def main(port: int) -> Outcome:
        options = HttpOptions(connect=0.1)
        model = OpenAIModel("m", openai_client(f"http://127.0.0.1:{port}", options=options))
        call = Callers(clock=Clock(), draw=lambda: 1.0).caller(model)
        outcome = await call(REQUEST)
        await model.aclose()
        return outcome

    with contextlib.ExitStack() as stack:
        full = stack.enter_context(socket.socket())
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for _ in range(3):
            waiting = stack.enter_context(socket.socket())
            waiting.settimeout(0)
            waiting.connect_ex(full.getsockname())
        outcome = asyncio.run(main(full.getsockname()[1]))
    assert isinstance(outcome, Failure)
    assert outcome.kind == "unreachable"
    assert "no connection within 0.1 s after 4 attempts" in outcome.message


# ---- a dead endpoint


def dead_port() -> str:
    """Return an address where nobody listens; the port was free a moment ago."""

    async def main() -> str:
        async with Loopback(good()) as server:
            return server.url

    return asyncio.run(main())


def test_a_refused_connection_says_where_what_and_how_to_mend_it() -> None:
    async def main() -> Outcome:
        model = OpenAIModel("m", openai_client(url))
        outcome = await Callers(clock=Clock(), draw=lambda: 1.0).caller(model)(REQUEST)
        await model.aclose()
        return outcome

    url = dead_port()
    assert asyncio.run(main()) == Failure(
        kind="unreachable",
        message=f"{url}: unreachable (connection refused) after 4 attempts; "
        "is the server running, and is the address right?",
        fatal=True,
        transient=True,
        latency_ms=2000,
        attempts=4,
    )


def test_a_dead_endpoint_fails_fast_with_one_message() -> None:
    async def main() -> tuple[list[Outcome], int]:
        model = OpenAIModel("m", openai_client(url))
        tries = 0
        complete = model.complete

        async def counted(request: ModelRequest) -> ModelReply:
            nonlocal tries
            tries += 1
            return await complete(request)

        model.complete = counted
        call = Callers(clock=Clock(), draw=lambda: 1.0).caller(model)
        outcomes = await asyncio.gather(*(call(REQUEST) for _ in range(500)))
        await model.aclose()
        return outcomes, tries

    url = dead_port()
    outcomes, tries = asyncio.run(main())
    failures = [outcome for outcome in outcomes if isinstance(outcome, Failure)]
    assert len(failures) == 500
    assert len({failure.message for failure in failures}) == 1
    # A run has to hear of it, so that it doesn't go through all the others.
    assert sum(failure.fatal for failure in failures) > 400
    # If each of them tried for itself, it would be 2,000.
    assert tries < 600


# ---- a proxy


def through_proxy(*script: Fault, dead: bool = False) -> tuple[Failure | ModelReply, list[str]]:
    """Ask a host that doesn't exist through the endpoint as a proxy."""

    async def main() -> tuple[Outcome, list[str]]:
        async with Loopback(*script) as server:
            address = dead_address if dead else server.url.removesuffix("/v1")
            options = HttpOptions(proxies=Proxies(http=address))
            model = OpenAIModel("m", openai_client("http://host.invalid/v1", options=options))
            outcome = await Callers(ONCE).caller(model)(REQUEST)
            await model.aclose()
            return outcome, [exchange.path for exchange in server.requests]

    dead_address = dead_port().removesuffix("/v1")
    return asyncio.run(main())


def test_a_proxy_that_is_given_is_gone_through() -> None:
    reply, paths = through_proxy(good())
    assert isinstance(reply, ModelReply)
    assert paths == ["http://host.invalid/v1/chat/completions"]


def test_a_proxy_that_is_dead_is_named_as_the_cause() -> None:
    failure, _ = through_proxy(good(), dead=True)
    assert isinstance(failure, Failure)
    assert "unreachable (the proxy: connection refused)" in failure.message


def test_the_environments_proxy_is_nobodys_business(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "")
    monkeypatch.setenv("NO_PROXY", "")
    assert ask(good()).reply.text == "fine"


# ---- cancellation


@pytest.mark.parametrize("fault", [loopback.hang, loopback.hang_in_body, loopback.drip])
def test_a_cancelled_call_leaves_no_task_and_no_connection(fault: Fault) -> None:
    async def main() -> None:
        async with Loopback(fault) as server:
            model = OpenAIModel("m", openai_client(server.url))
            before = asyncio.all_tasks()
            call = Callers().caller(model)
            tasks = [asyncio.create_task(call(REQUEST)) for _ in range(3)]
            await server.until(lambda server: len(server.requests) == 3)
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            assert all(task.cancelled() for task in tasks)
            # Without closing the client: the endpoint must see that nobody waits any more.
            await server.until(lambda server: server.open == 0)
            assert asyncio.all_tasks() - before == set()
            await model.aclose()

    asyncio.run(main())
