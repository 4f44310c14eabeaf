"""A recorded run: real code in a real sandbox, its times made equal so that pictures of it are."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from hatchway import CodeMode, Deny, Edit, tool
from hatchway.core.events import AgentEvent, ApprovalRequest, CodeExecutionOutput
from hatchway.core.results import ExecFile, Usage

ACTION = """
import asyncio

async def look(item):
    try:
        return await price(item)
    except Exception as error:
        print(f"{item}: {error}")
        return 0.0

found = await asyncio.gather(look("tea"), look("<b>gold</b>"))
print("\\x1b[31mred\\u202e, <script>alert(1)</script>")
try:
    send("ada", "x" * 1500)
except RuntimeError as refused:
    print("refused:", refused)
{"sum": sum(found), "sent": send("bob", "hi & bye")}
"""


@tool
async def price(item: str) -> float:
    """The price of an item."""
    return {"tea": 3.5}[item]


@tool(approval="ask")
def send(to: str, text: str) -> str:
    """Send a message."""
    return f"sent to {to}: {text}" + "\x07" * 3


async def _recorded() -> list[AgentEvent]:
    events: list[AgentEvent] = []
    async with CodeMode("monty", tools=[price, send]) as mode:
        async for event in mode.stream(ACTION.strip()):
            events.append(event)
            if isinstance(event, ApprovalRequest):
                to_ada = event.tool_args["to"] == "ada"
                event.approve(Deny("too <long>") if to_ada else Edit({"to": "bob", "text": "bye"}))
    return events


def _dated(event: AgentEvent, number: int) -> AgentEvent:
    changes: dict[str, Any] = {"at": 1_800_000_000 + number * 0.25, "run_id": "5ca1ab1e" * 4}
    if hasattr(event, "seconds"):
        changes["seconds"] = 0.012
    if isinstance(event, CodeExecutionOutput) and event.result is not None:
        files = (ExecFile(name="report.csv", content=b"a,b\n" * 500),)
        changes["result"] = replace(event.result, usage=Usage(wall_seconds=0.05, calls=4), files=files)
    return replace(event, **changes)


@pytest.fixture(scope="session")
def recorded() -> list[AgentEvent]:
    """The events of one run, from its start to its end."""
    events = [event for event in asyncio.run(_recorded()) if not isinstance(event, ApprovalRequest)]
    return [_dated(event, number) for number, event in enumerate(events)]
