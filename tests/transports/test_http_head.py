"""The head of an HTTP request is read strictly."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hatchway.transports.http.head import Head, Refused, parse_head


def head(*lines: str) -> bytes:
    return "\r\n".join(lines).encode("latin-1")


def test_everything_a_request_says() -> None:
    parsed = parse_head(
        head(
            "POST /call?x=1 HTTP/1.1",
            "Host: a",
            "authorization:Bearer t ",
            "Content-Length: 007",
            "Expect: 100-Continue",
            "X-Other: \x09 anything \xff",
        )
    )
    assert parsed == Head(
        method="POST",
        path="/call?x=1",
        authorization=b"Bearer t",
        length=7,
        chunked=False,
        keep_alive=True,
        expects_continue=True,
    )


def test_http_1_0_needs_no_host_and_closes() -> None:
    parsed = parse_head(b"GET / HTTP/1.0")
    assert (parsed.keep_alive, parsed.length, parsed.authorization) == (False, None, b"")


@pytest.mark.parametrize("value", ["close", "Close", "te, close", "keep-alive,close"])
def test_connection_close(value: str) -> None:
    assert not parse_head(head("POST / HTTP/1.1", "Host: a", f"Connection: {value}")).keep_alive


def test_a_transfer_coding_is_seen() -> None:
    assert parse_head(head("POST / HTTP/1.1", "Host: a", "Transfer-Encoding: chunked")).chunked


@pytest.mark.parametrize(
    ("lines", "status", "message"),
    [
        ([""], 400, "the request line is malformed"),
        (["GET /"], 400, "the request line is malformed"),
        (["get / HTTP/1.1"], 400, "the request line is malformed"),
        (["GET  / HTTP/1.1"], 400, "the request line is malformed"),
        (["GET http://a/ HTTP/1.1"], 400, "the request line is malformed"),
        (["GET /\x00 HTTP/1.1"], 400, "the request line is malformed"),
        (["GET / HTTP/1.1 "], 400, "the request line is malformed"),
        (["GET / HTTP/2.0"], 505, "only HTTP/1.1 and HTTP/1.0 are spoken here"),
        (["GET / HTTP/1.1"], 400, "the Host header is missing"),
        (["GET / HTTP/1.1", "Host : a"], 400, "a header is malformed"),
        (["GET / HTTP/1.1", "Host: a", " folded"], 400, "a header is malformed"),
        (["GET / HTTP/1.1", "Host: a\nX: b"], 400, "a header is malformed"),
        (["GET / HTTP/1.1", "Host: a\x00"], 400, "a header is malformed"),
        (["GET / HTTP/1.1", ": a"], 400, "a header is malformed"),
        (["GET / HTTP/1.1", "Host: a", "host: b"], 400, "the host header comes twice"),
        (
            ["POST / HTTP/1.1", "Host: a", "Content-Length: 1", "Content-Length: 1"],
            400,
            "the content-length header comes twice",
        ),
        (["POST / HTTP/1.1", "Host: a", "Content-Length: -1"], 400, "Content-Length is not a number"),
        (["POST / HTTP/1.1", "Host: a", "Content-Length: 1_0"], 400, "Content-Length is not a number"),
        (["POST / HTTP/1.1", "Host: a", "Content-Length: " + "9" * 16], 400, "Content-Length is not a number"),
        (["POST / HTTP/1.1", "Host: a", "Content-Length: \xb2"], 400, "Content-Length is not a number"),
        (["POST / HTTP/1.1", "Host: a", "Expect: more"], 417, "the only known expectation is 100-continue"),
    ],
)
def test_what_is_not_certain_is_refused(lines: list[str], status: int, message: str) -> None:
    with pytest.raises(Refused) as e:
        parse_head(head(*lines))
    assert (e.value.status, e.value.message) == (status, message)


@given(st.binary(max_size=400))
def test_any_bytes_are_parsed_or_refused(raw: bytes) -> None:
    with suppress(Refused):
        assert parse_head(raw).path.startswith("/")
