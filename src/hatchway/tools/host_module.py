# Made by Hatchway; changes are lost.
"""How generated modules call their tools: by the channel of the sandbox they run in."""

from __future__ import annotations

import sys
from typing import Any

_OUTSIDE = "the functions of mcptools are called by code that runs in a Hatchway sandbox"


def call(name: str, given: Any) -> Any:
    """The answer of a tool."""
    return _guest().call(name, given)


async def acall(name: str, given: Any) -> Any:
    """The answer of a tool; several are awaited at once with `asyncio.gather`."""
    return await _guest().acall(name, given)


def _guest() -> Any:
    found = sys.modules.get("_hatchway_guest.tools")
    if found is None:
        raise RuntimeError(_OUTSIDE)
    return found
