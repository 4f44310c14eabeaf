"""A Pydantic AI agent whose tools are functions of code; a handler is asked about each risky call.

Needs `pip install 'hatchway[pydantic-ai]'`; no key, no network: the model follows a script.
"""

import asyncio

from pydantic_ai import Agent
from pydantic_ai.capabilities import HandleDeferredToolCalls
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.tools import Tool, ToolDenied

from hatchway.adapters.pydantic_ai import CodeModeCapability

CODE = """
for user in users():
    try:
        print(user, remove(user))
    except RuntimeError as refused:
        print(user, "stays:", refused)
"""


def model(messages, info):
    if len(messages) == 1:
        return ModelResponse(parts=[ToolCallPart("execute_code", {"code": CODE})])
    return ModelResponse(parts=[TextPart(messages[-1].parts[0].content["stdout"])])


def users() -> list[str]:
    """Every user."""
    return ["ada", "mallory"]


def remove(user: str) -> str:
    """Remove a user."""
    return "is gone"


async def ask(ctx, requests):
    answers = {c.tool_call_id: c.args["user"] == "mallory" or ToolDenied("a friend") for c in requests.approvals}
    return requests.build_results(approvals=answers)


async def main():
    code_mode = CodeModeCapability(sandbox="process")
    tools = [users, Tool(remove, requires_approval=True)]
    agent = Agent(FunctionModel(model), tools=tools, capabilities=[code_mode, HandleDeferredToolCalls(ask)])
    print((await agent.run("Remove who does not belong here.")).output, end="")
    await code_mode.aclose()


asyncio.run(main())
