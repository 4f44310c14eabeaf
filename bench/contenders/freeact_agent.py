"""freeact's agent on the same model: its kernel is not sealed, for its sandbox does not start on Linux.

Its file server, which npx would download, is replaced by another one of its own, so that it starts without a network.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from agent_jobs import agent_jobs, scripted
from freeact.agent import Agent
from freeact.agent.config import Config
from freeact.tools.pytools.apigen import generate_mcp_sources
from mcp_time import SERVER
from pydantic_ai.models.function import DeltaToolCall, FunctionModel
from serving import Job, serve

CALLS = "from mcptools.time.get_current_time import Params, run\nfor i in range(MANY):\n    run(Params(timezone='UTC'))"


async def model(messages: list[Any], info: Any) -> AsyncIterator[Any]:
    def call(args: str, id: str) -> DeltaToolCall:
        return DeltaToolCall("ipybox_execute_ipython_cell", args, tool_call_id=id)

    async for each in scripted(messages, info, call):
        yield each


async def jobs(stack: AsyncExitStack) -> Mapping[str, Job]:
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hatchway-bench-")))
    os.chdir(folder)
    own = {"command": sys.executable, "args": ["-m", "freeact.tools.pytools.search.basic"], "timeout": 90}
    own["env"] = {"PYTOOLS_DIR": str(folder)}
    config = Config(
        working_dir=folder, model=FunctionModel(stream_function=model), model_settings={}, enable_subagents=False,
        enable_persistence=False, mcp_servers={"pytools": own, "filesystem": own}, ptc_servers={"time": SERVER},
        kernel_env={"PYTHONPATH": str(config_home(folder))},
    )  # fmt: skip
    await generate_mcp_sources(config.ptc_servers, config_home(folder))
    agent = await started(config)
    stack.push_async_callback(agent.stop)

    async def cancel() -> None:
        agent.cancel()

    return agent_jobs(agent.stream, cancel, CALLS)


async def started(config: Config) -> Agent:
    """It gives its kernel ten seconds, which are not enough on a busy machine: a few tries."""
    for is_last in (False, False, False, True):
        agent = Agent(config)
        try:
            await agent.start()
            return agent
        except Exception:
            if is_last:
                raise
    raise AssertionError("the last try returns or raises")


def config_home(folder: Path) -> Path:
    """Where its generated APIs lie."""
    return folder / ".freeact" / "generated"


serve(jobs)
