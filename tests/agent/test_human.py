"""A person who writes the actions, through the SDK."""

from pathlib import Path

import pytest

from hatchway.agent import Agent, ApprovalRequest, CodeExecutionOutput, Response, Retrying
from hatchway.agent.human import human_model

pytestmark = pytest.mark.anyio


async def test_what_is_typed_runs_and_names_are_kept(tmp_path: Path) -> None:
    async with Agent(human_model(), working_dir=tmp_path, sandbox="monty") as agent:
        seen: list[object] = []
        for typed in ("x = 20", "print(x + 1)\nx + 2"):
            async for event in agent.stream(typed):
                seen.append(event)
                if isinstance(event, ApprovalRequest):
                    assert event.tool_args == {"code": typed}
                    event.approve(True)
    outputs = [event.result for event in seen if isinstance(event, CodeExecutionOutput)]
    assert [result.output for result in outputs if result] == [None, 22]
    assert not [event for event in seen if isinstance(event, Response | Retrying)]
