"""Proxies: none unless told, none for this machine."""

import pytest

from jurybox.models.connections import Proxies

PROXY = "http://proxy.example:3128"


def test_there_is_none_unless_told() -> None:
    assert Proxies().to("https", "api.example.com", 443) is None
    assert Proxies.from_environment({}).to("https", "api.example.com", 443) is None


def test_the_scheme_of_the_endpoint_decides() -> None:
    proxies = Proxies.from_environment({"https_proxy": PROXY})
    assert proxies.to("https", "api.example.com", 443) == PROXY
    assert proxies.to("http", "api.example.com", 443) is None


@pytest.mark.parametrize("name", ["all_proxy", "ALL_PROXY", "HTTPS_PROXY", "https_proxy"])
def test_variables_are_read_in_both_spellings(name: str) -> None:
    assert Proxies.from_environment({name: PROXY}).to("https", "api.example.com", 443) == PROXY


def test_small_letters_win_and_empty_ones_count_as_not_set() -> None:
    both = {"https_proxy": PROXY, "HTTPS_PROXY": "http://other"}
    assert Proxies.from_environment(both).to("https", "h", 443) == PROXY
    empty = {"https_proxy": "", "HTTPS_PROXY": PROXY}
    assert Proxies.from_environment(empty).to("https", "h", 443) == PROXY


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.0.0.9", "::1", "a.localhost"])
def test_this_machine_is_reached_directly(host: str) -> None:
    assert Proxies(http=PROXY, https=PROXY).to("http", host, 443) is None


@pytest.mark.parametrize(
    ("entry", "host", "direct"),
    [
        ("example.com", "example.com", True),
        ("example.com", "api.example.com", True),
        (".example.com", "api.example.com", True),
        ("*.example.com", "api.example.com", True),
        ("EXAMPLE.com", "example.com", True),
        ("example.com", "badexample.com", False),
        ("10.0.0.0/8", "10.1.2.3", True),
        ("10.0.0.0/8", "11.1.2.3", False),
        ("10.1.2.3", "10.1.2.3", True),
        ("", "example.com", False),
        ("example.com:443", "example.com", True),
        ("example.com:443", "api.example.com", True),
        ("example.com:8443", "example.com", False),
        ("10.1.2.3:443", "10.1.2.3", True),
        ("10.1.2.3:8443", "10.1.2.3", False),
        ("2001:db8::1", "2001:db8::1", True),
        ("[2001:db8::1]:443", "2001:db8::1", True),
        ("[2001:db8::1]:8443", "2001:db8::1", False),
        ("2001:db8::/32", "2001:db8::1", True),
        (":443", "example.com", False),
    ],
)
def test_hosts_may_be_left_out(entry: str, host: str, *, direct: bool) -> None:
    proxies = Proxies.from_environment({"all_proxy": PROXY, "no_proxy": f"other, {entry}"})
    assert (proxies.to("https", host, 443) is None) is direct


def test_a_star_leaves_out_every_host() -> None:
    proxies = Proxies.from_environment({"all_proxy": PROXY, "no_proxy": "*"})
    assert proxies.to("https", "example.com", 443) is None
