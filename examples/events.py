"""Every step of a run is an event: watch them, and answer the ones that ask."""

import asyncio

from hatchway import CodeMode, tool
from hatchway.core.events import ApprovalRequest, CallFailed, CodeExecutionOutputChunk, ToolOutput

ACTION = """
print("measuring")
before = thermometer("oven")
set_oven(celsius=before + 160)
try:
    thermometer("moon")
except Exception as error:
    print("never mind:", error)
"""


@tool
def thermometer(where: str) -> int:
    """Degrees Celsius at a place."""
    return {"oven": 20}[where]


@tool(approval="ask")
def set_oven(celsius: int) -> None:
    """Heat the oven."""


async def main() -> None:
    async with CodeMode("monty", tools=[thermometer, set_oven]) as mode:
        async for event in mode.stream(ACTION):
            match event:
                case CodeExecutionOutputChunk(text=text):
                    print("code says:", text.strip())
                case ApprovalRequest(tool_name=name, tool_args=args):
                    print("asked:    ", name, dict(args))
                    event.approve(True)
                case ToolOutput(content=content, tool_name=name):
                    print("returned: ", name, content)
                case CallFailed(error=error, tool_name=name):
                    print("failed:   ", name, error)


asyncio.run(main())
