"""The same agent, its code run at OpenAI and run here: one word is changed.

Needs `pip install 'hatchway[openai,pydantic-ai]'`. The vendor here says its lines from a script, under the real SDK, so
this needs no key and no network. With `model="openai:gpt-5"` the agent asks OpenAI with the key of your environment.
"""

import asyncio

from pydantic_ai.models.openai import OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider

from hatchway.core.events import AgentEvent, RunStarted
from hatchway.executors import LlmAgent
from hatchway.hosted import code_tool
from hatchway.testing import CallsTool, CodeEnded, ScriptedVendor, VendorSays


async def price(item: str) -> int:
    """What an item costs, in euro."""
    return {"tea": 3, "cake": 5}[item]


PROGRAM = "text(await price({item: 'cake'}))"  # at OpenAI, code that calls tools is JavaScript
ACTION = "print(await price('cake'))"
SCRIPTS = {
    "openai": [
        VendorSays(CallsTool("price", {"item": "cake"}, by=PROGRAM)),
        VendorSays(CodeEnded("5"), "A cake costs 5 euro."),
    ],
    "monty": [VendorSays(CallsTool("execute_code", {"code": ACTION})), VendorSays("A cake costs 5 euro.")],
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
