"""Probing: the check a launch does, from a place where an event loop may be running."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any

from hatchway.core.errors import SandboxUnavailable
from hatchway.core.results import ExecutionResult
from hatchway.core.sandbox import Availability, CodeSandbox


def probed(probe: Callable[[], Coroutine[Any, Any, Availability]]) -> Availability:
    """What the probe finds, on a loop of its own in a thread of its own."""
    found: list[Availability] = []
    thread = threading.Thread(target=lambda: found.append(asyncio.run(probe())))
    thread.start()
    thread.join()
    return found[0]


async def added(sandbox: CodeSandbox) -> ExecutionResult:
    """The result of `1 + 1`.

    Raises:
        SandboxUnavailable: It is not 2, or cannot be had here.
        SandboxCrashed: As `CodeSandbox.execute`.
    """
    result = await (await sandbox.execute("1 + 1")).next()
    if not isinstance(result, ExecutionResult) or result.output != 2:
        raise SandboxUnavailable(f"1 + 1 gave {result!r}")
    return result
