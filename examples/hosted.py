"""The same agent, its code run at OpenAI and run here: one word is changed.

The vendor here says its lines from a script, under the real SDK, so this needs no key and no network. With
`model="openai:gpt-5"` the agent asks OpenAI with the key of your environment.
"""

import asyncio
import json
from typing import Any

from pydantic_ai.models.openai import OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider

from hatchway.core.events import AgentEvent, RunStarted
from hatchway.executors import LlmAgent
from hatchway.hosted import code_tool
from hatchway.testing import ScriptedVendor


async def price(item: str) -> int:
    """What an item costs, in euro."""
    return {"tea": 3, "cake": 5}[item]


def response(*items: dict[str, Any]) -> dict[str, Any]:
    usage = {"input_tokens": 9, "output_tokens": 9, "total_tokens": 18}
    return {"id": "resp", "model": "scripted", "status": "completed", "output": list(items), "usage": usage}


def call(name: str, arguments: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "function_call", "call_id": name, "name": name, "arguments": json.dumps(arguments), **more}


CAKE = [{"type": "output_text", "text": "A cake costs 5 euro.", "annotations": []}]
SAID = {"type": "message", "id": "msg", "role": "assistant", "status": "completed", "content": CAKE}
PROGRAM = {"type": "program", "call_id": "p", "code": "text(await price({item: 'cake'}))", "fingerprint": "f"}
SCRIPTS = {
    "openai": [
        response(PROGRAM, call("price", {"item": "cake"}, caller={"type": "program", "caller_id": "p"})),
        response({"type": "program_output", "call_id": "p", "result": "5"}, SAID),
    ],
    "monty": [response(call("execute_code", {"code": "print(await price('cake'))"})), response(SAID)],
}


async def ask(where: str) -> None:
    client = ScriptedVendor("openai", SCRIPTS[where]).client()
    model = OpenAIResponsesModel("gpt-5", provider=OpenAIProvider(openai_client=client))
    ran: list[AgentEvent] = []
    async with LlmAgent("shop", model=model, code=code_tool(where, tools=[price])) as agent:
        turn = await agent.run("What does a cake cost?", on_event=ran.append)
    code = next(event.code for event in ran if isinstance(event, RunStarted))
    print(f"{where + ':':8}{turn.text}  ({code})")


for where in ("openai", "monty"):
    asyncio.run(ask(where))
