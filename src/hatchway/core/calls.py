"""Calls: what leaves the code, and the signatures it may call."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from hatchway.core.errors import InvalidSetting


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionCall:
    """One use of a tool by the code, stopped at the wall until it is answered."""

    call_id: str
    """Unique within its execution; stable over dump and restore."""
    function_name: str
    """As the code spelled it. The gate decides whether such a tool exists."""
    args: tuple[Any, ...] = ()
    """Positional arguments, copied."""
    kwargs: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Keyword arguments, copied. Once a call passed the gate all its arguments are here."""


def function_call(call_id: str, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> FunctionCall:
    """A `FunctionCall`, made without the front door of a frozen class: every call of every run passes here twice."""
    call = _new(FunctionCall)
    _set_id(call, call_id)
    _set_name(call, name)
    _set_args(call, args)
    _set_kwargs(call, kwargs)
    return call


_new = object.__new__
_set_id, _set_name, _set_args, _set_kwargs = (
    FunctionCall.__dict__[name].__set__ for name in ("call_id", "function_name", "args", "kwargs")
)


@dataclass(frozen=True, slots=True)
class Waiting:
    """The code cannot go on until one of `pending` is answered."""

    pending: tuple[FunctionCall, ...]
    """Every call that has no answer yet, oldest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionSignature:
    """A tool as the code sees it: its name, its style, and its typed text."""

    name: str
    """The name in the code; dots make a namespace (`server.tool`)."""
    parameters: inspect.Signature | None = None
    """Names, kinds and defaults of the parameters; None takes any arguments."""
    is_async: bool = False
    """True: called `await f(x)`. False: called `f(x)`."""
    stub: str = ""
    """The `def` or `async def` text with types and docstring; empty for a bare name."""


CallState = Literal["started", "done", "failed", "denied", "pending", "in_doubt"]
"""The life of a call, as the journal and errors tell it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRecord:
    """What became of one call."""

    call: FunctionCall
    """The call with its arguments bound to the tool's parameters."""
    state: CallState
    """How far it got."""
    value: Any = None
    """What the tool returned, when `state` is done."""
    error: str = ""
    """The error text the code saw, when `state` is failed or denied."""
    seconds: float = 0.0
    """How long the tool ran."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallContext:
    """What a tool may know about the call it serves; a tool takes it by annotating a parameter with it."""

    run_id: str
    """The run the call belongs to."""
    call_id: str
    """The call within the run."""
    idempotency_key: str
    """The same for every attempt at this call: hand it to services that deduplicate."""
    deadline: float | None
    """`time.monotonic()` value at which the call's timeout strikes; None without a timeout."""
    approved: bool = False
    """Whether somebody was asked about this very call and allowed it."""


def pending_id(call_id: str | None, pending: Collection[str]) -> str:
    """The id of the call an answer is for; it may be left out when exactly one is pending.

    Raises:
        InvalidSetting: No such call, or several and no `call_id`.
    """
    if call_id is None:
        if len(pending) != 1:
            raise InvalidSetting(f"{len(pending)} calls are pending: say which by call_id")
        return next(iter(pending))
    if call_id not in pending:
        raise InvalidSetting(f"no pending call {call_id!r}", hint=f"pending are {', '.join(pending) or 'none'}")
    return call_id


def no_such_call(strangers: Iterable[str], pending: Collection[str], *, where: str = "") -> InvalidSetting:
    """The error for a decision about calls that do not wait.

    Args:
        strangers: What was decided about.
        pending: What waits.
        where: What tells more of those that wait.
    """
    told = "decide about one of these" if pending else "resume without decisions: nothing waits for one"
    return InvalidSetting(
        f"{', '.join(strangers)}: no such pending call; pending are {', '.join(pending) or 'none'}",
        hint=f"{told}; {where}" if where and pending else told,
    )


def as_signature(function: FunctionSignature | str) -> FunctionSignature:
    """A bare name is a sync function of any arguments."""
    return FunctionSignature(name=function) if isinstance(function, str) else function


def as_code(code: str) -> str:
    """The code of an action, which must be text.

    Raises:
        TypeError: It is something else.
    """
    if not isinstance(code, str):
        raise TypeError(f"code must be a str, not {type(code).__name__}")
    return code
