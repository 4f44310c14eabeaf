"""A sequential tool in a thread that nobody waits for any more, because its time was up or its run was cancelled.

A thread cannot be killed: what it still does must not run beside the next sequential tool.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from hatchway.core.errors import ToolError
from hatchway.tools.functions import Tool


class Overrun:
    """The sequential tool that was started last in a thread."""

    def __init__(self) -> None:
        self._name = ""
        self._ended: Future[None] | None = None

    def watched(self, tool: Tool, function: Callable[[], Any]) -> Callable[[], Any]:
        """The function, which tells when it has really ended."""
        ended = self._ended = Future[None]()
        self._name = tool.name

        def run() -> Any:
            try:
                return function()
            finally:
                ended.set_result(None)

        return run

    async def gone(self, tool: Tool) -> None:
        """Wait until it has ended, for no longer than the next tool itself may take.

        Raises:
            ToolError: It still runs.
        """
        if self._ended is None or self._ended.done():
            return
        loop = asyncio.get_running_loop()
        told = asyncio.Event()

        def tell(_: Future[None]) -> None:
            with suppress(RuntimeError):  # the loop is closed: nobody is left to be told
                loop.call_soon_threadsafe(told.set)

        self._ended.add_done_callback(tell)
        try:
            async with asyncio.timeout(tool.timeout):
                await told.wait()
        except TimeoutError:
            still = f"the tool {self._name} still runs, though nobody waits for it any more"
            raise ToolError(f"{still}; {tool.name} cannot run beside it") from None
