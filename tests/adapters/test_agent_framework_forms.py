"""Microsoft Agent Framework: the forms in which tools, mounts, domains and options are given, and what is refused."""

import asyncio
import inspect
import runpy
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from agent_framework import Agent, FunctionTool, MCPStdioTool

from hatchway.adapters.agent_framework import (
    AllowedDomain,
    FileMount,
    MontyCodeActProvider,
    MontyExecuteCodeTool,
)
from hatchway.core.errors import InvalidSetting, InvalidTool

pytestmark = pytest.mark.anyio
HERE = Path(__file__).parent
OTHERS: Any = runpy.run_path(str(HERE / "test_agent_framework.py"))
ran, prepared, add = OTHERS["ran"], OTHERS["prepared"], OTHERS["add"]
BOTH = ("GET", "HEAD")


def shop() -> MCPStdioTool:
    return MCPStdioTool(name="shop", command=sys.executable, args=[str(HERE / "shop_server.py")])


@pytest.mark.parametrize(
    ("given", "held"),
    [
        ("github.com", [("github.com", None)]),
        (("github.com", "get"), [("github.com", ("GET",))]),
        (("github.com", "PROPFIND"), [("github.com", ("PROPFIND",))]),
        (("github.com", BOTH), [("github.com", BOTH)]),
        (("github.com", list(BOTH)), [("github.com", BOTH)]),
        (AllowedDomain("github.com", BOTH), [("github.com", BOTH)]),
        ([("github.com", BOTH), "b.example"], [("github.com", BOTH), ("b.example", None)]),
        (("a.example", "b.example"), [("a.example", None), ("b.example", None)]),
        (("a.example", "localhost"), [("a.example", None), ("localhost", None)]),
        (("a.example", ("b.example", "GET")), [("a.example", None), ("b.example", ("GET",))]),
        (("a.example", AllowedDomain("b.example", BOTH)), [("a.example", None), ("b.example", BOTH)]),
    ],
)
def test_domain_is_never_granted_more_than_was_said(given: Any, held: Any) -> None:
    provider = MontyCodeActProvider(allowed_domains=given)
    assert [tuple(domain) for domain in provider.get_allowed_domains()] == held
    provider.clear_allowed_domains()
    provider.add_allowed_domains(given)
    assert [tuple(domain) for domain in provider.get_allowed_domains()] == held


@pytest.mark.parametrize("given", ["", "a b", "host:99999", ["a.example", 3], 3, None, [("a.example", [])]])
def test_what_is_no_domain_is_refused_when_it_is_added(given: Any) -> None:
    provider = MontyCodeActProvider()
    with pytest.raises(InvalidSetting, match="is not a domain"):
        provider.add_allowed_domains(given)
    with pytest.raises(KeyError):
        provider.remove_allowed_domain("a b")
    assert provider.get_allowed_domains() == []


def test_what_is_no_mount_is_refused_when_it_is_added(tmp_path: Path) -> None:
    provider = MontyCodeActProvider()
    for given in (tmp_path, 3, None, [tmp_path], (tmp_path, Path("x"))):
        with pytest.raises(InvalidSetting, match="is not a mount"):
            provider.add_file_mounts(given)  # pyright: ignore[reportArgumentType]
    provider.add_file_mounts([(tmp_path, "x"), (tmp_path / "..", "x")])  # of two at one path the last one holds
    assert provider.get_file_mounts() == [FileMount(tmp_path.parent.resolve(), "/input/x")]


def test_workspace_is_a_directory_and_has_its_place_alone(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidSetting, match="is not a directory"):
        MontyCodeActProvider(workspace_root=tmp_path / "file")
    with pytest.raises(InvalidSetting, match="/input is the workspace_root"):
        MontyCodeActProvider(workspace_root=tmp_path, file_mounts=[(tmp_path, "/input")])


def test_what_code_cannot_call_is_refused_and_says_what_to_do() -> None:
    provider = MontyCodeActProvider()
    declared = FunctionTool(name="declared", description="", func=None)
    for given, hint in [
        (declared, "give it to the agent"),
        ({"type": "web_search"}, "give it to the agent"),
        (partial(add, 1), "FunctionTool(name=…, func=…)"),
    ]:
        with pytest.raises(InvalidTool) as refused:
            provider.add_tools(given)
        assert refused.value.hint == hint
    for nothing in (3, None):
        with pytest.raises(InvalidTool, match="is not a tool, nor a list of them"):
            provider.add_tools(nothing)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    "option", [{"limits": 3}, {"journal": 3}, {"result_form": "x"}, {"tool_name": "run code"}, {"approval_mode": "ask"}]
)
def test_options_are_checked_when_the_provider_is_made(option: dict[str, Any]) -> None:
    for kind in (MontyCodeActProvider, MontyExecuteCodeTool):
        with pytest.raises(InvalidSetting, match=next(iter(option))):
            kind(**option)


def test_options_are_spelled_out() -> None:
    told = inspect.signature(MontyCodeActProvider).parameters
    assert (told["tools"].annotation, told["tool_name"].default) == (
        "ToolInput | Sequence[ToolInput] | None",
        "execute_code",
    )


async def test_names_that_become_one_in_code_stay_two() -> None:
    def named(name: str, value: int) -> FunctionTool:
        return FunctionTool(name=name, description="", func=lambda: value)

    tools = [named("a-b", 1), named("a_b", 2), named("call_tool", 3)]
    saw, _ = await ran("[a_b(), a_b_(), call_tool_(), call_tool('a-b'), call_tool('a_b')]", tools=tools)
    assert saw == "[1,2,3,1,2]"


async def test_two_providers_of_one_agent_have_two_names() -> None:
    async with (
        MontyCodeActProvider("one", tools=[add]) as one,
        MontyCodeActProvider("two", tool_name="run_apart") as two,
    ):
        client = OTHERS["DRIVER"]["Scripted"]("add(1)")
        agent = Agent(client=client, context_providers=[one, two])
        await agent.run("go", session=agent.create_session())
        assert client.saw[0].result == "3"
        context, tool = await prepared(two)
    assert tool.name == "run_apart"
    assert "`run_apart`" in tool.description
    assert "execute_code" not in tool.description + str(context.instructions)


async def test_paused_action_of_a_renamed_tool_goes_on() -> None:
    asks = FunctionTool(name="add", description="", func=add, approval_mode="always_require")
    async with MontyCodeActProvider(tools=[asks], per_call_approval=True, tool_name="run_code") as provider:
        client = OTHERS["DRIVER"]["Scripted"]("add(5)", name="run_code")
        agent = Agent(client=client, context_providers=[provider])
        session = agent.create_session()
        [request] = (await agent.run("go", session=session)).user_input_requests
        assert request.function_call is not None
        assert request.function_call.name == "run_code"
        await agent.run(provider.decide(request, True, session=session), session=session)
        assert client.saw[0].result == "7"


async def test_session_of_a_run_without_pauses_is_left_as_it_was() -> None:
    async with MontyCodeActProvider() as provider:
        agent = Agent(client=OTHERS["DRIVER"]["Scripted"]("1"), context_providers=[provider])
        session = agent.create_session()
        await agent.run("go", session=session)
        assert not session.state.get("monty_codeact")


async def test_tools_of_an_mcp_server_are_functions_of_the_code() -> None:
    server = shop()
    async with MontyCodeActProvider(tools=[server, add]) as provider:
        assert provider.get_tools()[0] is server
        said = await asyncio.gather(*[ran("[price('tea'), add(1)]", provider=provider) for _ in range(2)])
        assert [saw for saw, _ in said] == ['["{\\"result\\": 3.5}",3]'] * 2
        provider.remove_tool("shop")
        assert "price" not in (await prepared(provider))[1].description
    assert not server.is_connected


async def test_server_somebody_else_connected_stays_connected() -> None:
    async with shop() as server:
        async with MontyCodeActProvider(tools=server) as provider:
            assert "price" in (await prepared(provider))[1].description
        assert server.is_connected
        tool = MontyExecuteCodeTool(tools=[server])
        assert "price" in tool.description


async def test_server_that_is_not_connected_cannot_be_told_of() -> None:
    with pytest.raises(InvalidTool, match="the server 'shop' is not connected"):
        MontyExecuteCodeTool(tools=[shop()])


async def test_tool_named_like_one_of_a_server_is_refused() -> None:
    def price(item: str) -> float:
        return 0.0

    async with MontyCodeActProvider(tools=[shop(), price]) as provider:
        with pytest.raises(InvalidTool, match="two tools are named 'price'"):
            await prepared(provider)
