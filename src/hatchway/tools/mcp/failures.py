"""Why a server cannot be had, or refused a call, in words that say what to do."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, cast
from urllib.parse import urlsplit

from mcp.shared.exceptions import MCPError
from mcp.types import CONNECTION_CLOSED, PARSE_ERROR
from pydantic import ValidationError

from hatchway.core.errors import HatchwayError, ServerUnavailable
from hatchway.tools.mcp.settings import ServerSettings, StdioSettings

ASKS_BACK = "the server wants to ask a person or a model, which code cannot answer"
_WANTS_TO_ASK = re.compile("elicitation|sampling|roots", re.I)
_HUNG_UP = ("Connection closed", "SSE stream ")
"""How the SDK begins what it says itself of a connection that ended."""
_CANNOT = re.compile("not supported|no back-channel", re.I)


def unavailable(
    name: str, settings: ServerSettings, error: BaseException, heard: str, hint: str = ""
) -> ServerUnavailable:
    """The error that says why a server cannot be had.

    Args:
        name: Of the server.
        settings: Its entry.
        error: What the SDK raised; groups are looked into.
        heard: What the server itself said last.
        hint: What to do about it, where that is known.
    """
    own = next((each for each in _leaves(error) if isinstance(each, HatchwayError)), None)
    if isinstance(own, ServerUnavailable):
        return own
    if own is not None:
        named = own.message.startswith(f"MCP server {name!r}")
        return ServerUnavailable(own.message if named else f"MCP server {name!r}: {own.message}", hint=own.hint)
    what = f"the command {settings.command!r}" if isinstance(settings, StdioSettings) else _public(settings.url)
    if any(isinstance(each, TimeoutError) for each in _leaves(error)):
        why = f"no answer within {settings.connect_timeout:g} s"
        hint = hint or f'set "connect_timeout" of server {name!r} if it is slow to start'
    else:
        why = "" if heard else reason(error)
        if isinstance(settings, StdioSettings):
            hint = hint or f"run the command of server {name!r} in a shell to see why"
    told = "; ".join(part for part in (why, heard) if part)
    return ServerUnavailable(f"MCP server {name!r} ({what}) cannot be reached: {told}", hint=hint)


def all_of(errors: Sequence[ServerUnavailable]) -> ServerUnavailable:
    """One error for all servers that cannot be had, each with what to do about it."""
    if len(errors) == 1:
        return errors[0]
    told = "\n".join(f"- {str(each).replace(chr(10), f'{chr(10)}  ')}" for each in errors)
    return ServerUnavailable(
        f"{len(errors)} MCP servers cannot be had:\n{told}",
        hint='with "optional": true in its entry a server is done without, with "disabled": true it is left out',
    )


def _public(url: str) -> str:
    """An address without what may be a secret in it: keys are put into queries."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def reason(error: BaseException) -> str:
    """The errors at the leaves of a group, each once, in one line."""
    return "; ".join(dict.fromkeys(map(_said, _leaves(error))))


def is_hung_up(error: MCPError) -> bool:
    """Whether the connection ended; the number alone does not tell, for servers give it errors of their own."""
    return error.code == CONNECTION_CLOSED and str(error).startswith(_HUNG_UP)


def refusal(error: Exception) -> str:
    """What the code is told about a call the server or the SDK refused."""
    if isinstance(error, MCPError):
        if _WANTS_TO_ASK.search(str(error)) and _CANNOT.search(str(error)):
            return f"{ASKS_BACK}: {error}"
        if error.code == PARSE_ERROR:
            return _said(error)
        return f"the server refused the call: {_said(error)}"
    return reason(error)


def _said(error: BaseException) -> str:
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_input=False)[0]
        return f"its answer is not what MCP says: {'.'.join(map(str, first['loc']))}: {first['msg']}"
    said = re.sub(r": \d+ validation errors? for .*", "", str(error), flags=re.S).strip()  # pydantic's, for developers
    return said or type(error).__name__


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for each in cast(Any, error).exceptions:
            yield from _leaves(each)
    else:
        yield error
