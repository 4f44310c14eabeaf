"""The same request, its code run at OpenAI and run here: one word is changed.

The vendor here says its lines from a script, under the real SDK, so this needs no key and no network. Without `client=`
the adapter asks OpenAI with the key of your environment.
"""

import asyncio
import json
from typing import Any

from hatchway.hosted import HostedReply, OpenAIAdapter, code_tool
from hatchway.testing import ScriptedVendor


async def price(item: str) -> int:
    """What an item costs, in euro."""
    return {"tea": 3, "cake": 5}[item]


def response(*items: dict[str, Any]) -> dict[str, Any]:
    return {"id": "resp", "model": "scripted", "status": "completed", "output": list(items)}


def call(name: str, arguments: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "function_call", "call_id": name, "name": name, "arguments": json.dumps(arguments), **more}


def message(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}


PROGRAM = {"type": "program", "call_id": "p", "code": "text(await price({item: 'cake'}))", "fingerprint": "f"}
SCRIPTS = {
    "openai": [
        response(PROGRAM, call("price", {"item": "cake"}, caller={"type": "program", "caller_id": "p"})),
        response({"type": "program_output", "call_id": "p", "result": "5"}, message("A cake costs 5 euro.")),
    ],
    "monty": [
        response(call("execute_code", {"code": "print(await price('cake'))"})),
        response(message("A cake costs 5 euro.")),
    ],
}


async def ask(where: str) -> HostedReply:
    client = ScriptedVendor("openai", SCRIPTS[where]).client()
    code = code_tool(where, tools=[price])
    async with OpenAIAdapter("gpt-5", client=client, tools=[code], on_event=lambda e: seen.append(type(e))) as adapter:
        return await adapter.run("What does a cake cost?")


seen: list[type] = []
for where in ("openai", "monty"):
    reply = asyncio.run(ask(where))
    gate = sum(kind.__name__ == "CallStarted" for kind in seen)
    print(f"{where + ':':8}{reply.text} ({gate} calls passed the gate)")
    seen.clear()
