"""A recording: an action with the calls it made and the answers it got, enough to run it again to where it stood."""

from __future__ import annotations

import builtins
import hashlib
import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hatchway.core.calls import FunctionCall, FunctionSignature
from hatchway.core.errors import ToolDenied, ToolError
from hatchway.core.limits import Limits
from hatchway.core.values import to_wire


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedCall:
    """A call the code made."""

    call: FunctionCall
    """As it was handed out; what a rule hides reads `[redacted]`."""
    identity: str
    """What tells it from others: a keyed digest of its name and arguments."""
    answers: int
    """How many answers the code had when it made the call."""
    trail: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What the backend said about the way to it, see `CodeExecution.trail`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedAnswer:
    """An answer the code got."""

    call_id: str
    value: Any = None
    error: BaseException | None = None
    """Raised at the call instead of a value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """An action from its start to where it stood. Without calls it is an action that has not begun."""

    code: str
    functions: Sequence[FunctionSignature | str] = ()
    inputs: Mapping[str, Any] = field(default_factory=dict[str, Any])
    limits: Limits = field(default_factory=Limits)
    seed: bytes
    """256 secret bits. What a guest draws from is derived from them; they never enter a sandbox."""
    facts: Mapping[str, str] = field(default_factory=dict[str, str])
    """What the backend must have again, see `CodeSandbox.facts`."""
    calls: Sequence[RecordedCall] = ()
    """In the order in which the code made them."""
    answers: Sequence[RecordedAnswer] = ()
    """In the order in which the code got them."""
    printed: Mapping[str, int] = field(default_factory=dict[str, int])
    """Characters of `stdout` and `stderr` that were told already: they are not told again."""
    ran: float = 0.0
    """Seconds it had run; running it again has an allowance of its own."""


def identity(call: FunctionCall, seed: bytes) -> str:
    """What tells a call from others: equal for equal names and arguments, and only the seed's owner can tell."""
    kwargs = {name: call.kwargs[name] for name in sorted(call.kwargs)} if len(call.kwargs) > 1 else dict(call.kwargs)
    known = to_wire([call.function_name, list(call.args), kwargs])
    return hmac.digest(seed, known, "sha256").hex()[:32]


def guest_seed(seed: bytes, action: int = 0) -> bytes:
    """What a guest draws its randomness from, per action of a session."""
    return hashlib.blake2b(b"guest %d" % action, key=seed, digest_size=32).digest()  # OpenSSL is slow to wake up


def told_error(error_type: str, message: str) -> BaseException:
    """An error that is told to the code as one of this type was."""
    own: dict[str, type[Exception]] = {"ToolError": ToolError, "ToolDenied": ToolDenied}
    known = own.get(error_type) or getattr(builtins, error_type, None)
    if isinstance(known, type) and issubclass(known, Exception):
        try:
            return known(message)
        except Exception:
            pass  # a builtin that wants more than a message
    return type(error_type, (Exception,), {})(message)
