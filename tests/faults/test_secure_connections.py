"""TLS and proxies, over loopback with certificates made on the spot."""

import asyncio
import ssl
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Self

import msgspec
import pytest

from jurybox.engine.ports import ModelError
from jurybox.errors import InputError
from jurybox.models.connections import HttpOptions, Proxies, Tls
from jurybox.models.http import HttpAnswer, HttpClient
from jurybox.wiring import http_options
from tls import Socks, Tunnel, certificate, serve_http2, serving

FINE = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


@pytest.fixture
def trusted() -> Path:
    return certificate("DNS:localhost", "IP:127.0.0.1", "DNS:host.invalid")


def trusting(path: Path, proxy: str | None = None, **more: float) -> HttpOptions:
    tls = Tls(authorities=path.read_bytes())
    proxies = Proxies(http=proxy, https=proxy)
    return HttpOptions(tls=tls, proxies=proxies, **more)  # type: ignore[arg-type]


class Secure:
    """An endpoint behind TLS that answers every request."""

    def __init__(
        self, path: Path | None, *, says: bytes = FINE, context: ssl.SSLContext | None = None
    ) -> None:
        self._context = context or (None if path is None else serving(path))
        self._says = says
        self.heads: list[str] = []
        self.writers: list[asyncio.StreamWriter] = []

    @property
    def accepted(self) -> int:
        return len(self.writers)

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._context)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        await asyncio.sleep(0.05)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writers.append(writer)
        try:
            while True:
                self.heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
                await reader.readexactly(2)
                writer.write(self._says)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.transport.abort()


def ask(
    url: str,
    server: Secure,
    options: HttpOptions | None = None,
    *,
    proxy: Tunnel | None = None,
    user: str = "",
) -> str:
    """Post twice; return what came of it in words."""

    async def main() -> str:
        used = options or HttpOptions()
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(server)
            if proxy is not None:
                proxy._to = server.port
                await stack.enter_async_context(proxy)
                address = f"{proxy.scheme}://{user}127.0.0.1:{proxy.port}"
                proxies = Proxies(http=address, https=address)
                used = msgspec.structs.replace(used, proxies=proxies)
            client = HttpClient(url.replace("PORT", str(server.port)), {}, options=used)
            try:
                for _ in range(2):
                    await client.post("/x", {})
            except ModelError as trouble:
                return f"{trouble} {'(again)' if trouble.retry else '(final)'}"
            finally:
                await client.aclose()
            return "fine"

    return asyncio.run(main())


# ---- TLS


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_a_secure_connection_is_made_and_used_again(trusted: Path, host: str) -> None:
    server = Secure(trusted)
    assert ask(f"https://{host}:PORT/v1", server, trusting(trusted)) == "fine"
    assert (server.accepted, len(server.heads)) == (1, 2)


def test_a_certificate_that_nobody_vouches_for_is_refused() -> None:
    server = Secure(certificate("DNS:localhost"))
    said = ask("https://localhost:PORT/v1", server)
    assert said.startswith("unreachable (no secure connection: the certificate is ")
    assert said.endswith("(final)")
    assert server.heads == []


def test_a_certificate_of_another_host_is_refused() -> None:
    path = certificate("DNS:host.invalid")
    server = Secure(path)
    said = ask("https://localhost:PORT/v1", server, trusting(path))
    assert "no secure connection: the certificate is for another host, " in said
    assert server.heads == []


def test_a_server_that_speaks_no_tls_is_named() -> None:
    async def main() -> str:
        async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read(1)
            writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
            writer.close()

        server = await asyncio.start_server(refuse, "127.0.0.1", 0)
        client = HttpClient(f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}", {})
        with pytest.raises(ModelError) as caught:
            await client.post("/x", {})
        await client.aclose()
        server.close()
        await asyncio.sleep(0.05)
        assert (caught.value.retry, caught.value.fatal) == (True, True)
        return str(caught.value)

    assert asyncio.run(main()) == "unreachable (no secure connection: wrong version number)"


def test_http_2_is_spoken_where_the_endpoint_offers_it(trusted: Path) -> None:
    spoken: list[str] = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        spoken.append(writer.get_extra_info("ssl_object").selected_alpn_protocol())
        await serve_http2(reader, writer)

    async def main() -> list[HttpAnswer]:
        context = serving(trusted)
        context.set_alpn_protocols(["h2", "http/1.1"])
        server = await asyncio.start_server(handle, "127.0.0.1", 0, ssl=context)
        port = server.sockets[0].getsockname()[1]
        client = HttpClient(f"https://localhost:{port}", {}, options=trusting(trusted))
        first = await client.post("/x", {})
        others = await asyncio.gather(*(client.post("/x", {}) for _ in range(20)))
        await client.aclose()
        server.close()
        await asyncio.sleep(0.05)
        return [first, *others]

    assert [answer.body for answer in asyncio.run(main())] == [b"{}"] * 21
    # All calls share one connection.
    assert spoken == ["h2"]


# ---- certificates of the client


def show(trusted: Path, options: HttpOptions) -> str:
    """Post to an endpoint that asks for a certificate, and knows the one that is trusted."""

    async def main() -> str:
        context = serving(trusted)
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(trusted)
        async with Secure(trusted, context=context) as server:
            url = f"https://localhost:{server.port}"
            client = HttpClient(url, {}, options=options)
            try:
                return (await client.post("/x", {})).body.decode()
            except ModelError as trouble:
                return str(trouble)
            finally:
                await client.aclose()

    return asyncio.run(main())


def showing(path: Path, key: bytes) -> HttpOptions:
    pem = path.read_bytes()
    return HttpOptions(tls=Tls(authorities=pem, certificate=pem, key=key))


def test_a_client_certificate_is_shown(trusted: Path) -> None:
    assert show(trusted, showing(trusted, trusted.read_bytes())) == "{}"


def test_without_a_client_certificate_the_endpoint_refuses(trusted: Path) -> None:
    assert show(trusted, trusting(trusted)).startswith("unreachable (")


@pytest.mark.parametrize("key", [b"", b"geheim", b"-----BEGIN EC PRIVATE KEY-----\nAA==\n"])
def test_a_client_certificate_that_is_none_is_refused_without_showing_its_key(
    trusted: Path, key: bytes
) -> None:
    with pytest.raises(InputError, match="the client's certificate or its key can't be") as caught:
        show(trusted, showing(trusted, key))
    assert "geheim" not in f"{caught.value} {showing(trusted, key)}"


@pytest.mark.parametrize(
    "authorities",
    [b"", b"no PEM", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"],
)
def test_authorities_that_are_none_are_refused(authorities: bytes) -> None:
    options = HttpOptions(tls=Tls(authorities=authorities))
    with pytest.raises(InputError, match="SSL_CERT_FILE"):
        HttpClient("https://localhost", {}, options=options)


# ---- as the environment has it


def test_a_bundle_of_authorities_is_taken_from_the_environment(
    trusted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(trusted))
    assert ask("https://localhost:PORT/v1", Secure(trusted), http_options()) == "fine"
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", "missing.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
    assert ask("https://localhost:PORT/v1", Secure(trusted), http_options()) == "fine"


def test_a_client_certificate_is_taken_from_the_environment(
    trusted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
    monkeypatch.setenv("JURYBOX_CLIENT_CERT", str(trusted))
    assert show(trusted, http_options()) == "{}"
    # The certificate without its key.
    monkeypatch.setenv("JURYBOX_CLIENT_CERT", "public.pem")
    monkeypatch.setenv("JURYBOX_CLIENT_KEY", str(trusted))
    assert show(trusted, http_options()) == "{}"


@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "JURYBOX_CLIENT_CERT"])
def test_a_file_that_is_missing_is_named(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, "some/missing.pem")
    with pytest.raises(InputError) as caught:
        http_options()
    said = f"{variable}: some/missing.pem can't be read (no such file or directory); "
    assert str(caught.value).startswith(said)


def test_a_clients_key_without_its_certificate_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JURYBOX_CLIENT_KEY", "key.pem")
    with pytest.raises(InputError, match="JURYBOX_CLIENT_KEY: JURYBOX_CLIENT_CERT is not set"):
        http_options()


def test_the_timeout_is_taken_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JURYBOX_TIMEOUT", "900")
    options = http_options()
    # A model that sends nothing before its reply is done needs both.
    assert (options.read, options.total) == (900, 900)


@pytest.mark.parametrize("text", ["0", "-1", "nan", "inf", "1e9", "soon"])
def test_a_timeout_that_is_none_is_refused(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JURYBOX_TIMEOUT", text)
    with pytest.raises(InputError, match=f"JURYBOX_TIMEOUT: `{text}` isn't a number of seconds"):
        http_options()


# ---- through a proxy


def test_socks_leads_to_a_secure_endpoint(trusted: Path) -> None:
    server, proxy = Secure(trusted), Socks(0, wants="me:p/w")
    said = ask("https://host.invalid/v1", server, trusting(trusted), proxy=proxy, user="me:p%2Fw@")
    assert said == "fine"
    # The name is looked up by the proxy.
    assert proxy.heads == ["host.invalid"]


def test_socks_that_refuses_a_password_is_named(trusted: Path) -> None:
    server, proxy = Secure(trusted), Socks(0, wants="me:p/w")
    said = ask("https://host.invalid/v1", server, trusting(trusted), proxy=proxy, user="me:geheim@")
    assert said.startswith("unreachable (the proxy: ")
    assert "geheim" not in said
    assert server.accepted == 0


@pytest.mark.parametrize(
    "address", ["ftp://me:geheim@host", "http://", "http://[geheim", "http://h:x"]
)
def test_a_proxy_that_is_none_is_refused_without_showing_it(address: str) -> None:
    options = HttpOptions(proxies=Proxies(https=address))
    with pytest.raises(InputError, match="the proxy's address") as caught:
        HttpClient("https://host.invalid/v1", {}, options=options)
    assert "geheim" not in str(caught.value)


def test_a_proxy_leads_through_to_a_secure_endpoint(trusted: Path) -> None:
    server, proxy = Secure(trusted), Tunnel(0)
    assert ask("https://host.invalid/v1", server, trusting(trusted), proxy=proxy) == "fine"
    (head,) = proxy.heads
    assert head.startswith("CONNECT host.invalid:443 HTTP/1.1\r\nHost: host.invalid:443\r\n")
    assert server.heads[0].startswith("POST /v1/x HTTP/1.1\r\n")
    assert "host: host.invalid\r\n" in server.heads[0]


def test_a_proxy_gets_its_password_and_the_endpoint_doesnt(trusted: Path) -> None:
    server, proxy = Secure(trusted), Tunnel(0, wants="me:p/w")
    assert (
        ask("https://host.invalid/v1", server, trusting(trusted), proxy=proxy, user="me:p%2Fw@")
        == "fine"
    )
    assert "Proxy-Authorization" in proxy.heads[0]
    assert "uthorization" not in server.heads[0]


def test_a_proxy_that_wants_a_password_is_told_apart(trusted: Path) -> None:
    server, proxy = Secure(trusted), Tunnel(0, wants="me:p/w")
    said = ask("https://host.invalid/v1", server, trusting(trusted), proxy=proxy, user="me:geheim@")
    assert said == "the proxy answers HTTP 407 (final)"
    assert server.accepted == 0


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (
            b"HTTP/1.1 502 Bad\r\nContent-Length: 0\r\n\r\n",
            "unreachable (the proxy refuses to connect) (again)",
        ),
        (b"SSH-2.0\r\n", "the answer isn't HTTP ("),
    ],
)
def test_a_proxy_that_does_something_else_is_told_apart(
    trusted: Path, answer: bytes, message: str
) -> None:
    proxy = Tunnel(0, answer=answer)
    assert ask(
        "https://host.invalid/v1", Secure(trusted), trusting(trusted), proxy=proxy
    ).startswith(message)


def test_the_certificate_behind_a_proxy_is_checked_too() -> None:
    path = certificate("DNS:localhost")
    server = Secure(path)
    said = ask("https://host.invalid/v1", server, trusting(path), proxy=Tunnel(0))
    assert "no secure connection: the certificate is for another host, " in said
    assert server.heads == []


def test_a_proxy_may_itself_be_secure(trusted: Path) -> None:
    server, proxy = Secure(trusted), Tunnel(0, context=serving(trusted))
    assert ask("https://host.invalid/v1", server, trusting(trusted), proxy=proxy) == "fine"
    assert (len(proxy.heads), len(server.heads)) == (1, 2)
