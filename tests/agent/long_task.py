"""The long task, as a process of its own: forty turns on a scripted model, with trouble on the way.

Turn 15 kills the sandbox, turn 20 the MCP server, turn 30 this very process while somebody is asked. Turns 3, 13 and 23
give a task away. Each effect is a number in a file; `expected()` says which there must be in the end, once each.
"""

import asyncio
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from hatchway import tool
from hatchway.agent import Agent, ApprovalRequest
from hatchway.agent.conversations import Conversations
from hatchway.testing import Call, Reply, ScriptedAgentModel

TURNS = 42
TASKS = (3, 13, 23)
SERVER = Path(__file__).parent / "effects_server.py"


def numbers(turn: int, parts: range = range(5)) -> list[int]:
    return [turn * 100 + part for part in parts]


def expected() -> list[int]:
    """Every effect there must be, once."""
    inside = [number for turn in range(1, TURNS + 1) for number in numbers(turn)]
    given = [number for turn in TASKS for number in numbers(turn, range(50, 55))]
    return sorted([*inside, *given])


def marks() -> list[int]:
    """The same, of the MCP server."""
    return [turn for turn in range(1, TURNS + 1) if turn % 2 == 0]


def reply(messages: Any) -> Any:
    """What the model says: it goes by the last prompt and by what came back since."""
    said = [message for message in messages if message.kind == "request"]
    last = max(n for n, message in enumerate(said) if message.parts[0].part_kind == "user-prompt")
    word, number = said[last].parts[0].content.split()
    turn, rounds = int(number), len(said) - 1 - last
    if word == "task":
        return Reply(code=code_for(numbers(turn, range(50, 55)))) if rounds == 0 else f"task {turn} done"
    plan = plan_of(turn)
    return plan[rounds] if rounds < len(plan) else f"turn {turn} done"


def code_for(some: list[int]) -> str:
    return f"seen = globals().get('seen', 0)\nfor number in {some}:\n    note(number)\n    seen += 1\nseen"


def plan_of(turn: int) -> list[Any]:
    actions = [Reply(code=code_for(numbers(turn)))]
    if turn == 15:
        actions = [
            Reply(code=code_for(numbers(turn, range(2))) + "\nbreak_sandbox()\nnote(99)"),
            Reply(code=code_for(numbers(turn, range(2, 5)))),
        ]
    if turn == 20:
        actions.append(Reply(code="try:\n    effects.die()\nexcept ToolError as e:\n    print(e)"))
    if turn % 2 == 0:
        actions.append(Reply(code=f"effects.mark({turn})"))
    if turn in TASKS:
        actions.append(Call("subagent_task", {"prompt": f"task {turn}"}))
    return actions


def descendants(pid: int) -> list[int]:
    """The processes it started, and theirs."""
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    own = [int(child) for task in tasks for child in task.read_text().split()]
    return own + [each for child in own for each in descendants(child)]


def cmdline(pid: int) -> bytes:
    """Empty for one that is dead."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def agent_for(workspace: Path, conversation: Any) -> Agent:
    effects, outside = workspace.parent / "effects", workspace.parent / "marks"

    @tool
    def note(number: int) -> str:
        """Write a number down."""
        with effects.open("a") as file:
            file.write(f"{number}\n")
        return f"noted {number}"

    @tool
    def break_sandbox() -> str:
        """Kill the sandbox from outside."""
        doomed = [pid for pid in descendants(os.getpid()) if b"effects_server" not in cmdline(pid)]
        for pid in doomed:
            os.kill(pid, signal.SIGKILL)
        while any(cmdline(pid) for pid in doomed):
            time.sleep(0.01)
        return "killed"

    servers = {"effects": {"command": sys.executable, "args": [str(SERVER), str(outside)]}}
    model = ScriptedAgentModel(reply)
    settings: dict[str, Any] = {"tools": [note, break_sandbox], "ptc_servers": servers, "conversation": conversation}
    return Agent(model, working_dir=workspace, **settings)


async def drive(workspace: Path, *, dies: bool) -> None:
    """All turns that are left, from wherever the last process came."""
    with Conversations.open(workspace / ".hatchway" / "journal.db") as conversations:
        conversation = conversations.newest(workspace) or conversations.create(workspace)
        async with agent_for(workspace, conversation) as agent:
            await answered(agent.resume(), dies=False)
            for turn in range(prompts(agent) + 1, TURNS + 1):
                await answered(agent.stream(f"turn {turn}"), dies=dies and turn == 30)


async def answered(events: Any, *, dies: bool) -> None:
    asked = 0
    async for event in events:
        if isinstance(event, ApprovalRequest):
            asked += 1
            if dies and asked == 4:
                os.kill(os.getpid(), signal.SIGKILL)
            event.approve()


def prompts(agent: Agent) -> int:
    parts = [part for message in agent.messages for part in message.parts]
    return sum(part.part_kind == "user-prompt" for part in parts)


if __name__ == "__main__":
    asyncio.run(drive(Path(sys.argv[1]), dies=sys.argv[2] == "dies"))
