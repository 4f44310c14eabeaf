"""Network rules: what a grant covers, and what it never does."""

from typing import Any

import pytest

from hatchway.core.errors import InvalidSetting, ToolDenied
from hatchway.core.grants import AllowedDomain
from hatchway.core.network import NetworkRules, target_of


def reach(rules: NetworkRules, url: str, method: str = "GET") -> str:
    try:
        return str(rules.check(method, url))
    except ToolDenied as e:
        return e.message


RULES = NetworkRules.of(
    ["github.com", ("api.example.org", ["GET", "HEAD"]), "*.wild.net", "ports.io:8443", "127.0.0.1:8000", "bücher.de"],
    denied=["bad.wild.net", "secret.github.com"],
)


@pytest.mark.parametrize(
    "url",
    [
        "https://github.com/x",
        "http://GitHub.com./x",
        "https://api.example.org",
        "https://a.wild.net",
        "https://a.b.wild.net",
        "https://ports.io:8443/",
        "http://127.0.0.1:8000/x",
        "https://xn--bcher-kva.de",
        "https://BÜCHER.de",
    ],
)
def test_allowed(url: str) -> None:
    assert RULES.check("GET", url)


@pytest.mark.parametrize(
    "url",
    [
        "https://github.com:8080",
        "https://sub.github.com",
        "https://github.com.evil.org",
        "https://evilgithub.com",
        "https://wild.net",
        "https://bad.wild.net",
        "https://bad.wild.net:443",
        "https://ports.io",
        "http://127.0.0.1",
        "http://127.0.0.1:8001",
        "ftp://github.com",
        "file:///etc/passwd",
        "//github.com",
        "github.com",
        "https://user@github.com",
        "https://github.com@evil.org",
        "https://github.com\\@evil.org",
        "https://evil.org\\.github.com",
        "https://github.com:99999",
        "https://git\thub.com",
        "https://github.com\r\nHost: evil.org",
        "https://[::1",
        "",
    ],
)
def test_refused(url: str) -> None:
    assert "refused" in reach(RULES, url)


def test_a_refusal_says_which_rule() -> None:
    assert reach(RULES, "https://bad.wild.net") == "https://bad.wild.net is refused: bad.wild.net is denied"
    assert reach(RULES, "https://api.example.org", "post") == (
        "POST https://api.example.org is refused: only GET, HEAD is allowed there"
    )
    assert reach(NetworkRules(), "https://x.org") == (
        "https://x.org is refused: it is not among the allowed domains (none)"
    )


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "10.0.0.1", "192.168.1.1", "172.16.0.1", "169.254.169.254", "::1", "fe80::1", "fd00::1", "0.0.0.0",
     "::ffff:127.0.0.1", "::ffff:10.0.0.1", "100.64.0.1", "224.0.0.1", "fd00:ec2::254", "::", "198.18.0.1",
     "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::a00:1", "2002:7f00:1::1", "2002:a00:1::", "::7f00:1",
     "2001:0:7f00:1::", "168.63.129.16", "100.100.100.200", "192.0.0.192", "255.255.255.255", "fec0::1", "ff02::1"],
)  # fmt: skip
def test_a_public_name_must_not_lead_to_a_private_address(address: str) -> None:
    with pytest.raises(ToolDenied, match="which is not a public address"):
        RULES.check_address(target_of("https://github.com"), address)


def test_a_literal_address_or_localhost_grants_itself() -> None:
    rules = NetworkRules.of(["127.0.0.1:8000", "localhost:9000", "10.1.2.3"])
    rules.check_address(target_of("http://127.0.0.1:8000"), "127.0.0.1")
    rules.check_address(target_of("http://localhost:9000"), "::1")
    rules.check_address(target_of("http://10.1.2.3"), "10.1.2.3")
    for url, address in [
        ("http://localhost:9000", "10.0.0.1"),
        ("http://127.0.0.1:8000", "127.0.0.2"),
        ("http://10.1.2.3", "169.254.169.254"),
    ]:
        with pytest.raises(ToolDenied, match="which is not a public address"):
            rules.check_address(target_of(url), address)
    with pytest.raises(ToolDenied):
        NetworkRules.of(["0.0.0.0"]).check_address(target_of("http://0.0.0.0"), "0.0.0.0")


def test_a_denied_address_is_denied_by_whatever_name_it_is_reached() -> None:
    rules = NetworkRules.of(["*.wild.net", "127.0.0.1:8000"], denied=["140.82.121.3", "127.0.0.1:8000"])
    with pytest.raises(
        ToolDenied, match=r"https://a\.wild\.net is refused: it resolves to 140\.82\.121\.3, which is denied"
    ):
        rules.check_address(target_of("https://a.wild.net"), "140.82.121.3")
    assert reach(rules, "http://127.0.0.1:8000") == "http://127.0.0.1:8000 is refused: 127.0.0.1:8000 is denied"


@pytest.mark.parametrize("method", ["CONNECT", "TRACE", "track", "", "GET /", "G\r\nX", "GÉT", "X" * 21])
def test_methods_that_are_never_sent(method: str) -> None:
    assert reach(RULES, "https://github.com", method) == (
        f"https://github.com is refused: {method!r} is not a method that can be sent"
    )


def test_public_addresses_pass() -> None:
    RULES.check_address(target_of("https://github.com"), "64:ff9b::8c52:7903")
    RULES.check_address(target_of("https://github.com"), "140.82.121.3")
    RULES.check_address(target_of("https://github.com"), "2606:50c0:8000::153")


@pytest.mark.parametrize(
    "bad",
    ["", "http://x.org", "x org", "x.org/path", "-x.org", "x..org", "a:b:c", "x.org:0", "*", "*.", "*.*.org", "x.*.org",
     "x.org:70000", "x@y.org", "256.1.1.1", "1.2.3", "[::1", "x.org#y", "a" * 64 + ".org", "x.org:http", "\n"],
)  # fmt: skip
def test_what_is_no_domain_is_refused(bad: str) -> None:
    with pytest.raises(InvalidSetting, match="is not a domain"):
        NetworkRules.of([bad])


@pytest.mark.parametrize(
    "bad", [5, None, b"x.org", (), ("x.org",), ("x.org", []), ("x.org", ()), ("x.org", [5]), ("x", "GET", 1)]
)
def test_what_has_none_of_the_three_forms_is_refused(bad: Any) -> None:
    with pytest.raises(InvalidSetting, match="is not a domain with methods"):
        NetworkRules.of([bad])


@pytest.mark.parametrize("bad", ["x.org", [("x.org", "GET")], [None]])
def test_denied_domains_are_names(bad: Any) -> None:
    with pytest.raises(InvalidSetting, match="denied_domains takes a list of domains"):
        NetworkRules.of([], bad)


def test_the_three_forms_are_one_and_normalised() -> None:
    forms = [
        "GitHub.COM.",
        (" github.com ", "get"),
        AllowedDomain("github.com", ("get", "Head")),
        "[::1]:80",
        "BÜCHER.de",
    ]
    assert NetworkRules.of(forms).domains() == (
        AllowedDomain("github.com"),
        AllowedDomain("github.com", ("GET",)),
        AllowedDomain("github.com", ("GET", "HEAD")),
        AllowedDomain("[::1]:80"),
        AllowedDomain("xn--bcher-kva.de"),
    )


def test_methods_must_be_methods() -> None:
    with pytest.raises(InvalidSetting, match="are not HTTP methods"):
        NetworkRules.of([("x.org", ["GET /"])])
