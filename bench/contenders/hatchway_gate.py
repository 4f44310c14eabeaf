"""Hatchway's CodeMode with everything switched on that a call passes: validation, a rule, a listener for events."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Any

from serving import Job, actions, add, add_async, nap, serve

from hatchway import CodeMode, Rule, Tool
from hatchway.core.events import AgentEvent

SANDBOX, STYLE, *OPTIONS = sys.argv[1:]


async def jobs(stack: AsyncExitStack) -> Mapping[str, Job]:
    heard: deque[AgentEvent] = deque(maxlen=100)
    mode = CodeMode(
        SANDBOX,
        tools=[Tool.from_function(add if STYLE == "def" else add_async, name="add"), nap],
        rules=[Rule("allow", "add")],
        type_check="checked" in OPTIONS,
        on_event=heard.append,
    )
    await stack.enter_async_context(mode)

    async def run(code: str) -> Any:
        return (await mode.run(code)).output

    awaited = "" if STYLE == "def" else "await "
    return actions(run, lambda a, b: f"{awaited}add({a}, {b})", lambda i: f"nap({i})")


serve(jobs)
