"""Errors on their way through the wall: Monty's become ours, those of tools become what the code can catch."""

from __future__ import annotations

import builtins
import re
from typing import Any, cast, get_args

import pydantic_monty as pm

from hatchway.core.errors import (
    CodeExecutionError,
    CodeLimitError,
    CodeRuntimeError,
    CodeSyntaxError,
    CodeTimeoutError,
    HatchwayError,
    SandboxCrashed,
    described,
)
from hatchway.core.limits import Limits
from hatchway.core.output import shortened

SUBSET = "this sandbox runs a subset of Python: write it in another way"
DEFECT = """\
a defect of the interpreter: write it in another way, the same code dies again; what it printed last may be missing"""
_SOURCE = re.compile(r'^  File "(?:<python-input-(\d+)>|action)"', re.MULTILINE)
_UNSUPPORTED = "The monty syntax parser does not yet support "
_NO_CALLBACK = "cannot suspend in this synchronous context"
"""A tool was handed to `map`, `sorted` or the like, which Monty runs in one go."""
_ONE_TEXT = "exceptions can only be called with zero or one string argument"
NO_SPACE = "[Errno 28] No space left on device"
"""Told to code that makes more files than it may."""
_KNOWN_INSIDE = frozenset(cast("tuple[str, ...]", get_args(pm.ExcType)))


def timeout(limits: Limits) -> CodeTimeoutError:
    """The action ran past its time."""
    return CodeTimeoutError(
        f"the code ran longer than {limits.wall_seconds:g} s", hint="raise Limits.wall_seconds, or let the code do less"
    )


def over(limit: str, message: str) -> CodeLimitError:
    """The action went over another limit."""
    return CodeLimitError(message, limit=limit, hint=f"raise Limits.{limit}, or let the code take less")


def over_value(limits: Limits, what: str) -> CodeLimitError:
    """A value from the code is too large."""
    return over("value_bytes", f"{what} takes more than {limits.value_bytes} bytes (Limits.value_bytes)")


def ended_in(error: BaseException, limits: Limits, *, feed: int, has_run: bool) -> HatchwayError:
    """What a failed turn of the machine means.

    Args:
        error: As Monty raised it.
        limits: Those of the action.
        feed: The number of the action in its session.
        has_run: The code got somewhere before: it cannot be an error of its syntax.
    """
    match error:
        case pm.MontyCrashedError(timed_out=True):
            return timeout(limits)
        case pm.MontyCrashedError() if "panicked" in str(error):
            return CodeRuntimeError(f"the interpreter died: {error}", hint=DEFECT)
        case pm.MontyCrashedError():
            return CodeRuntimeError(f"the interpreter died: {error}", hint="run the action again, or let it do less")
        case pm.MontySyntaxError():
            text = _traceback(error, feed)
            is_parsing = ", in " not in text and not has_run
            return CodeSyntaxError(text) if is_parsing else CodeRuntimeError(text)
        case pm.MontyRuntimeError():
            return _raised(error, limits, feed, has_run)
        case _:
            return SandboxCrashed(f"Monty failed: {type(error).__name__}: {error}", hint="run the action again")


def is_exit(error: BaseException) -> bool:
    """Whether the code ended itself by `raise SystemExit`, which is no failure."""
    return (
        isinstance(error, pm.MontyRuntimeError)
        and isinstance(error.exception(), SystemExit)
        and not error.display("msg")
    )


def _raised(error: pm.MontyRuntimeError, limits: Limits, feed: int, has_run: bool) -> CodeExecutionError:
    message = error.display("msg")
    match error.exception():
        case TimeoutError() if message.startswith("feed time limit exceeded"):
            return timeout(limits)
        case MemoryError() if "memory limit" in message:
            return over("memory_bytes", f"the code took more than {limits.memory_bytes} bytes of memory")
        case RuntimeError() if message.startswith("suspension limit"):
            return over("calls", f"the code stopped too often for its limit of {limits.calls} calls")
        case OSError() if message.startswith("disk write limit"):
            return over("disk_bytes", _traceback(error, feed))
        case OSError() if message == NO_SPACE:
            return over("disk_files", _traceback(error, feed))
        case NotImplementedError() if message.startswith(_UNSUPPORTED) and not has_run and len(error.traceback()) == 1:
            return CodeSyntaxError(_traceback(error, feed), hint=SUBSET)
        case NotImplementedError() if message.endswith(_NO_CALLBACK):
            return CodeRuntimeError(_traceback(error, feed), hint="call the tool in a loop or a comprehension instead")
        case RuntimeError() if message.endswith(_ONE_TEXT):
            return CodeRuntimeError(_traceback(error, feed), hint="give an exception one text: raise ValueError(f'…')")
        case _:
            return CodeRuntimeError(_traceback(error, feed))


def _traceback(error: pm.MontyRuntimeError | pm.MontySyntaxError, feed: int) -> str:
    """The traceback, with the action named as such; lines of an earlier action of the session are told apart."""

    def named(found: re.Match[str]) -> str:
        is_this = found[1] is None or int(found[1]) == feed
        return f'  File "{"<action>" if is_this else "<earlier action>"}"'

    return shortened(_SOURCE.sub(named, error.display("traceback")))


def raised_inside(error: BaseException) -> pm.ExternalSettledResult:
    """The error of a tool as the code sees it: builtin classes keep their class, all others become RuntimeError.

    Where the class cannot be kept, the message begins with its name. Whatever it is, `except Exception` catches it.
    """
    message = _message(error)
    for kind in type(error).__mro__:
        if kind is type(error) and _is_kept(kind):
            return _settled(kind.__name__, message)
        if type(error).__module__ == "builtins" and _is_kept(kind):
            return _settled(kind.__name__, f"{type(error).__name__}: {message}")
    return _settled("RuntimeError", f"{type(error).__name__}: {message}" if message else type(error).__name__)


def _is_kept(kind: type[Any]) -> bool:
    is_builtin = getattr(builtins, kind.__name__, None) is kind
    return is_builtin and issubclass(kind, Exception) and kind.__name__ in _KNOWN_INSIDE


def _message(error: BaseException) -> str:
    if isinstance(error, KeyError) and len(error.args) == 1 and isinstance(error.args[0], str):
        return error.args[0]  # its text is the repr of the key, and would be quoted once more inside
    return described(error)["message"]


def _settled(name: str, message: str) -> pm.ExternalSettledResult:
    return cast(
        pm.ExternalSettledResult,
        {"exc_type": name, "message": message.encode("utf-8", "backslashreplace").decode()},
    )
