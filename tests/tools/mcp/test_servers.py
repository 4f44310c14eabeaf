"""MCP servers as tools: lists, calls, crashes, floods and lies, with a server that misbehaves on request."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from hatchway.core.errors import InvalidSetting, ServerUnavailable, ToolError
from hatchway.tools.functions import Tool
from hatchway.tools.mcp.offered import offered
from hatchway.tools.mcp.servers import McpServers
from hatchway.tools.mcp.settings import StdioSettings
from hatchway.tools.stubs import render_stubs

pytestmark = pytest.mark.anyio
ODD = str(Path(__file__).with_name("odd_server.py"))


def odd(lists: str = "", **settings: Any) -> dict[str, Any]:
    return {"odd": {"command": sys.executable, "args": [ODD, lists], "connect_timeout": 100, **settings}}


async def called(servers: McpServers, name: str, **arguments: Any) -> Any:
    tools = {tool.name: tool for tool in await servers.tools()}
    return await tools[f"odd.{name}"].func(**arguments)


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_one_connection_serves_all_calls_and_its_process_ends_with_it() -> None:
    async with McpServers(odd()) as servers:
        pids = await asyncio.gather(*(called(servers, "pid") for _ in range(5)))
        assert len(set(pids)) == 1
        assert await called(servers, "echo", text="ä\u2028\n") == "ä\u2028\n"
    assert not is_alive(int(pids[0]))


async def test_nothing_is_started_before_it_is_needed() -> None:
    async with McpServers(odd()) as servers:
        assert servers.is_stale
        assert servers.connection("odd").starts == 0


async def test_a_server_that_dies_during_a_call_fails_that_call_and_is_started_again() -> None:
    async with McpServers(odd()) as servers:
        before = await called(servers, "pid")
        with pytest.raises(ToolError) as raised:
            await called(servers, "die")
        assert raised.value.message == (
            "the MCP server 'odd' died during the call; exit code 3; its last words: giving up"
        )
        assert raised.value.hint == "the next call starts it anew; look first whether this one had an effect"
        assert await called(servers, "pid") != before
        assert servers.connection("odd").starts == 2


async def test_an_error_of_a_servers_own_is_told_as_it_is_and_ends_no_other_call() -> None:
    async with McpServers(odd("refusing")) as servers:
        beside = asyncio.create_task(called(servers, "progress"))
        with pytest.raises(ToolError) as raised:
            await called(servers, "refuse")
        assert raised.value.message == "the server refused the call: quota used up"
        assert await beside == "progress"
        assert servers.connection("odd").starts == 1


async def test_a_server_that_stops_listening_is_started_again() -> None:
    async with McpServers(odd()) as servers:
        assert await called(servers, "deaf") == "cannot hear you any more"
        with pytest.raises(ToolError) as raised:
            await called(servers, "echo", text="x")
        assert raised.value.message == "the MCP server 'odd' died during the call; it said nothing"
        assert await called(servers, "echo", text="y") == "y"
        assert servers.connection("odd").starts == 2


async def test_a_call_without_an_answer_ends_and_is_cancelled_on_the_server() -> None:
    async with McpServers(odd(timeout=0.5)) as servers:
        await servers.tools()
        with pytest.raises(ToolError, match=r"^odd\.hang did not answer within 0\.5 s\nset \"timeout\""):
            await called(servers, "hang")
        task = asyncio.create_task(called(servers, "hang"))
        await asyncio.sleep(0.1)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert len(json.loads(await called(servers, "cancelled"))) == 2


async def test_progress_keeps_a_slow_call_alive() -> None:
    async with McpServers(odd(timeout=1.2)) as servers:
        assert await called(servers, "progress") == "progress"


@pytest.mark.parametrize(("tool", "value"), [("flood", "still here"), ("garbage", "after garbage")])
async def test_noise_does_not_hurt(tool: str, value: str) -> None:
    async with McpServers(odd()) as servers:
        assert await called(servers, tool) == value
        assert await called(servers, "echo", text="well") == "well"


@pytest.mark.parametrize(
    ("tool", "said"),
    [
        ("deep", "the server's answer is none that can be read: {"),
        ("neither", 'the server\'s answer is none that can be read: {"jsonrpc": "2.0", "id": '),
    ],
)
async def test_an_answer_that_cannot_be_read_fails_its_call_at_once(tool: str, said: str) -> None:
    async with McpServers(odd("answers")) as servers:
        with pytest.raises(ToolError) as raised:
            await called(servers, tool)
        assert str(raised.value).startswith(said)
        assert len(str(raised.value)) < 200


async def test_answers_with_small_mistakes() -> None:
    async with McpServers(odd("answers")) as servers:
        assert await called(servers, "half") == "cut here: \N{REPLACEMENT CHARACTER}"
        assert await called(servers, "bare") == {"rows": [1]}
        assert await called(servers, "new_kind") == ["seen", '{"type": "hologram", "depth": 3}']


async def test_what_was_no_answer_is_told_when_none_comes() -> None:
    async with McpServers(odd("answers", timeout=1)) as servers:
        with pytest.raises(ToolError) as raised:
            await called(servers, "chatty")
    assert raised.value.message == (
        "odd.chatty did not answer within 1 s; it wrote what is no MCP message: 'thinking about it'"
    )


async def test_what_comes_back() -> None:
    async with McpServers(odd()) as servers:
        assert await called(servers, "image") == {"type": "image", "mime_type": "image/png", "data": b"\x89PNG"}
        assert len(await called(servers, "huge")) == 5_000_000
        with pytest.raises(ToolError, match=r"^no such row$"):
            await called(servers, "fail")
        assert "not supported" in await called(servers, "ask")


async def test_a_changed_list_is_read_again() -> None:
    async with McpServers(odd()) as servers:
        await called(servers, "change")
        while not servers.is_stale:  # the notification is handled beside the answer
            await asyncio.sleep(0.01)
        assert "odd.added" in [tool.name for tool in await servers.tools()]


async def test_five_thousand_tools() -> None:
    async with McpServers(odd("many")) as servers:
        tools = await servers.tools()
        assert len(tools) == 5000
        assert await tools[4999].func(text="last") == "last"


async def test_names_that_clash_or_are_keywords() -> None:
    async with McpServers(odd("twice")) as servers:
        assert [tool.name for tool in await servers.tools()] == ["odd.a_b", "odd.a_b_2", "odd.from_"]


async def test_a_schema_that_is_none_leaves_the_arguments_to_the_server(caplog: pytest.LogCaptureFixture) -> None:
    async with McpServers(odd("broken")) as servers:
        tools: list[Tool] = await servers.tools()
        assert [tool.name for tool in tools] == ["odd.echo", "odd.fine"]
        assert tools[0].bind((), {"x": [1]}) == {"x": [1]}
        assert "its arguments are left to the server to check" in caplog.text


async def test_a_description_stays_a_description(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    async with McpServers(odd("code")) as servers:
        exec(compile(render_stubs(await servers.tools()), "stubs", "exec"), {})
    assert not (tmp_path / "injected").exists()


@pytest.mark.parametrize(
    ("lists", "settings", "said"),
    [
        ("mute", {"connect_timeout": 1}, "no answer within 1 s"),
        ("rubbish", {"connect_timeout": 2}, "it wrote what is no MCP message: 'Welcome to my server!'"),
        ("stillborn", {}, "exit code 1; its last words: no licence found"),
        ("", {"command": "no-such-program"}, "'no-such-program' cannot be started: No such file or directory"),
    ],
)
async def test_servers_that_cannot_be_had(lists: str, settings: dict[str, Any], said: str) -> None:
    async with McpServers(odd(lists, **settings)) as servers:
        with pytest.raises(ServerUnavailable) as raised:
            await servers.tools()
    assert said in raised.value.message
    assert "signal" not in raised.value.message  # who was sent away did not die


async def test_all_servers_that_cannot_be_had_are_named() -> None:
    entries = odd("stillborn") | {"other": odd()["odd"], "third": {"command": "no-such-program"}}
    async with McpServers(entries) as servers:
        with pytest.raises(ServerUnavailable) as raised:
            await servers.tools()
    first, why, third, third_why = raised.value.message.splitlines()[1:]
    assert raised.value.message.startswith("2 MCP servers cannot be had:\n")
    assert first.startswith("- MCP server 'odd' (the command")
    assert why == "  run the command of server 'odd' in a shell to see why"
    assert "third" in third
    assert "no-such-program" in third + third_why
    assert raised.value.hint.startswith('with "optional": true in its entry a server is done without')


async def test_an_optional_server_is_done_without() -> None:
    entries = odd("stillborn", optional=True) | {"other": odd()["odd"]}
    async with McpServers(entries) as servers:
        assert {tool.name.split(".")[0] for tool in await servers.tools()} == {"other"}
        assert "no licence found" in servers.problems["odd"]
        assert not servers.is_stale


@pytest.mark.parametrize(("path", "said"), [("/missing", "HTTP 404 Not Found"), ("/empty", "")])
async def test_http_refusals(web: Any, path: str, said: str) -> None:
    async with McpServers({"far": {"url": f"{web.url}{path}", "connect_timeout": 20}}) as servers:
        with pytest.raises(ServerUnavailable) as raised:
            await servers.tools()
    assert said in raised.value.message


@pytest.mark.parametrize(
    ("status", "said", "hint"),
    [
        (401, "HTTP 401 Unauthorized", 'set its "headers", such as {"Authorization": "Bearer ${TOKEN}"}'),
        (500, "HTTP 500 Internal Server Error", "look whether the server runs, and whether the url is right"),
    ],
)
async def test_http_statuses(status: int, said: str, hint: str) -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(f"HTTP/1.1 {status} X\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(refuse, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with McpServers({"far": {"url": f"http://127.0.0.1:{port}/mcp", "connect_timeout": 20}}) as servers:
            with pytest.raises(ServerUnavailable) as raised:
                await servers.tools()
    assert said in raised.value.message
    assert raised.value.hint == hint


async def test_a_certificate_nobody_signed(secure_web: Any) -> None:
    async with McpServers({"far": {"url": secure_web.url, "connect_timeout": 20}}) as servers:
        with pytest.raises(ServerUnavailable) as raised:
            await servers.tools()
    assert "TLS failed" in raised.value.message
    assert raised.value.hint == 'set its "ca_file" to the certificate that signed the server\'s'


async def test_a_server_that_speaks_no_tls(web: Any) -> None:
    url = web.url.replace("http://", "https://")
    async with McpServers({"far": {"url": f"{url}/mcp", "connect_timeout": 20}}) as servers:
        with pytest.raises(ServerUnavailable) as raised:
            await servers.tools()
    assert "TLS failed" in raised.value.message
    assert raised.value.hint == (
        "look whether the server speaks TLS at this port; one that does not has an http:// url"
    )


async def test_a_key_in_an_address_is_not_told() -> None:
    async with McpServers({"far": {"url": "http://me:secret@127.0.0.1:9/mcp?key=secret#secret"}}) as servers:
        with pytest.raises(ServerUnavailable) as raised:
            await servers.tools()
    assert "(http://127.0.0.1:9/mcp)" in raised.value.message
    assert "secret" not in str(raised.value)


async def test_nobody_there() -> None:
    async with McpServers({"far": {"url": "http://127.0.0.1:9/mcp", "connect_timeout": 20}}) as servers:
        with pytest.raises(ServerUnavailable, match="no connection"):
            await servers.tools()


def test_settings_tell_all_missing_variables_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HATCHWAY_SET", "yes")
    entries = {
        "a": {"command": "x", "env": {"K": "${HATCHWAY_NOT_1}", "L": "${HATCHWAY_SET}"}},
        "b": {"url": "https://e.test/mcp", "headers": {"Authorization": "Bearer ${HATCHWAY_NOT_2}"}},
    }
    with pytest.raises(InvalidSetting, match=r"not set: HATCHWAY_NOT_1, HATCHWAY_NOT_2\n"):
        McpServers(entries)
    filled = McpServers({"a": {"command": "${HATCHWAY_NOT:-sh}", "args": ["${HATCHWAY_SET}"]}}).settings["a"]
    assert (getattr(filled, "command", ""), getattr(filled, "args", ())) == ("sh", ("yes",))


def test_a_server_that_is_off_needs_no_variables() -> None:
    needing = {"command": "x", "env": {"K": "${HATCHWAY_NOT_1}"}}
    assert McpServers({"a": {**needing, "disabled": True}, "b": {**needing, "enabled": False}}).settings == {}


@pytest.mark.parametrize(
    ("entry", "ours"),
    [
        ({"command": "x", "autoApprove": ["*"], "disabled": False}, {"command": "x"}),
        ({"command": "x", "alwaysAllow": ["y"], "transport": "stdio", "description": "d"}, {"command": "x"}),
        (
            {"serverUrl": "http://e.test/mcp", "transport": "streamable-http"},
            {"url": "http://e.test/mcp", "type": "streamable-http"},
        ),
        (
            {"httpUrl": "http://e.test/mcp", "trust": True, "excludeTools": ["a"]},
            {"url": "http://e.test/mcp", "exclude": ["a"]},
        ),
        ({"command": "x", "tools": ["a*"], "include": ["b*"], "enabled": True}, {"command": "x", "include": ["b*"]}),
    ],
)
def test_entries_as_other_clients_write_them(entry: dict[str, Any], ours: dict[str, Any]) -> None:
    found = McpServers({"one": entry}).settings["one"]
    assert found == McpServers({"one": ours}).settings["one"]
    assert found.approval == "ask"


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"url": "http://e.test/sse", "type": "sse"}, "the SSE transport is no more, streamable HTTP is spoken here"),
        ({}, "an entry has either a command or a url"),
        ({"command": "x", "url": "https://e.test"}, "an entry has either a command or a url"),
        ({"command": "x", "arg": []}, "arg: there is no such word"),
        ({"url": "ftp://e.test"}, "url: must begin with http:// or https://"),
        ({"command": "x", "timeout": 0}, "timeout: Input should be greater than 0"),
        ({"command": "x", "sandbox": {"reads": []}}, "sandbox.reads: there is no such word"),
    ],
)
def test_settings_that_are_not_valid(entry: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidSetting) as raised:
        McpServers({"one": entry})
    assert raised.value.message.startswith("MCP server 'one': ")
    assert said in raised.value.message


def test_a_word_that_was_meant_is_named() -> None:
    with pytest.raises(InvalidSetting) as raised:
        McpServers({"one": {"command": "x", "arg": []}})
    assert raised.value.hint == "did you mean 'args'?"
    with pytest.raises(InvalidSetting) as raised:
        McpServers({"one": {"command": "x", "sandbox": {"wriet": []}}})
    assert raised.value.hint == "did you mean 'write'?"


def test_a_tool_that_says_it_reads_and_destroys_is_not_read_only() -> None:
    async def call(tool: str, arguments: dict[str, Any], is_task: bool) -> dict[str, Any]:
        return {}

    reads = {"readOnlyHint": True}
    said = {"both": reads | {"destructiveHint": True}, "reads": reads}
    listed = [{"name": name, "inputSchema": {"type": "object"}, "annotations": hints} for name, hints in said.items()]
    made = offered("odd", listed, StdioSettings(command="odd"), call).tools
    assert [(tool.read_only, tool.idempotent) for tool in made] == [(False, False), (True, True)]
