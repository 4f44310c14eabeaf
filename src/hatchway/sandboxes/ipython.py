"""IPython in a session: whether it is wanted and there, and how the guest is told to use it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace

from hatchway.core.errors import CodeExecutionError, InvalidSetting, SandboxUnavailable
from hatchway.core.limits import Limits
from hatchway.core.sandbox import OnOutput
from hatchway.sandboxes.guest_execution import GuestExecution
from hatchway.sandboxes.recorded import Origin, fresh

MODULE = "IPython"
START = "__import__('_hatchway_guest.interpreter', fromlist=['running']).running.start_ipython()"
"""What the guest runs first; it is no action of the session."""
START_SECONDS = 60.0
"""Importing it takes a while on a busy machine; the clock of the actions is not for this."""


def is_wanted(setting: bool | None, *, is_there: bool) -> bool:
    """Whether sessions are IPython's; None takes it where it is.

    Raises:
        InvalidSetting: It is asked for and not there.
    """
    if setting and not is_there:
        raise InvalidSetting(
            "ipython=True, but the code has no IPython",
            hint="grant it with packages=['ipython'], or python= of an environment that has hatchway[ipython]",
        )
    return is_there if setting is None else setting


async def start_ipython(
    begin: Callable[[Origin, OnOutput | None], Awaitable[GuestExecution]],
    *,
    backend: str,
    facts: Mapping[str, str],
    limits: Limits,
) -> None:
    """Have the guest of a new session use IPython.

    Raises:
        SandboxUnavailable: It cannot be imported, or does not start.
    """
    patient = replace(limits, wall_seconds=max(limits.wall_seconds, START_SECONDS))
    execution = await begin(Origin(fresh(START, (), None, patient, facts), backend), None)
    try:
        await execution.next()
    except CodeExecutionError as e:
        raise SandboxUnavailable(
            f"IPython cannot be started in the sandbox: {e.message.splitlines()[-1] if e.message else e}",
            hint="grant one that works, such as packages=['ipython>=9,<10'], or set ipython=False",
        ) from e
