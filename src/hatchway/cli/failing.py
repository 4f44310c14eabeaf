"""Failing: what went wrong, in words a person can do something with; whatever a vendor's library raises is told so."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast
from urllib.parse import urlsplit

import click

from hatchway.core.errors import HatchwayError

TIME_HINT = 'say it again; "timeout" in "model-settings" of .hatchway/config.json is how many seconds it may take'
VENDOR = {
    "ModelAuthenticationError": ("the vendor refuses the key", "set another key, or name another model with --model"),
    "ModelNotFoundError": ("the vendor has no such model", "name another with --model, or with /model at the prompt"),
    "ModelContextWindowExceededError": ("it is too long for the model", "say it shorter, or start anew: hatchway"),
    "ModelQuotaExceededError": ("the vendor's account has nothing left", "see the account, or name another model"),
    "ModelRateLimitError": ("the vendor limits the rate", "wait a while and say it again"),
    "ModelUnavailableError": ("the vendor cannot answer just now", "wait a while and say it again"),
    "ModelServerError": ("the vendor failed", "wait a while and say it again"),
    "ModelTimeoutError": ("the vendor did not answer in time", TIME_HINT),
    "ModelRequestTimeout": ("the vendor did not answer in time", TIME_HINT),
    "ModelConnectionError": (
        "the vendor cannot be reached",
        "see that the network or the server is up, and say it again",
    ),
    "ModelRequestRejectedError": ("the vendor refuses the request", "say it otherwise, or name another model"),
    "ModelAPIError": ("the vendor failed", "say it again, or name another model"),
}
"""By the names Pydantic AI gives them, the narrow before the wide: what happened, and what to do."""


def failure_text(error: Exception) -> str:
    """An error as a person is told it; not neutral yet."""
    if isinstance(error, HatchwayError):
        return str(error)
    if isinstance(error, click.ClickException):
        return error.format_message()
    if (words := vendor_words(error)) is not None:
        return "\n".join(words)
    return f"{type(error).__name__}: {error}"


def vendor_words(error: Exception) -> tuple[str, str] | None:
    """What happened and what to do, of an error of a vendor; None: it is none."""
    names = _names(error)
    for name, (what, hint) in VENDOR.items():
        if name in names:
            status = getattr(error, "status_code", None)
            return f"{what}{f' ({status})' if status else ''}{_where(error)}: {_said(error)}", hint
    return None


def _where(error: Exception) -> str:
    """The server that could not be reached, as the vendor's library knows it; without a path, which may hold a key."""
    request = getattr(error.__cause__, "request", None) if "ModelConnectionError" in _names(error) else None
    try:
        parts = urlsplit(str(getattr(request, "url", "")))
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return ""
    return f" at {parts.scheme}://{parts.hostname}{port}" if parts.hostname else ""


def _names(error: Exception) -> set[str]:
    return {each.__name__ for each in type(error).__mro__}


def _said(error: Exception) -> str:
    """What the vendor itself says about it."""
    body: Any = getattr(error, "body", None)
    for _ in range(2):  # some put it into an "error" of its own
        if isinstance(body, Mapping):
            told = cast("Mapping[str, Any]", body)
            if isinstance(told.get("message"), str):
                return str(told["message"])
            body = told.get("error")
    return body if isinstance(body, str) and body else str(getattr(error, "message", "") or error)
