"""Failures: what an error of a vendor's SDK means, and what is done about it."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterable
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from json import JSONDecodeError
from typing import Literal

from pydantic import ValidationError

from hatchway.core.errors import HatchwayError, InvalidSetting, SandboxUnavailable, TransportError
from hatchway.hosted.code import Provider
from hatchway.trace.text import cut, neutral

FailureKind = Literal["gone", "busy", "setting", "refused", "unreachable", "broken"]
"""A container that is gone, a vendor to be asked again, a wrong request, a key that is not good, nobody there, an
answer that broke off or cannot be read."""
FIRST_WAIT = 0.5
"""Seconds before the first retry where the vendor names no time; doubled each time."""
LONGEST_WAIT = 30.0
"""Seconds; a vendor that asks for more is asked again after this."""
LONGEST_MESSAGE = 1000
"""Characters of a vendor's words in an error: they are a stranger's, and a proxy may answer with a whole page."""
MOST_READ = 4000
"""Characters of a vendor's words that are searched for what they mean: a pattern over megabytes takes too long."""
HTTP_LIBRARIES = frozenset({"httpx", "httpx2", "aiohttp"})
"""An SDK speaks through whichever of them is installed, and lets its errors through."""
_THERE = "check that the model, file or container it names is still there"
_SETTINGS = {404: _THERE, 410: _THERE, 413: "send less: fewer or smaller files, or a new session"}
"""What to do about a request that is refused, by its status."""
_MISSING = re.compile(r"found|no such|not exist|deleted|expired|no longer|unknown", re.I)


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """What an error of an SDK means."""

    kind: FailureKind
    message: str
    """What the vendor says of it, fit to be shown."""
    status: int | None = None
    """The HTTP status; None when there was no response."""
    retry_after: float | None = None
    """Seconds the vendor asks to wait."""
    request_id: str | None = None
    is_sure: bool = True
    """False: it may be a failure of the moment, so that it is asked once more before a container is given up."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "message", neutral(cut(self.message, LONGEST_MESSAGE)))

    def is_passing(self, attempt: int, retries: int) -> bool:
        """Whether the same request is made again."""
        if self.kind == "gone":
            return not self.is_sure and attempt == 1 and retries > 0
        return self.kind in ("busy", "unreachable") and attempt <= retries

    def misses(self, file_ids: Iterable[str]) -> set[str]:
        """Those of the files the vendor says it does not have: what it names, or all where it speaks of files only."""
        if self.kind not in ("setting", "gone") or not (self.status in (404, 410) or _MISSING.search(self.message)):
            return set()
        every = set(file_ids)
        named = {each for each in every if re.search(rf"(?<!\w){re.escape(each)}(?!\w)", self.message)}
        words = self.message.lower()
        return named or (every if "file" in words and "container" not in words else set())

    def wait(self, attempt: int) -> float:
        """Seconds to wait before the next attempt."""
        wait = FIRST_WAIT * 2 ** (attempt - 1) if self.retry_after is None else self.retry_after
        return min(max(wait, 0.0), LONGEST_WAIT)

    def error(self, provider: Provider) -> HatchwayError:
        """The failure as an error of ours."""
        where = f" (request {self.request_id})" if self.request_id else ""
        said = f"{provider}: {f'HTTP {self.status}: ' if self.status else ''}{self.message}{where}"
        match self.kind:
            case "setting":
                return InvalidSetting(
                    said, hint=_SETTINGS.get(self.status or 0, "change the request as the vendor says")
                )
            case "refused":
                return SandboxUnavailable(said, hint=f"check the {provider} API key and what it may do")
            case "gone":
                return SandboxUnavailable(said, hint="the container is gone with its files: ask again in a new session")
            case "busy":
                return SandboxUnavailable(said, hint="wait and ask again, or raise retries=")
            case "unreachable":
                return TransportError(said, hint="check the network and base_url, then ask again")
            case "broken":
                return TransportError(said, hint="ask again; the session is as it was before")


def seconds(told: str | None) -> float | None:
    """What a `Retry-After` asks for: a number, with or without its unit, or a date; None: it says nothing of use."""
    if told is None:
        return None
    try:
        wait = float(told.removesuffix("s"))
    except ValueError:
        try:
            wait = parsedate_to_datetime(told).timestamp() - time.time()
        except (ValueError, OverflowError):
            return None
    return None if math.isnan(wait) else max(wait, 0.0)


def unreachable(error: BaseException) -> Failure:
    """Nobody there, or nobody any more; of an error without words (a connection that was reset) its class tells it."""
    cause = error.__cause__ or error
    kind = type(cause).__name__
    told = "it did not answer in time" if "Timeout" in kind else "the connection broke off"
    return Failure(kind="unreachable", message=str(cause) or f"{told} ({kind})")


def transport_failure(error: Exception) -> Failure | None:
    """An error of the HTTP library below an SDK, or about an answer it could not read; None: neither."""
    libraries = {kind.__module__.partition(".")[0] for kind in type(error).__mro__}
    if libraries & HTTP_LIBRARIES:
        return unreachable(error)
    if isinstance(error, ValidationError | JSONDecodeError | UnicodeDecodeError):
        first = str(error).partition("\n")[0]
        return Failure(kind="broken", message=f"it sent something that cannot be read: {first:.200}")
    return None
