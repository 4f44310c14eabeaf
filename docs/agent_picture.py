"""Writes docs/agent.svg: a recorded conversation, only its model scripted; a test checks that it is up to date."""

import asyncio
import tempfile
from dataclasses import replace
from pathlib import Path

from hatchway.agent import Agent, ApprovalRequest
from hatchway.agent.permissions import PermissionManager
from hatchway.core.decisions import Allow
from hatchway.testing import Reply, ScriptedAgentModel
from hatchway.trace.blocks import Block, Line
from hatchway.trace.dialogue import Dialogue
from hatchway.trace.record import joined
from hatchway.trace.terminal import picture

PICTURE = Path(__file__).with_name("agent.svg")
SHELF = {"tea": (8, 20), "coffee": (30, 25), "cocoa": (14, 10)}
PROMPT = "Order what we are short of."
SAID = "I look at all three at once and order only what is missing."
CODE = """\
import asyncio

rows = await asyncio.gather(*[stock(name) for name in ("tea", "coffee", "cocoa")])
for row in rows:
    if row["left"] < row["wanted"]:
        print(await order(row["name"], row["wanted"] - row["left"]))"""
ANSWER = "Tea was short: **12 more are ordered**. There is enough coffee and cocoa."


async def stock(name: str) -> dict[str, object]:
    """How many are left, and how many there should be."""
    left, wanted = SHELF[name]
    return {"name": name, "left": left, "wanted": wanted}


async def order(name: str, count: int) -> str:
    """Order from the wholesaler."""
    return f"{count} {name} ordered"


async def rendered() -> str:
    """The picture as the conversation is today."""
    with tempfile.TemporaryDirectory() as folder:
        blocks = await _blocks(Path(folder))
    return picture(joined(map(_timeless, blocks)), title="hatchway")


async def _blocks(workspace: Path) -> list[Block]:
    permissions, dialogue = PermissionManager(workspace / ".hatchway"), Dialogue()
    permissions.allow_session("stock")
    model = ScriptedAgentModel([Reply(SAID, code=CODE), ANSWER])
    blocks = [*dialogue.said(PROMPT)]
    async with Agent(model, tools=[stock, order], working_dir=workspace, permissions=permissions) as agent:
        async for event in agent.stream(PROMPT):
            blocks += dialogue.told(event)
            if isinstance(event, ApprovalRequest):
                event.approve()
                blocks += dialogue.decided(event, Allow())
    return blocks


def _timeless(block: Block) -> Block:
    """Without what differs from one run to the next: times, and what it took in the end."""
    if not isinstance(block, Line):
        return block
    parts = block.parts[:1] if block.mark == "■" else [part for part in block.parts if not part.text.startswith("  ")]
    return replace(block, at=None, parts=parts)


if __name__ == "__main__":
    PICTURE.write_text(asyncio.run(rendered()), encoding="utf-8")
