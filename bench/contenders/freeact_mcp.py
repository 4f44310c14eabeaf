"""freeact's way to the same server: a kernel whose generated API calls over HTTP, nobody asked about a call."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path

from ipybox import CodeExecutor, generate_mcp_sources
from mcp_time import SERVER
from serving import Job, lasting, serve

CODE = """
from mcptools.time.get_current_time import Params, run
for _ in range({n}): run(Params(timezone="UTC"))
"""


async def jobs(stack: AsyncExitStack) -> Mapping[str, Job]:
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hatchway-bench-")))
    await generate_mcp_sources("time", SERVER, folder / "mcptools")
    executor = CodeExecutor(
        working_dir=folder, images_dir=folder, kernel_env={"PYTHONPATH": str(folder)},
        approve_tool_calls=False, kernel_init_timeout=60,
    )  # fmt: skip
    await stack.enter_async_context(executor)
    return {"nested": lambda n: lasting(n, lambda: executor.execute(CODE.format(n=n)))}


serve(jobs)
