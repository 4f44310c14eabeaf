"""Exit codes: what each one means, the same for every command."""

from __future__ import annotations

from enum import IntEnum

from hatchway.core.errors import (
    CodeExecutionError,
    CodeTimeoutError,
    HatchwayError,
    SandboxCrashed,
    SandboxUnavailable,
    TransportError,
)


class Exit(IntEnum):
    """How a command ended; the name in lower case is the `state` of `--json`."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    SANDBOX_FAILED = 3
    NOT_APPROVED = 4
    TIMEOUT = 124
    INTERRUPTED = 130


MEANING = {
    Exit.DONE: "the code ran to its end",
    Exit.FAILED: "the code failed",
    Exit.USAGE: "the command line is wrong",
    Exit.SANDBOX_FAILED: "the sandbox is unavailable or crashed",
    Exit.NOT_APPROVED: "a call needed approval and nobody gave it",
    Exit.TIMEOUT: "the code ran out of time",
    Exit.INTERRUPTED: "interrupted",
}


def exit_for(error: Exception) -> Exit:
    """The exit code an error deserves."""
    match error:
        case CodeTimeoutError():
            return Exit.TIMEOUT
        case CodeExecutionError():
            return Exit.FAILED
        case SandboxUnavailable() | SandboxCrashed() | TransportError():
            return Exit.SANDBOX_FAILED
        case HatchwayError():
            return Exit.USAGE
        case _:
            return Exit.FAILED
