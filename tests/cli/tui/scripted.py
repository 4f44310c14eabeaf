"""A model that does what the prompt says: `code: …` is run, `slow` streams for long, all else is repeated."""

import asyncio
import json

from pydantic_ai.messages import UserPromptPart
from pydantic_ai.models.function import DeltaToolCall, FunctionModel

REPLY = """# You said

> {said}

1. a list
2. with **two** points

```python
x = 1
```

That is all."""


async def say(messages, info):
    """The reply to the last message."""
    last = messages[-1].parts[-1]
    if not isinstance(last, UserPromptPart):
        yield f"It gave: `{' '.join(str(last.content).split())[:50]}`"
        return
    said = last.content if isinstance(last.content, str) else last.content[0]
    if said.startswith("code: "):
        yield "I will run **this**:"
        args = json.dumps({"code": said.removeprefix("code: ").replace(" ;; ", "\n")})
        yield {1: DeltaToolCall(name="execute_code", json_args=args, tool_call_id=f"c{len(messages)}")}
    elif said.startswith("tool: "):
        name, _, args = said.removeprefix("tool: ").partition(" ")
        yield {0: DeltaToolCall(name=name, json_args=args, tool_call_id=f"c{len(messages)}")}
    elif said.startswith("share: "):
        for number, task in enumerate(said.removeprefix("share: ").split(" || ")):
            args = json.dumps({"prompt": task})
            yield {number: DeltaToolCall(name="subagent_task", json_args=args, tool_call_id=f"t{number}")}
    elif said.startswith("chatter "):
        for _ in range(8):
            yield said.removeprefix("chatter ") + " "
            await asyncio.sleep(0.05)
    elif said == "slow":
        for number in range(1000):
            yield f"word {number} "
            await asyncio.sleep(0.05)
    elif said == "hostile":
        yield "before \x1b[2J\x1b]0;owned\x07 \u202e after"
    else:
        for word in REPLY.format(said=said).split(" "):
            yield word + " "


model = FunctionModel(stream_function=say, model_name="scripted")
