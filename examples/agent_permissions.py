"""An agent with subagents and a memory for decisions: rules settle what they can, a person's no ends the turn."""

import asyncio
import tempfile
from pathlib import Path

from hatchway.agent import Agent, ApprovalRequest, Cancelled, Response
from hatchway.agent.permissions import PermissionManager
from hatchway.testing import Call, Reply, ScriptedAgentModel


def delete(name: str) -> str:
    """Delete an account."""
    return f"{name} is gone"


def model(messages):
    """A model that gives two tasks away, then goes too far."""
    prompt = messages[0].parts[0].content
    done = sum(part.part_kind == "tool-return" for message in messages for part in message.parts)
    if prompt.startswith("delete"):
        return f"Done: {messages[-1].parts[0].content}" if done else Reply(code=f"delete({prompt.split()[1]!r})")
    if done < 2:
        return [Call("subagent_task", {"prompt": f"delete {name}"}) for name in ("ada", "bob")]
    return Reply(code="try:\n    delete('everybody')\nexcept BaseException:\n    delete('somebody')")


async def main(workspace: Path) -> None:
    manager = PermissionManager(workspace / ".hatchway")
    await manager.load()
    manager.allow_session("subagent_task")
    manager.allow_session("execute_code")
    async with Agent(
        ScriptedAgentModel(model), tools=[delete], permissions=manager, max_subagents=1, working_dir=workspace
    ) as agent:
        async for event in agent.stream("clean up"):
            match event:
                case ApprovalRequest(tool_args={"name": "everybody"}) as request:
                    request.approve(False)  # a bare no ends the turn, whatever the code makes of it
                case ApprovalRequest() as request:
                    request.approve(True)
                case Response(content=content, agent_id=agent_id):
                    print(f"{agent_id[:3]}: {content}")
                case Cancelled(reason=reason):
                    print(f"ended: {reason}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(dir=".") as folder:
        asyncio.run(main(Path(folder)))
