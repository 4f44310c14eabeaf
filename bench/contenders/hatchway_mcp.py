"""The same calls from code in a sandbox, each through the gate, with a rule and a listener for events."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Mapping
from contextlib import AsyncExitStack

from mcp_time import SERVER
from serving import Job, lasting, serve

from hatchway import CodeMode, Rule
from hatchway.core.events import AgentEvent


async def jobs(stack: AsyncExitStack) -> Mapping[str, Job]:
    heard: deque[AgentEvent] = deque(maxlen=100)
    mode = CodeMode(sys.argv[1], mcp_servers={"time": SERVER}, rules=[Rule("allow", "time.*")], on_event=heard.append)
    await stack.enter_async_context(mode)
    session = await stack.enter_async_context(mode.session())  # starting an action is measured elsewhere

    def code(n: int) -> str:
        return f"for _ in range({n}): time.get_current_time(timezone='UTC')"

    return {"nested": lambda n: lasting(n, lambda: session.run(code(n)))}


serve(jobs)
