"""Addresses taken apart, and the requests that are written for them."""

import pytest

from jurybox.errors import InputError
from jurybox.models.wire.address import Address, read_address
from jurybox.models.wire.requests import Requests, read_proxy


def head(to: str, proxy: str | None = None, **headers: str) -> list[str]:
    requests = Requests(read_address(to), read_proxy(proxy), headers)
    written = requests.write("POST", "/chat", b"{}", "application/json")
    return written.decode("latin-1").split("\r\n")


@pytest.mark.parametrize(
    ("url", "line", "host"),
    [
        ("http://host", "POST /chat HTTP/1.1", "host"),
        ("http://HOST:80/v1", "POST /v1/chat HTTP/1.1", "host"),
        ("http://host:8080/v1", "POST /v1/chat HTTP/1.1", "host:8080"),
        ("https://host:443/v1", "POST /v1/chat HTTP/1.1", "host"),
        ("https://host:80/v1", "POST /v1/chat HTTP/1.1", "host:80"),
        ("http://[::1]:8080/v1", "POST /v1/chat HTTP/1.1", "[::1]:8080"),
        (
            "http://bücher.example/ä b%20c",
            "POST /%C3%A4%20b%20c/chat HTTP/1.1",
            "xn--bcher-kva.example",
        ),
    ],
)
def test_a_request_names_its_path_and_its_host(url: str, line: str, host: str) -> None:
    lines = head(url)
    assert lines[:2] == [line, f"Host: {host}"]


def test_a_request_says_how_long_its_body_is() -> None:
    assert head("http://host")[-3:] == ["Content-Length: 2", "", "{}"]


def test_a_name_and_a_password_become_a_header() -> None:
    assert "Authorization: Basic bWU6cC93w6Q=" in head("http://me:p%2Fwä@host/v1")
    assert "Authorization: Basic bWU6" in head("http://me@host/v1")


def test_a_key_that_is_given_counts_more_than_an_address() -> None:
    lines = head("http://me:word@host/v1", authorization="Bearer key")
    assert [line for line in lines if "uthorization" in line] == ["authorization: Bearer key"]


def test_a_plain_proxy_is_told_the_whole_address_and_the_password_for_it() -> None:
    lines = head("http://host:8080/v1", "http://me:word@proxy:3128")
    assert lines[:2] == ["POST http://host:8080/v1/chat HTTP/1.1", "Host: host:8080"]
    assert "Proxy-Authorization: Basic bWU6d29yZA==" in lines


def test_who_is_led_through_tells_the_endpoint_nothing_of_the_proxy() -> None:
    lines = head("https://host/v1", "http://me:word@proxy:3128")
    assert lines[0] == "POST /v1/chat HTTP/1.1"
    assert not [line for line in lines if line.startswith("Proxy")]


def test_a_header_can_not_become_two() -> None:
    with pytest.raises(InputError) as caught:
        head("http://host", key="secret\r\nHost: other")
    assert "secret" not in str(caught.value)


def test_a_proxy_without_a_scheme_is_spoken_to_plainly() -> None:
    found = read_proxy("proxy:3128")
    assert found is not None
    assert (found.scheme, found.netloc) == ("http", "proxy:3128")


@pytest.mark.parametrize(
    "url", ["socks5://me:word@host:1", "http://", "http://host:word", "http://a b"]
)
def test_a_proxy_that_can_not_be_used_is_refused_without_showing_it(url: str) -> None:
    with pytest.raises(InputError) as caught:
        read_proxy(url)
    assert "word" not in str(caught.value)


def test_an_address_does_not_show_what_is_secret() -> None:
    address = read_address("http://me:word@host/v1/word?word")
    assert "word" not in repr(address)
    assert isinstance(address, Address)
    assert "word" in address.secrets
