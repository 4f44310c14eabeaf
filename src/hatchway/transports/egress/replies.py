"""What the proxy writes back: the reply of the other side, or an error whose reason the code sees."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from hatchway.transports.egress.client import Headers
from hatchway.transports.egress.fetch import split_headers
from hatchway.transports.egress.forms import HOP_BY_HOP

REFUSED, FAILED = "x-hatchway-refused", "x-hatchway-failed"
"""The header that says why a request was refused by a rule, or failed."""
MAX_REASON = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A response to be written to the guest."""

    status: int
    headers: Headers = ()
    """Without those that frame the body."""
    body: bytes = b""
    reason: str = ""
    """The reason phrase: what most clients put into their error."""
    length: str | None = None
    """Content-Length of the answer to HEAD, which has no body."""


def error(status: int, why: str, header: str = FAILED) -> Answer:
    """An error that says why in its reason phrase, in a header and in its body."""
    line = "".join(c if " " <= c <= "~" else "?" for c in why.replace("\n", " "))[:MAX_REASON]
    headers = ((header, line), ("content-type", "text/plain; charset=utf-8"))
    return Answer(status=status, headers=headers, body=why.encode("utf-8", "replace") + b"\n", reason=line)


def answer(value: Any) -> Answer:
    """The answer that a value of `fetch` stands for.

    Raises:
        ValueError: The value is no such thing; a tool of the host's own may have made it.
    """
    try:
        status, headers, body = int(value["status"]), split_headers(value["headers"]), bytes(value["body"])
    except (TypeError, KeyError, AttributeError, ValueError) as e:
        raise ValueError("fetch gave no reply: it must return status, headers and body") from e
    if not 200 <= status <= 599:
        raise ValueError(f"fetch gave the status {status}")
    kept = [(name, value) for name, value in headers if name.lower() not in HOP_BY_HOP]
    length = next((value for name, value in headers if name.lower() == "content-length"), None)
    return Answer(status=status, headers=kept, body=body, reason=_phrase(status), length=length)


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""
