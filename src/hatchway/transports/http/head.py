"""The head of an HTTP/1.1 request, read strictly: what is not certain is refused."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

MAX_HEAD_BYTES = 16 * 1024
"""Bytes a request line and its headers may take."""

REASONS = {
    200: "OK",
    202: "Accepted",
    400: "Bad Request",
    401: "Unauthorized",
    404: "Not Found",
    405: "Method Not Allowed",
    408: "Request Timeout",
    409: "Conflict",
    410: "Gone",
    411: "Length Required",
    413: "Content Too Large",
    417: "Expectation Failed",
    431: "Request Header Fields Too Large",
    500: "Internal Server Error",
    501: "Not Implemented",
    503: "Service Unavailable",
    505: "HTTP Version Not Supported",
}
"""Every status this server answers with."""

_REQUEST_LINE = re.compile(rb"([A-Z]{1,16}) (/[!-~]*) HTTP/([0-9])\.([0-9])")
_HEADER = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\t\x20-\x7e\x80-\xff]*)")
_LENGTH = re.compile(rb"[0-9]{1,15}")
_ONCE = (b"authorization", b"connection", b"content-length", b"expect", b"host", b"transfer-encoding")


class Refused(Exception):
    """A request is not served; the client is told the status and the reason as JSON."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message

    def body(self) -> bytes:
        """The reason, in the form of every other answer."""
        return json.dumps({"error": {"type": REASONS[self.status], "message": self.message}}).encode("ascii")


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """What a request says before its body."""

    method: str
    """Upper case, as sent."""
    path: str
    """As sent, with whatever query it has."""
    authorization: bytes
    """The header's value; empty when there is none."""
    length: int | None
    """Bytes of the body; None when the request does not say."""
    chunked: bool
    """The body has a transfer coding: its length is not known in advance."""
    keep_alive: bool
    """The client wants to use the connection again."""
    expects_continue: bool
    """The client waits for `100 Continue` before it sends the body."""


def parse_head(raw: bytes) -> Head:
    """Read everything up to, and without, the empty line.

    Raises:
        Refused: It is not a well-formed head, or says one thing twice.
    """
    request_line, *lines = raw.split(b"\r\n")
    parts = _REQUEST_LINE.fullmatch(request_line)
    if parts is None:
        raise Refused(400, "the request line is malformed")
    if parts[3] != b"1":
        raise Refused(505, "only HTTP/1.1 and HTTP/1.0 are spoken here")
    headers = _parse_headers(lines)
    is_old = parts[4] == b"0"
    if not is_old and b"host" not in headers:
        raise Refused(400, "the Host header is missing")
    return Head(
        method=parts[1].decode("ascii"),
        path=parts[2].decode("ascii"),
        authorization=headers.get(b"authorization", b""),
        length=_parse_length(headers.get(b"content-length")),
        chunked=b"transfer-encoding" in headers,
        keep_alive=not is_old and not _says_close(headers.get(b"connection", b"")),
        expects_continue=_parse_expectation(headers.get(b"expect")),
    )


def _parse_headers(lines: list[bytes]) -> dict[bytes, bytes]:
    headers: dict[bytes, bytes] = {}
    for line in lines:
        parts = _HEADER.fullmatch(line)
        if parts is None:
            raise Refused(400, "a header is malformed")
        name = parts[1].lower()
        if name in headers and name in _ONCE:
            raise Refused(400, f"the {name.decode('ascii')} header comes twice")
        headers[name] = parts[2].rstrip(b" \t")
    return headers


def _parse_length(value: bytes | None) -> int | None:
    if value is None:
        return None
    if _LENGTH.fullmatch(value) is None:
        raise Refused(400, "Content-Length is not a number")
    return int(value)


def _says_close(value: bytes) -> bool:
    return any(option.strip() == b"close" for option in value.lower().split(b","))


def _parse_expectation(value: bytes | None) -> bool:
    if value is not None and value.lower() != b"100-continue":
        raise Refused(417, "the only known expectation is 100-continue")
    return value is not None
