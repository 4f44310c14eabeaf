"""A model that programs: its code runs in a sandbox and is fed back until it answers.

The model here says its lines from a script, so this needs no key. Any model of Pydantic AI goes in its place:
`LlmAgent("coder", model="anthropic:claude-sonnet-5", ...)`.
"""

import asyncio

from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from hatchway.core.events import CodeExecutionOutput, Response, RunFailed, RunStarted
from hatchway.executors import LlmAgent, SandboxCodeExecutor

LINES = iter(
    [
        "I will add them up.\n```python\nprint(sum(i * i for i in range(11) if i % 2)\n```",
        "A bracket is missing.\n```python\nprint(sum(i * i for i in range(11) if i % 2))\n```",
        "The squares of the odd numbers up to 10 add up to 165.",
    ]
)


def scripted(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    return ModelResponse([TextPart(next(LINES))])


def show(event: object) -> None:
    match event:
        case Response(content=content):
            print("model: ", content.splitlines()[0])
        case RunStarted(code=code):
            print("code:  ", code.strip())
        case CodeExecutionOutput(text=text):
            print("output:", (text or "").strip())
        case RunFailed(error=error):
            print("failed:", "SyntaxError" if "SyntaxError" in str(error) else error)


async def main() -> None:
    async with SandboxCodeExecutor("monty") as executor:
        agent = LlmAgent("coder", model=FunctionModel(scripted), instruction="Count by code.", code_executor=executor)
        turn = await agent.run("Add up the squares of the odd numbers up to 10.", on_event=show)
    print("answer:", turn.text, f"({turn.rounds} rounds)")


asyncio.run(main())
