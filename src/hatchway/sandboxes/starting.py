"""Starting something off the event loop without losing it, and ending it whatever happens to who ends it."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def started(start: Callable[[], T], undo: Callable[[T], object]) -> T:
    """What `start` gives, called in a thread. A caller that is cancelled meanwhile, however often, leaves nothing.

    Args:
        start: Starts it; may block.
        undo: Ends it again; called in a thread when nobody is there any more to take it.

    Raises:
        OSError: There is no room for another thread.
    """
    try:
        starting = asyncio.get_running_loop().run_in_executor(None, start)  # no task: an ending loop does not cancel it
    except RuntimeError as e:
        raise BlockingIOError(errno.EAGAIN, str(e)) from e  # no thread can be started
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        await to_the_end(_undone(starting, undo))
        raise


async def to_the_end(ending: Coroutine[Any, Any, T]) -> T:
    """What `ending` gives. A caller that is cancelled meanwhile, however often, waits all the same; then it is."""
    task = asyncio.ensure_future(ending)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as e:
            cancelled = e
    if cancelled is None:
        return task.result()
    if not task.cancelled():
        task.exception()  # told by nobody: the cancellation comes first
    raise cancelled


async def _undone(starting: asyncio.Future[T], undo: Callable[[T], object]) -> None:
    await asyncio.wait({starting})
    if starting.exception() is None:
        await asyncio.get_running_loop().run_in_executor(None, undo, starting.result())
