"""Who gets in, under which name, and what may write."""

import asyncio
import html
import re
import time
from collections.abc import AsyncIterator, Callable

import httpx
import pytest

from jurybox.web import security
from pages_client import PagesClient

TOKEN = "a token that nobody guesses"  # noqa: S105 - of tests
WRONG = {"Authorization": "Bearer wrong"}
Open = Callable[..., PagesClient]


def mark_of(page: str) -> str:
    found = re.search(r'name="csrf" value="([^"]+)"', page)
    assert found is not None
    return found[1]


def sign_in(client: PagesClient, token: str = TOKEN, **form: str) -> object:
    mark = mark_of(client.get("/login").text)
    return client.post("/login", data={"csrf": mark, "token": token, **form})


@pytest.mark.parametrize("path", ["/", "/nowhere", "/static/nothing", "/api/nothing", "/login"])
def test_every_answer_is_under_a_strict_policy(pages: PagesClient, path: str) -> None:
    headers = pages.get(path).headers
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "same-origin"
    assert headers["cross-origin-opener-policy"] == "same-origin"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert headers["server-timing"].startswith("app;dur=")


def test_pages_are_not_kept_and_files_are_asked_for_again(pages: PagesClient) -> None:
    assert pages.get("/").headers["cache-control"] == "no-store"
    sheet = pages.get("/static/pages.css")
    assert sheet.headers["cache-control"] == "no-cache"
    again = pages.get("/static/pages.css", headers={"If-None-Match": sheet.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize(
    "host",
    ["evil.example", "127.0.0.1.evil.example", "localhost@evil.example", "", "a b", "10.0.0.7"],
)
def test_another_name_is_refused(pages: PagesClient, host: str) -> None:
    for path in ("/", "/api/runs", "/static/pages.css"):
        assert pages.get(path, headers={"Host": host}).status_code == 400


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:9", "127.0.0.1:1", "[::1]:8080"])
def test_this_machine_has_several_names(pages: PagesClient, host: str) -> None:
    assert pages.get("/", headers={"Host": host}).status_code == 200


def test_who_listens_everywhere_is_known_by_address_but_not_by_name(open_pages: Open) -> None:
    client = open_pages(addresses=True, names=frozenset({"evals.example"}))
    for host, status in (("192.168.1.5:80", 200), ("evals.example", 200), ("evil.example", 400)):
        assert client.get("/", headers={"Host": host}).status_code == status


def test_without_the_token_nothing_is_shown(open_pages: Open) -> None:
    client = open_pages(token=TOKEN)
    sent = client.get("/runs/x")
    assert (sent.status_code, sent.headers["location"]) == (303, "/login?next=%2Fruns%2Fx")
    refused = client.get("/api/runs")
    assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")
    assert refused.json()["error"]["problem"] == "access requires a token"
    assert client.get("/static/pages.css").status_code == 200


@pytest.mark.parametrize("header", ["Bearer wrong", "Bearer", f"Basic {TOKEN}", "Bearer  "])
def test_a_wrong_token_is_refused(open_pages: Open, header: str) -> None:
    client = open_pages(token=TOKEN)
    refused = client.get("/api/nothing", headers={"Authorization": header})
    assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")


def test_the_right_token_lets_a_program_in(open_pages: Open) -> None:
    client = open_pages(token=TOKEN)
    found = client.get("/api/nothing", headers={"Authorization": f"Bearer {TOKEN}"})
    assert found.status_code == 404


def test_signing_in_gives_a_session_that_is_not_the_token(open_pages: Open) -> None:
    client = open_pages(token=TOKEN)
    wrong = sign_in(client, "wrong")
    assert wrong.status_code == 403
    assert "isn't the token" in wrong.text
    assert client.get("/").status_code == 303
    entered = sign_in(client, next="/compare")
    assert (entered.status_code, entered.headers["location"]) == (303, "/compare")
    cookies = entered.headers.get_list("set-cookie")
    assert all("; httponly; samesite=strict" in each for each in cookies)
    assert TOKEN not in " ".join(cookies)
    page = client.get("/")
    assert page.status_code == 200
    left = client.post("/logout", data={"csrf": mark_of(page.text)})
    assert left.status_code == 303
    assert client.get("/").status_code == 303


@pytest.mark.parametrize(
    "elsewhere", ["//evil.example", "https://evil.example", "/\\evil.example", "/\r\nX: y", ""]
)
def test_signing_in_leads_to_our_own_pages_only(open_pages: Open, elsewhere: str) -> None:
    entered = sign_in(open_pages(token=TOKEN), next=elsewhere)
    assert entered.headers["location"] == "/"


@pytest.mark.parametrize("value", ["made-up", "eyJzaWduZWRfaW4iOiAieCJ9.aRrT.x", "\xe4", "null"])
def test_a_session_that_was_made_up_is_none(open_pages: Open, value: str) -> None:
    client = open_pages(token=TOKEN, port=8080)
    headers = {"Cookie": f"jurybox_session_8080={value}".encode("latin-1")}
    assert client.get("/", headers=headers).status_code == 303


def test_a_session_from_before_signing_in_opens_nothing(open_pages: Open) -> None:
    client = open_pages(token=TOKEN)
    client.get("/login")
    planted = dict(client.cookies)
    sign_in(client)
    signed_in = dict(client.cookies)
    client.cookies = httpx.Cookies(planted)
    assert client.get("/").status_code == 303
    client.cookies = httpx.Cookies(signed_in)
    assert client.get("/").status_code == 200


def test_signing_out_ends_the_session_wherever_its_cookie_is(open_pages: Open) -> None:
    client = open_pages(token=TOKEN)
    sign_in(client)
    page = client.get("/").text
    copied = dict(client.cookies)
    client.post("/logout", data={"csrf": mark_of(page)})
    client.cookies = httpx.Cookies(copied)
    assert client.get("/").status_code == 303


def test_wrong_tokens_are_tried_one_after_the_other(
    open_pages: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(security, "_PAUSE_SECONDS", 0.2)
    client = open_pages(token=TOKEN)

    async def guess() -> None:
        asked = [client.ask("GET", "/api/runs", WRONG) for _ in range(4)]
        assert [each.status_code for each in await asyncio.gather(*asked)] == [401] * 4

    began = time.monotonic()
    asyncio.run(guess())
    assert time.monotonic() - began > 0.75


def test_a_body_that_trickles_is_not_waited_for(
    open_pages: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(security, "_BODY_SECONDS", 0.1)

    async def trickle() -> AsyncIterator[bytes]:
        while True:
            yield b"a"
            await asyncio.sleep(0.01)

    assert open_pages().post("/logout", content=trickle()).status_code == 408


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:9999"},
        {"Origin": "https://evil.example:8080"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_a_write_from_another_site_is_refused(open_pages: Open, headers: dict[str, str]) -> None:
    client = open_pages(token=TOKEN)
    mark = mark_of(client.get("/login").text)
    form = {"csrf": mark, "token": TOKEN}
    assert client.post("/login", data=form, headers=headers).status_code == 403
    ours = {"Origin": "http://127.0.0.1:8080", "Sec-Fetch-Site": "same-origin"}
    assert client.post("/login", data=form, headers=ours).status_code == 303


def test_a_form_works_behind_a_proxy_that_adds_tls(open_pages: Open) -> None:
    client = open_pages(token=TOKEN)
    form = {"csrf": mark_of(client.get("/login").text), "token": TOKEN}
    secure = {"Origin": "https://127.0.0.1:8080", "Sec-Fetch-Site": "same-origin"}
    assert client.post("/login", data=form, headers=secure).status_code == 303


@pytest.mark.parametrize("mark", [None, "", "x", "x.y"])
def test_a_write_without_the_mark_is_refused(open_pages: Open, mark: str | None) -> None:
    client = open_pages(token=TOKEN)
    client.get("/login")
    form = {"token": TOKEN} if mark is None else {"token": TOKEN, "csrf": mark}
    assert client.post("/login", data=form).status_code == 403


def test_a_mark_made_for_another_browser_is_refused(open_pages: Open) -> None:
    client = open_pages(token=TOKEN)
    others = mark_of(client.get("/login").text)
    client.cookies.clear()
    client.get("/login")
    assert client.post("/login", data={"token": TOKEN, "csrf": others}).status_code == 403


def test_what_is_sent_is_bounded_and_of_a_known_kind(open_pages: Open) -> None:
    client = open_pages(token=TOKEN)
    mark = mark_of(client.get("/login").text)
    large = client.post("/login", data={"csrf": mark, "token": "x" * 1_000_001})
    assert large.status_code == 413
    other = client.post("/login", content=b"<x/>", headers={"Content-Type": "text/xml"})
    assert other.status_code == 403


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "NONSENSE"])
def test_other_methods_are_none(pages: PagesClient, method: str) -> None:
    assert pages.request(method, "/").status_code == 405


@pytest.mark.parametrize(
    "path",
    ["/runs/%ff", "/runs/../../etc/passwd", "/static/..%2f..%2fapp.py", "/x/"],
)
def test_what_is_no_path_is_not_found(pages: PagesClient, path: str) -> None:
    assert pages.get(path).status_code == 404


@pytest.mark.parametrize(
    "query", ["page=%00", "page=%ff", "page=x", "page=0", "page=-1", "page=1e3"]
)
def test_what_is_no_query_is_a_bad_request(pages: PagesClient, query: str) -> None:
    assert pages.get(f"/?{query}").status_code == 400


def test_a_fault_of_ours_tells_nothing(
    open_pages: Open, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    client = open_pages()
    place = client.app.state.place

    def broken(limit: int) -> None:
        raise RuntimeError(f"secret path /home {limit}")

    monkeypatch.setattr(place.store, "runs", broken)
    page = client.get("/")
    assert page.status_code == 500
    assert "secret" not in page.text
    assert "Traceback" not in page.text
    assert "Something went wrong here" in page.text
    assert any("secret path" in line for line in said)


@pytest.mark.parametrize("path", ["/", "/api/runs?limit=x", "/api/runs"])
def test_no_telemetry_leaves_even_where_the_environment_asks_for_it(
    open_pages: Open, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    used: list[str] = []

    class Provider:
        def __getattr__(self, name: str) -> None:
            used.append(name)
            raise AttributeError(name)

    for name in ("trace.get_tracer", "metrics.get_meter", "_logs.get_logger"):
        monkeypatch.setattr(f"opentelemetry.{name}_provider", Provider)
    monkeypatch.setenv("FASTAPI_OTEL_AUTO_CONMETRIC", "true")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    assert open_pages().get(path).status_code in {200, 400}
    assert used == []


def test_servers_at_two_ports_dont_sign_each_other_out(open_pages: Open) -> None:
    one, other = open_pages(token=TOKEN, port=8080), open_pages(token=TOKEN, port=8081)
    other.base_url = "http://127.0.0.1:8081"
    sign_in(one)
    other.cookies = one.cookies  # a browser keeps one jar for all ports of a host
    sign_in(other)
    one.cookies = other.cookies
    assert (one.get("/").status_code, other.get("/").status_code) == (200, 200)


@pytest.mark.parametrize(
    "others", ['prefs={"a":1}', 'a="', "a[0]=1", "a b=c d", "alone", "=", ";;", "a=\xe4"]
)
def test_a_cookie_of_somebody_else_spoils_no_session(open_pages: Open, others: str) -> None:
    client = open_pages(token=TOKEN)
    sign_in(client)
    ours = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
    headers = {"Cookie": f"{others}; {ours}".encode("latin-1")}
    assert client.get("/", headers=headers).status_code == 200


def test_signing_in_leads_back_to_what_was_asked_for_with_its_filters(open_pages: Open) -> None:
    client = open_pages(token=TOKEN)
    asked = "/runs/a%2Fb/samples?search=x%26y&flag=split"
    form = client.get(client.get(asked).headers["location"]).text
    wanted = re.search(r'name="next" value="([^"]*)"', form)
    assert wanted is not None
    assert html.unescape(wanted[1]) == asked
    assert sign_in(client, next=asked).headers["location"] == asked


def test_signing_out_when_the_session_is_over_leads_to_the_form_alone(open_pages: Open) -> None:
    client = open_pages(token=TOKEN)
    sent = client.post("/logout", data={"csrf": "x"})
    assert (sent.status_code, sent.headers["location"]) == (303, "/login")


@pytest.mark.parametrize(
    ("site", "mode", "dest", "status"),
    [
        ("cross-site", "no-cors", "image", 403),
        ("cross-site", "cors", "empty", 403),
        ("same-site", "no-cors", "script", 403),
        ("cross-site", "navigate", "iframe", 403),
        ("cross-site", "navigate", "document", 200),
        ("same-origin", "cors", "empty", 200),
        ("none", "navigate", "document", 200),
    ],
)
def test_another_site_may_lead_here_and_no_more(
    pages: PagesClient, site: str, mode: str, dest: str, status: int
) -> None:
    headers = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": mode, "Sec-Fetch-Dest": dest}
    for path in ("/compare", "/api/runs", "/static/pages.css"):
        assert pages.get(path, headers=headers).status_code == status
