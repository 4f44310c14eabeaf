"""Microsoft Agent Framework as the table drives it. As a program, it goes on with a stored session elsewhere."""

import asyncio
import json
import runpy
import sys
from pathlib import Path
from typing import Any

from agent_framework import (
    Agent,
    AgentSession,
    BaseChatClient,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    FunctionInvocationLayer,
    FunctionTool,
    Message,
    ResponseStream,
)

from hatchway import Deny, Edit, NotRun, Ran
from hatchway.adapters.agent_framework import ContainerCodeActProvider, JailCodeActProvider, MontyCodeActProvider
from hatchway.adapters.agent_framework.environments import Environments

TOOLS = runpy.run_path(str(Path(__file__).parent / "effects.py"))
PROVIDERS = {"monty": MontyCodeActProvider, "jail": JailCodeActProvider, "container": ContainerCodeActProvider}


class Scripted(FunctionInvocationLayer[Any], BaseChatClient[Any]):
    """A chat client that says one piece of code, then that it is done."""

    def __init__(self, code: str, name: str = "execute_code") -> None:
        FunctionInvocationLayer.__init__(self)
        BaseChatClient.__init__(self)
        self.code, self.name, self.saw = code, name, list[Content]()

    def _inner_get_response(self, *, messages: Any, stream: bool, options: Any, **kwargs: Any) -> Any:
        async def say() -> ChatResponse:
            return ChatResponse(messages=Message(role="assistant", contents=[self._said(messages)]))

        async def stream_it() -> Any:
            yield ChatResponseUpdate(role="assistant", contents=[self._said(messages)])

        return ResponseStream(stream_it(), finalizer=ChatResponse.from_updates) if stream else say()

    def _said(self, messages: Any) -> Content:
        done = [c for m in messages for c in m.contents if c.type == "function_result"]
        if done:
            self.saw = done
            return Content.from_text("done")
        return Content.from_function_call(call_id="call-1", name=self.name, arguments={"code": self.code})


def _provider(sandbox: Any, settings: dict[str, Any]) -> Any:
    asks = FunctionTool(
        name="wipe", description="Delete something.", func=TOOLS["wipe"], approval_mode="always_require"
    )
    tools = [TOOLS["read"], TOOLS["add"], TOOLS["boom"], asks]
    kind = PROVIDERS.get(sandbox, JailCodeActProvider)
    provider = kind(tools=tools, per_call_approval=True, **settings)
    if sandbox == "process":  # has no provider of its own: it is no wall. The machinery is the same
        provider._environments = Environments(_renamed(provider._environments.setup))
    return provider


def _renamed(setup: Any) -> Any:
    from dataclasses import replace

    return replace(setup, sandbox="process")


def _told(client: Scripted, response: Any, session: AgentSession) -> dict[str, Any]:
    if requests := response.user_input_requests:
        [request] = requests
        told = request.additional_properties["hatchway"]
        state = {"session": session.to_dict(), "request": request.to_dict()}
        waiting = [(call["tool_name"], call["arguments"]) for call in told["calls"]]
        return {"waiting": waiting, "in_doubt": told["in_doubt"], "state": state, "saw": None}
    [result] = client.saw
    items = result.items or []
    failed = any(item.type == "error" for item in items)
    files = [item.additional_properties.get("name") or item.name for item in items if item.type == "data"]
    return {"saw": result.result, "failed": failed, "waiting": [], "files": files}


async def act(sandbox: Any, code: str, **settings: Any) -> dict[str, Any]:
    client, provider = Scripted(code), _provider(sandbox, settings)
    agent = Agent(client=client, context_providers=[provider])
    session = agent.create_session()
    try:
        return _told(client, await agent.run("go", session=session), session)
    finally:
        await provider.aclose()


async def go_on(sandbox: Any, code: str, state: dict[str, Any], answer: str, **settings: Any) -> dict[str, Any]:
    client, provider = Scripted(code), _provider(sandbox, settings)
    agent = Agent(client=client, context_providers=[provider])
    session, request = AgentSession.from_dict(state["session"]), Content.from_dict(state["request"])
    answers: dict[str, Any] = {
        "deny": Deny("not today"),
        "edit": Edit({"path": "/other"}),
        "ran": Ran("was wiped"),
        "not_run": NotRun(),
    }
    if answer == "allow":
        response = request.to_function_approval_response(approved=True)
    else:
        response = provider.decide(request, answers[answer], session=session)
    try:
        said = await agent.run(Message(role="user", contents=[response]), session=session)
        return _told(client, said, session)
    finally:
        await provider.aclose()


if __name__ == "__main__":
    given = json.loads(sys.stdin.read())
    print(json.dumps(asyncio.run(go_on(**given))))  # noqa: T201
