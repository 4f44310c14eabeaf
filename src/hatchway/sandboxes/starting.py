"""Starting something off the event loop without losing it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def started(start: Callable[[], T], undo: Callable[[T], object]) -> T:
    """What `start` gives, called in a thread. A caller that is cancelled meanwhile leaves nothing behind.

    Args:
        start: Starts it; may block.
        undo: Ends it again; called in a thread when nobody is there any more to take it.
    """
    starting = asyncio.ensure_future(asyncio.to_thread(start))
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        await asyncio.to_thread(undo, await starting)
        raise
