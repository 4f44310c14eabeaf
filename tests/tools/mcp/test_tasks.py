"""Tools that answer later: their calls become tasks, which are asked about until they are over."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from hatchway.core.errors import ToolError
from hatchway.tools.mcp.servers import McpServers

pytestmark = pytest.mark.anyio
ODD = {"command": sys.executable, "args": [str(Path(__file__).with_name("odd_server.py")), "tasks"], "timeout": 1}


async def called(servers: McpServers, name: str) -> Any:
    return await {tool.name: tool for tool in await servers.tools()}[f"odd.{name}"].func()


async def test_the_result_of_a_task_is_that_of_its_call() -> None:
    async with McpServers({"odd": ODD}) as servers:
        assert await called(servers, "completed") == "completed at last"
        assert await called(servers, "cancelled") == "[]"


@pytest.mark.parametrize(
    ("tool", "said", "cancelled"),
    [
        ("failed", "failed at last", "[]"),
        ("dropped", "the task ended as dropped: busy", "[]"),
        ("nameless", "the server began a task and did not say which", "[]"),
        (
            "input_required",
            "the server wants to ask a person or a model, which code cannot answer",
            '["input_required"]',
        ),
        ("endless", "odd.endless did not answer within 1 s", '["endless"]'),
    ],
)
async def test_tasks_without_a_result(tool: str, said: str, cancelled: str) -> None:
    async with McpServers({"odd": ODD}) as servers:
        with pytest.raises(ToolError) as raised:
            await called(servers, tool)
        assert raised.value.message == said
        assert await called(servers, "cancelled") == cancelled
