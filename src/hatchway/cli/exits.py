"""Exit codes: what each one means, the same for every command."""

from __future__ import annotations

from enum import IntEnum

from hatchway.core.errors import (
    ApprovalRequired,
    CheckpointRefused,
    CodeExecutionError,
    CodeTimeoutError,
    HatchwayError,
    InDoubt,
    RunTaken,
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
    PAUSED = 5
    IN_DOUBT = 6
    REFUSED = 7
    TAKEN = 8
    TIMEOUT = 124
    INTERRUPTED = 130


MEANING = {
    Exit.DONE: "the code ran to its end",
    Exit.FAILED: "the code failed",
    Exit.USAGE: "the command line is wrong",
    Exit.SANDBOX_FAILED: "the sandbox is unavailable or crashed",
    Exit.NOT_APPROVED: "a call needed approval and nobody gave it; the run is over",
    Exit.PAUSED: "calls wait for approval; the run is in the journal",
    Exit.IN_DOUBT: "nobody knows whether calls ran; the run is in the journal",
    Exit.REFUSED: "the run cannot be repeated as it was recorded",
    Exit.TAKEN: "somebody else drives the run",
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
        case ApprovalRequired():
            return Exit.PAUSED
        case InDoubt():
            return Exit.IN_DOUBT
        case CheckpointRefused():
            return Exit.REFUSED
        case RunTaken():
            return Exit.TAKEN
        case HatchwayError():
            return Exit.USAGE
        case _:
            return Exit.FAILED
