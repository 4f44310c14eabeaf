"""Pydantic AI: what else an agent has, beside code: limits of usage, streams, typed outputs, toolsets of others."""

import asyncio
import json
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, BinaryContent, RunContext, Tool, ToolReturn, UsageLimits
from pydantic_ai.exceptions import UsageLimitExceeded, UserError
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.messages import ModelResponse, ToolCallPart, UserPromptPart
from pydantic_ai.models.function import DeltaToolCall, FunctionModel
from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults, ToolApproved
from pydantic_ai.toolsets import FunctionToolset

from hatchway.adapters.pydantic_ai import CodeModeCapability, CodeModeToolset

pytestmark = pytest.mark.anyio
HERE = Path(__file__).parent
OTHERS: Any = runpy.run_path(str(HERE / "test_pydantic_ai.py"))
scripted, agent_of, returns, tools, DID = (OTHERS[name] for name in ("scripted", "agent_of", "returns", "tools", "DID"))


@pytest.mark.parametrize(
    "code",
    [
        "[look(str(i)) for i in range(6)]",
        "import asyncio\nawait asyncio.gather(*[look(str(i)) for i in range(6)])",
        "for i in range(6):\n    try:\n        look(str(i))\n    except RuntimeError:\n        pass",
    ],
    ids=["in turn", "at once", "caught"],
)
async def test_limit_of_tool_calls_holds_inside_the_code(code: str) -> None:
    toolset = CodeModeToolset(tools(), sandbox="monty")
    with pytest.raises(UsageLimitExceeded, match="tool_calls_limit of 3"):
        await agent_of(scripted(code), toolset).run("go", usage_limits=UsageLimits(tool_calls_limit=3))
    assert 1 <= len(DID) <= 2  # the call of the code itself is one of the three; those at once may be cut short
    await toolset.aclose()


async def test_as_many_calls_as_the_limit_allows() -> None:
    toolset = CodeModeToolset(tools(), sandbox="monty")
    limits = UsageLimits(tool_calls_limit=3)
    result = await agent_of(scripted("look('a'), look('b')"), toolset).run("go", usage_limits=limits)
    assert result.usage.tool_calls == 3
    await toolset.aclose()


async def test_agent_that_a_tool_asks_ends_the_run_when_it_exceeds_the_limits_they_share() -> None:
    def asked(messages: Any, info: Any) -> ModelResponse:
        return ModelResponse(parts=[ToolCallPart("nothing", {})])

    helper = Agent(FunctionModel(asked), tools=[Tool(lambda: 1, name="nothing")])

    async def ask(ctx: RunContext[Any]) -> str:
        return str(await helper.run("help", usage=ctx.usage, usage_limits=UsageLimits(request_limit=3)))

    toolset = CodeModeToolset(FunctionToolset([Tool(ask)]), sandbox="monty")
    with pytest.raises(UsageLimitExceeded, match="request_limit"):
        await agent_of(scripted("ask()"), toolset).run("go")
    await toolset.aclose()


async def test_what_a_tool_shows_beside_its_value_reaches_the_model() -> None:
    picture = BinaryContent(data=b"\x89PNG", media_type="image/png")

    def screen() -> ToolReturn[str]:
        return ToolReturn(return_value="taken", content=["the screen:", picture])

    toolset = CodeModeToolset(FunctionToolset([screen]), sandbox="monty")
    result = await agent_of(scripted("screen()"), toolset).run("go")
    await toolset.aclose()
    assert [part.content for part in returns(result)] == ["taken"]
    prompts = [part.content for m in result.all_messages() for part in m.parts if isinstance(part, UserPromptPart)]
    assert prompts[-1] == ["the screen:", picture]


async def test_arguments_for_several_calls_at_once_are_the_applications_mistake_and_lose_nothing() -> None:
    toolset = CodeModeToolset(tools(), sandbox="monty")
    agent = agent_of(scripted("import asyncio\nawait asyncio.gather(wipe('/a'), wipe('/b'))"), toolset)
    asked = await agent.run("go")
    [call] = asked.output.approvals
    given: dict[str, Any] = {"metadata": asked.output.metadata}
    edited = DeferredToolResults(approvals={call.tool_call_id: ToolApproved(override_args={"path": "/x"})}, **given)
    with pytest.raises(UserError, match="several calls at once"):
        await agent.run(message_history=asked.all_messages(), deferred_tool_results=edited)
    assert DID == []
    yes = DeferredToolResults(approvals={call.tool_call_id: True}, **given)
    end = await agent.run(message_history=asked.all_messages(), deferred_tool_results=yes)
    assert [part.content for part in returns(end)] == [["wiped /a", "wiped /b"]]
    await toolset.aclose()


@pytest.mark.parametrize(
    ("rubbish", "ends"),
    [
        ({"calls": "rubbish"}, "wiped /a"),
        ({"calls": [3]}, "wiped /a"),
        ({"decisions": [1]}, "the decision could not be read"),
        ({"decisions": {}}, "the decision could not be read"),
        ({"decisions": {"another": {"kind": "allow"}}}, "the decision could not be read"),
    ],
)
async def test_metadata_that_was_mangled_allows_nothing(rubbish: dict[str, Any], ends: str) -> None:
    toolset = CodeModeToolset(tools(), sandbox="monty")
    agent = agent_of(scripted("wipe('/a')"), toolset)
    asked = await agent.run("go")
    [(call_id, metadata)] = asked.output.metadata.items()
    mangled = {call_id: {**metadata, "code_mode": {**metadata["code_mode"], **rubbish}}}
    results = DeferredToolResults(approvals={call_id: True}, metadata=mangled)
    end = await agent.run(message_history=asked.all_messages(), deferred_tool_results=results)
    assert ends in str(returns(end)[0].content)
    assert len(DID) == (ends == "wiped /a")
    await toolset.aclose()


async def test_streams_and_steps_run_code_too() -> None:
    async def say(messages: Any, info: Any) -> Any:
        if len(messages) == 1:
            yield {0: DeltaToolCall(name="execute_code", json_args=json.dumps({"code": "look('x')['name']"}))}
        else:
            yield f"it is {messages[-1].parts[0].content}"

    capability = CodeModeCapability[Any](sandbox="monty")
    agent = Agent(FunctionModel(stream_function=say), toolsets=[tools()], capabilities=[capability])
    async with agent.run_stream("go") as streamed:
        assert await streamed.get_output() == "it is x"
    async with agent.run_stream_events("go") as events:
        kinds = [event.event_kind async for event in events]
    assert kinds.count("function_tool_result") == 1
    assert DID == ["look x", "look x"]
    await capability.aclose()


async def test_typed_output_beside_code() -> None:
    class Answer(BaseModel):
        size: int

    def say(messages: Any, info: Any) -> ModelResponse:
        if len(messages) == 1:
            return ModelResponse(parts=[ToolCallPart("execute_code", {"code": "look('x')['size']"})])
        [output] = info.output_tools
        return ModelResponse(parts=[ToolCallPart(output.name, {"size": 7})])

    capability = CodeModeCapability[Any](sandbox="monty")
    agent = Agent(FunctionModel(say), toolsets=[tools()], capabilities=[capability], output_type=Answer)
    assert (await agent.run("go")).output == Answer(size=7)
    await capability.aclose()


async def test_agents_that_ask_agents_keep_their_calls_apart() -> None:
    inner = CodeModeCapability[Any](sandbox="monty")
    helper = Agent(scripted("look('inner')['name']"), toolsets=[tools()], capabilities=[inner])

    async def ask() -> str:
        return str(returns(await helper.run("help"))[0].content)

    def plain(n: int) -> int:
        return n

    outer = CodeModeToolset(FunctionToolset([ask, plain]), sandbox="monty")
    code = "import asyncio\nawait asyncio.gather(plain(1), ask(), plain(2))"
    result = await agent_of(scripted(code), outer).run("go")
    assert [part.content for part in returns(result)] == [[1, "inner", 2]]
    await asyncio.gather(outer.aclose(), inner.aclose())


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        (lambda shop: shop, "price('tea')"),
        (lambda shop: shop.prefixed("shop"), "shop_price(item='tea')"),
        (lambda shop: shop.renamed({"cost": "price"}), "await cost('tea')"),
        (lambda shop: shop.filtered(lambda ctx, tool: tool.name == "price"), "price('tea')"),
    ],
    ids=["plain", "prefixed", "renamed", "filtered"],
)
async def test_tools_of_an_mcp_server_however_they_are_wrapped(changed: Any, code: str) -> None:
    from fastmcp.client.transports import StdioTransport

    shop = MCPToolset[Any](StdioTransport(sys.executable, [str(HERE / "shop_server.py")]))
    toolset = CodeModeToolset(changed(shop), sandbox="monty")
    async with (agent := agent_of(scripted(code), toolset)):
        result = await agent.run("go")
    assert [part.content for part in returns(result)] == [3.5]
    await toolset.aclose()


async def test_code_that_must_be_approved_itself_and_the_call_in_it_too() -> None:
    toolset = CodeModeToolset(tools(), sandbox="monty")
    agent = agent_of(scripted("wipe('/a')"), toolset.approval_required())
    result = await agent.run("go")
    asked: list[bool] = []
    while isinstance(output := result.output, DeferredToolRequests):
        assert DID == []
        asked.append(bool(output.metadata))
        yes = output.build_results(approve_all=True, metadata=output.metadata)
        result = await agent.run(message_history=result.all_messages(), deferred_tool_results=yes)
    assert asked == [False, True]  # about the code, then about the call
    assert DID == ["wipe /a"]
    await toolset.aclose()
