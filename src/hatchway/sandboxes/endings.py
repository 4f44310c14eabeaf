"""How an action in a guest ended: what the guest told, or what its death tells, as a result or one of our errors."""

from __future__ import annotations

from typing import Any

from hatchway.core.errors import (
    CodeExecutionError,
    CodeLimitError,
    CodeRuntimeError,
    CodeSyntaxError,
    CodeTimeoutError,
    HatchwayError,
    SandboxCrashed,
)
from hatchway.core.results import Display, ExecutionResult, Tier, Usage, pictures
from hatchway.core.transport import Failed
from hatchway.sandboxes.guest_process import Death

ON_THE_HOSTS_DISK: tuple[Tier, ...] = ("landlock", "process")
"""Where no file system of their own holds the files of the code: what it writes is watched, never refused."""

KILLED = "if the code did not kill itself, the machine had no memory left: see `free -m`, or lower Limits.memory_bytes"


def completed(
    output: Any, printed: tuple[str, str], shown: tuple[Display, ...], usage: Usage, tier: Tier
) -> ExecutionResult:
    """The result of an action; `printed` is what it wrote to stdout and stderr."""
    stdout, stderr = printed
    return ExecutionResult(
        output=output,
        stdout=stdout,
        stderr=stderr,
        images=pictures(shown),
        displays=shown,
        usage=usage,
        tier=tier,
    )


def late(seconds: float) -> CodeTimeoutError:
    """The error of an action whose time is over."""
    hint = "raise Limits.wall_seconds, or let the code do less"
    return CodeTimeoutError(f"the code ran longer than {seconds:g} s", hint=hint)


def failure(failed: Failed, tier: Tier) -> CodeExecutionError:
    """The error of an action whose guest told why it failed; `tier` is the wall around it."""
    match failed.kind:
        case "syntax":
            return CodeSyntaxError(failed.message)
        case "runtime" | "value":
            return CodeRuntimeError(failed.message)
        case "memory":
            return over("memory_bytes", failed.message)
        case "disk_bytes" | "disk_files" if tier in ON_THE_HOSTS_DISK:
            return CodeRuntimeError(failed.message, hint="the host's disk is full: see `df`, or set TMPDIR to another")
        case "value_bytes" | "processes" | "open_files" | "file_bytes" | "disk_bytes" | "disk_files" as limit:
            return over(limit, failed.message)


def died(death: Death, *, is_silent: bool) -> HatchwayError:
    """The error of an action whose guest died; `is_silent` when it was killed for having closed its channel."""
    if death.is_crash:
        return SandboxCrashed("the process that supervises the code died", hint="run the action again")
    if death.limit:
        return over(death.limit, f"the code went over its limit of {death.limit}")
    if is_silent and death.signal == "SIGKILL":
        return CodeRuntimeError("the code closed its channel to the host")
    hint = KILLED if death.signal == "SIGKILL" else ""
    return CodeRuntimeError(f"the interpreter died: {death}", hint=hint)


def over(limit: str, message: str) -> CodeLimitError:
    """The error of an action that went over a limit."""
    return CodeLimitError(message, limit=limit, hint=f"raise Limits.{limit}, or let the code take less")
