"""smolagents' LocalPythonExecutor: an interpreter over the syntax tree, in the host's process, without a wall."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Any

from serving import Job, actions, add, serve
from smolagents.local_python_executor import LocalPythonExecutor


async def jobs(stack: AsyncExitStack) -> Mapping[str, Job]:
    async def run(code: str) -> Any:
        executor = LocalPythonExecutor([])
        executor.send_tools({"add": add})
        return executor(code).output

    return actions(run, lambda a, b: f"add({a}, {b})", nap=None)


serve(jobs)
