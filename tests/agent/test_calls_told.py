"""What a model is told of the calls its action made: denied ones its code kept to itself, done ones that stay done."""

from __future__ import annotations

import os
import runpy
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from hatchway.agent import Agent, ApprovalRequest
from hatchway.agent.permissions import PermissionManager
from hatchway.core.events import CallFailed
from hatchway.testing import Reply, ScriptedAgentModel

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("agent_jail")]

LONG_TASK = runpy.run_path(str(Path(__file__).parent / "long_task.py"))
PAID: list[int] = []


def pay(euros: int) -> str:
    """Pay."""
    PAID.append(euros)
    return f"paid {euros}"


def break_sandbox() -> None:
    """Kill the sandbox from outside."""
    doomed = LONG_TASK["descendants"](os.getpid())
    for pid in doomed:
        os.kill(pid, signal.SIGKILL)
    while any(LONG_TASK["cmdline"](pid) for pid in doomed):
        time.sleep(0.01)


def made(code: str, workspace: Path, **settings: Any) -> tuple[Agent, ScriptedAgentModel]:
    PAID.clear()
    model = ScriptedAgentModel([Reply(code=code), "I see."])
    return Agent(model, working_dir=workspace, tools=[pay, break_sandbox], **settings), model


async def test_what_a_rule_denied_is_told_although_the_code_kept_it_to_itself(tmp_path: Path, watch: Any) -> None:
    folder = tmp_path / ".hatchway"
    folder.mkdir()
    (folder / "permissions.json").write_text('{"allowed_tools": [], "denied_tools": ["pay(euros=13)"]}')
    permissions = PermissionManager(folder)
    await permissions.load()
    code = "for euros in (13, 1):\n    try:\n        pay(euros)\n    except BaseException:\n        pass\n'all paid'"
    agent, model = made(code, tmp_path, permissions=permissions)
    async with agent:
        events = await watch(agent.stream("pay"))
    assert watch.told(model) == (
        "'all paid'\n\nCalls it made that were denied, and not run:\n"
        "- pay(euros=13) denied: a rule of permissions.json denies pay(euros=13)"
    )
    assert [(event.tool_name, event.denied) for event in watch.only(CallFailed, events)] == [("pay", True)]
    assert PAID == [1]


async def test_a_stopped_action_is_told_with_the_calls_it_had_made(tmp_path: Path, watch: Any) -> None:
    def answer(asked: ApprovalRequest) -> None:
        asked.approve(False, "two is too much") if asked.tool_args.get("euros") == 2 else asked.approve()

    agent, model = made("[pay(n) for n in (1, 2, 3)]", tmp_path)
    async with agent:
        await watch(agent.stream("pay"), answer)
    assert watch.told(model) == (
        "The user rejected pay: two is too much\nThe code action was stopped there.\n\n"
        "Calls it had made, which are not undone:\n- pay(euros=1) returned 'paid 1'"
    )
    assert PAID == [1]


async def test_an_action_whose_sandbox_died_is_told_with_the_calls_it_had_made(tmp_path: Path, watch: Any) -> None:
    agent, model = made("pay(1)\nbreak_sandbox()\npay(2)", tmp_path)
    async with agent:
        await watch(agent.stream("pay"))
    assert "sandbox failed: " in watch.told(model)
    assert "Calls it had made, which are not undone:\n- pay(euros=1) returned 'paid 1'" in watch.told(model)
    assert PAID == [1]
