"""Hatchway as an MCP server for other people's clients: fastmcp's over stdio, the SDK's over HTTP."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from mcp.client.client import Client as SdkClient
from mcp.client.streamable_http import streamable_http_client
from mcp.types import AudioContent, ElicitResult, ImageContent, TextContent

from hatchway import CodeMode, CodeSandbox, Tool, tool
from hatchway.adapters.mcp_server import Hearing, McpFace, serve_http
from hatchway.core.errors import InvalidSetting
from hatchway.journal.store import Journal
from hatchway.sandboxes.jail import JailSandbox
from hatchway.sandboxes.process import ProcessSandbox
from hatchway.tools.search.discovery import Finder
from hatchway.tools.search.settings import SearchSettings

pytestmark = pytest.mark.anyio
ODD = {"command": sys.executable, "args": [str(Path(__file__).parents[1] / "tools" / "mcp" / "odd_server.py")]}


@tool(approval="ask")
def charge(euros: int) -> int:
    """Charge a card."""
    return euros


def face(tools: list[Tool], tmp_path: Path, sandbox: CodeSandbox | str = "monty") -> McpFace:
    settings = SearchSettings(directory=tmp_path, database=None, embedder="test", dimensions=8)
    finder, hearing = Finder("basic", settings), Hearing()
    return McpFace(CodeMode(sandbox, tools=tools, discovery=finder, on_event=hearing), finder, hearing)


@asynccontextmanager
async def served(what: McpFace, token: str | None = "t0ken") -> AsyncIterator[str]:
    address: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    serving = asyncio.create_task(serve_http(what, port=0, token=token, on_ready=address.set_result))
    try:
        yield await address
    finally:
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)


@asynccontextmanager
async def connected(url: str, token: str = "t0ken", **settings: Any) -> AsyncIterator[SdkClient]:
    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=60) as http:
        async with SdkClient(streamable_http_client(url, http_client=http), **settings) as client:
            yield client


def said(result: Any) -> str:
    return "\n".join(block.text for block in result.content if block.type == "text")


async def test_the_command_line_behind_another_client(tmp_path: Path) -> None:
    config = tmp_path / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {"odd": ODD, "gone": {"command": "no-such-program"}}}))
    args = ["-m", "hatchway", "serve", "mcp", "--config", str(config), "--sandbox", "monty", "--allow", "odd.e*"]
    logs: list[Any] = []
    steps: list[Any] = []

    async def log(message: Any) -> None:
        logs.append(message.data)

    async def progress(*told: Any) -> None:
        steps.append(told[-1])

    transport = StdioTransport(sys.executable, args, cwd=str(tmp_path))
    async with Client(transport, log_handler=log, progress_handler=progress) as client:
        tools = await client.list_tools()
        assert [each.name for each in tools] == [
            "execute_code", "search_tools", "describe_tool", "resume", "close_session",
        ]  # fmt: skip
        assert "Categories (number of tools): odd (16)" in (tools[0].description or "")
        result = await client.call_tool("execute_code", {"code": "print('hello')\nodd.echo(text='x')", "session": "s"})
        assert said(result) == "hello\nx"
        assert steps == ["odd.echo …", "odd.echo done"]
        assert "odd.echo" in said(await client.call_tool("search_tools", {"query": "echo"}))
        assert "def echo(text: str)" in said(await client.call_tool("describe_tool", {"name": "odd.echo"}))
    assert logs == ["hello\n"]


@pytest.mark.parametrize("protocol", ["legacy", "auto"])
async def test_a_person_is_asked_by_their_client(protocol: str, tmp_path: Path) -> None:
    questions: list[str] = []

    async def answer(context: Any, params: Any) -> ElicitResult:
        questions.append(params.message)
        word = "allow" if "5" in params.message else "deny"
        return ElicitResult(action="accept", content={"decision": word, "reason": "too much"})

    async with served(face([charge], tmp_path)) as url:
        async with connected(url, elicitation_callback=answer, mode=protocol) as client:
            assert said(await client.call_tool("execute_code", {"code": "charge(5)"})) == "5"
            refused = await client.call_tool("execute_code", {"code": "charge(900)"})
    assert refused.is_error
    assert "ToolDenied: too much" in said(refused)
    assert questions == [f'The code wants to call charge({{"euros": {n}}}).' for n in (5, 900)]


async def test_a_client_without_a_person_gets_calls_that_wait(tmp_path: Path) -> None:
    async with served(face([charge], tmp_path)) as url, connected(url) as client:
        waiting = await client.call_tool("execute_code", {"code": "charge(7) + 1"})
        told: Any = waiting.structured_content
        assert told["pending"] == [{"call_id": "0", "tool": "charge", "arguments": '{"euros": 7}'}]
        strange = await client.call_tool("resume", {"run_id": told["run_id"], "decisions": {"9": "allow"}})
        assert said(strange) == "9: no such pending call; pending are 0\ndecide about one of these"
        done = await client.call_tool("resume", {"run_id": told["run_id"], "decisions": {"0": "allow"}})
        assert said(done) == "8"
        unknown = await client.call_tool("resume", {"run_id": "nope", "decisions": {}})
        assert unknown.is_error
        assert said(unknown).startswith("no run 'nope' in this journal")


@pytest.mark.parametrize(("word", "given"), [({"ran": 5}, "6"), ("not_run", "3")])
async def test_a_run_whose_server_was_killed_in_a_call_can_be_settled(word: Any, given: str, tmp_path: Path) -> None:
    tools = tmp_path / "tools.py"
    tools.write_text(
        "import os\nfrom pathlib import Path\n\n\n"
        "def pay() -> int:\n    if not Path('died').exists():\n        Path('died').touch()\n"
        "        os.kill(os.getpid(), 9)\n    return 2\n"
    )
    serve = ["-m", "hatchway", "serve", "mcp", "--tools", str(tools), "--journal", "journal.db", "--sandbox", "monty"]
    with pytest.raises(Exception, match="Connection closed"):
        async with Client(StdioTransport(sys.executable, serve, cwd=str(tmp_path), keep_alive=False)) as client:
            await client.call_tool("execute_code", {"code": "pay() + 1"})
    [run] = Journal(tmp_path / "journal.db").runs(limit=5)
    async with Client(StdioTransport(sys.executable, serve, cwd=str(tmp_path), keep_alive=False)) as client:
        doubt = await client.call_tool("resume", {"run_id": run.run_id, "decisions": {}})
        told: Any = doubt.structured_content
        [call] = told["pending"]
        assert (told["status"], call["tool"]) == ("in_doubt", "pay")
        done = await client.call_tool("resume", {"run_id": run.run_id, "decisions": {call["call_id"]: word}})
        assert said(done) == given


@pytest.mark.parametrize(("how", "code"), [("interrupt", 130), ("hang up", 0)])
def test_it_ends_in_order_in_the_middle_of_a_call(how: str, code: int, tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text("import asyncio\n\n\nasync def rest() -> None:\n    await asyncio.sleep(600)\n")
    command = [sys.executable, "-m", "hatchway", "serve", "mcp", "--sandbox", "monty", "--tools", "tools.py"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=tmp_path, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as serving:
        assert serving.stdin is not None
        assert serving.stdout is not None
        assert serving.stderr is not None
        about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}
        call = {"name": "execute_code", "arguments": {"code": "print('here')\nawait rest()"}}
        for message in (
            {"id": 1, "method": "initialize", "params": about},
            {"method": "notifications/initialized"},
            {"id": 2, "method": "tools/call", "params": call},
        ):
            serving.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
            serving.stdin.flush()
        while "here" not in serving.stdout.readline():
            pass
        if how == "interrupt":
            serving.send_signal(signal.SIGINT)
        else:
            serving.stdout.close()
            serving.stdin.close()
        assert serving.wait(30) == code
        assert "Traceback" not in serving.stderr.read()


async def test_sessions_belong_to_their_client(tmp_path: Path) -> None:
    async with served(face([], tmp_path)) as url:
        async with connected(url, mode="legacy") as one, connected(url, mode="legacy") as other:
            await one.call_tool("execute_code", {"code": "x = 1", "session": "s"})
            assert said(await one.call_tool("execute_code", {"code": "x", "session": "s"})) == "1"
            assert (await other.call_tool("execute_code", {"code": "x", "session": "s"})).is_error
            await one.call_tool("close_session", {"session": "s"})
            assert (await one.call_tool("execute_code", {"code": "x", "session": "s"})).is_error


@pytest.mark.parametrize("sandbox", ["monty", "process"])
async def test_a_session_that_waits_takes_no_other_action(sandbox: str, tmp_path: Path) -> None:
    async with served(face([charge], tmp_path, sandbox)) as url, connected(url, mode="legacy") as client:
        waiting = await client.call_tool("execute_code", {"code": "x = charge(7)\nx", "session": "s"})
        told: Any = waiting.structured_content
        other = await client.call_tool("execute_code", {"code": "1", "session": "s"})
        assert other.is_error
        assert said(other) == (
            f"session 's' stands at run {told['run_id']}, which waits for approval\n"
            "call resume with decisions about that run, or close_session"
        )
        decisions = {told["pending"][0]["call_id"]: "allow"}
        resumed = await client.call_tool("resume", {"run_id": told["run_id"], "decisions": decisions})
        assert said(resumed) == "7"
        assert said(await client.call_tool("execute_code", {"code": "x + 1", "session": "s"})) == "8"
        await client.call_tool("execute_code", {"code": "charge(7)", "session": "s"})
        await client.call_tool("close_session", {"session": "s"})
        assert (await client.call_tool("execute_code", {"code": "x", "session": "s"})).is_error


async def test_a_session_whose_code_was_killed_starts_anew(tmp_path: Path) -> None:
    async with served(face([], tmp_path)) as url, connected(url, mode="legacy") as client:
        await client.call_tool("execute_code", {"code": "x = 1", "session": "s"})
        late = await client.call_tool("execute_code", {"code": "while True: pass", "session": "s", "timeout": 0.2})
        assert "the state of this session is lost with it" in said(late)
        assert said(await client.call_tool("execute_code", {"code": "2", "session": "s"})) == "2"


async def test_pictures_come_as_pictures(tmp_path: Path) -> None:
    code = "class P:\n    def _repr_png_(self): return b'\\x89PNG\\r\\n\\x1a\\n'\nprint('a dot')\nP()"
    async with served(face([], tmp_path, "process")) as url, connected(url) as client:
        result = await client.call_tool("execute_code", {"code": code})
    assert result.content[0] == TextContent(type="text", text="a dot")
    assert result.content[1:] == [ImageContent(type="image", data="iVBORw0KGgo=", mime_type="image/png")]


@pytest.mark.parametrize("sandbox", ["monty", "process"])
async def test_pictures_and_sound_of_tools_come_as_such(sandbox: str, tmp_path: Path) -> None:
    picture = {"type": "image", "mime_type": "image/png", "data": b"\x89PNG\r\n\x1a\n"}
    sound = {"type": "audio", "mime_type": "audio/wav", "data": b"RIFF"}

    @tool
    def look() -> list[Any]:
        """What is to be seen."""
        return ["there:", picture, {"nested": [sound]}, {**picture, "mime_type": "text/html"}]

    async with served(face([look], tmp_path, sandbox)) as url, connected(url) as client:
        result = await client.call_tool("execute_code", {"code": "look()[:3]"})
        other = await client.call_tool("execute_code", {"code": "look()[3]"})
    assert said(result) == '["there:", "<image/png, 8 bytes>", {"nested": ["<audio/wav, 4 bytes>"]}]'
    assert result.content[1:] == [
        ImageContent(type="image", data="iVBORw0KGgo=", mime_type="image/png"),
        AudioContent(type="audio", data="UklGRg==", mime_type="audio/wav"),
    ]
    assert [block.type for block in other.content] == ["text"]


@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
@pytest.mark.parametrize(("level", "heard"), [("debug", ["hello\n"]), ("warning", [])])
async def test_a_client_hears_what_it_wants_to(level: Any, heard: list[str], tmp_path: Path) -> None:
    logs: list[Any] = []

    async def log(params: Any) -> None:
        logs.append(params.data)

    async with served(face([], tmp_path)) as url:
        async with connected(url, mode="legacy", logging_callback=log) as client:
            await client.set_logging_level(level)
            await client.call_tool("execute_code", {"code": "print('hello')"})
    assert logs == heard


async def test_what_goes_wrong_is_told(tmp_path: Path) -> None:
    async with served(face([], tmp_path)) as url, connected(url) as client:
        failed = await client.call_tool("execute_code", {"code": "print('so far')\n1/0"})
        assert failed.is_error
        assert said(failed).startswith("so far\n")
        assert "ZeroDivisionError" in said(failed)
        late = await client.call_tool("execute_code", {"code": "while True: pass", "timeout": 0.2})
        assert late.is_error
        assert said(late) == (
            "the code ran longer than 0.2 s\ngive execute_code a longer timeout, or let the code do less"
        )
        misused = await client.call_tool("execute_code", {"cod": "1"})
        assert "unknown parameter 'cod', did you mean 'code'?" in said(misused)
        assert said(await client.call_tool("nonsense", {})) == "there is no tool 'nonsense'"


async def test_files_come_along(tmp_path: Path) -> None:
    if JailSandbox.probe().state != "usable":
        pytest.skip(JailSandbox.probe().reason)
    code = "open('output/a.txt', 'w').write('text')"
    sandbox = JailSandbox(file_mounts=[(tmp_path, "given")], spares=0)
    async with sandbox, served(face([], tmp_path, sandbox)) as url, connected(url) as client:
        result = await client.call_tool("execute_code", {"code": code})
    held = [block.resource for block in result.content if block.type == "resource"]
    assert [(str(each.uri), getattr(each, "text", "")) for each in held] == [("output:///a.txt", "text")]


async def test_files_of_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("given")
    args = ["-m", "hatchway", "serve", "mcp", "--sandbox", "process", "--files", str(tmp_path)]
    code = "open('output/b.txt', 'w').write(open('input/a.txt').read().upper())"
    async with Client(StdioTransport(sys.executable, args, cwd=str(tmp_path))) as client:
        assert "output/" in ((await client.list_tools())[0].description or "")
        result = await client.call_tool("execute_code", {"code": code})
    assert [block.resource.text for block in result.content if block.type == "resource"] == ["GIVEN"]


async def test_answers_stay_as_small_as_clients_take_them(tmp_path: Path) -> None:
    code = "for n in (1, 2): open(f'output/{n}.bin', 'wb').write(bytes(400_000))\nprint('x' * 3_000_000)"
    sandbox = ProcessSandbox(file_mounts=[(tmp_path, "given")])
    async with sandbox, served(face([], tmp_path, sandbox)) as url, connected(url) as client:
        result = await client.call_tool("execute_code", {"code": code})
    assert "bytes cut" in said(result)
    assert [block.type for block in result.content] == ["text", "resource", "text"]
    assert said(result).endswith("2.bin: 400000 bytes, too large to send along")


async def test_cancelling_reaches_the_tool_that_runs(tmp_path: Path) -> None:
    started, ended = asyncio.Event(), asyncio.Event()

    @tool
    async def slow() -> None:
        """Take long."""
        started.set()
        try:
            await asyncio.sleep(600)
        finally:
            ended.set()

    async with served(face([slow], tmp_path)) as url, connected(url) as client:
        asking = asyncio.create_task(client.call_tool("execute_code", {"code": "await slow()"}))
        await started.wait()
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        async with asyncio.timeout(100):
            await ended.wait()


async def test_only_who_has_the_token_gets_in(tmp_path: Path) -> None:
    hello = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    async with served(face([], tmp_path)) as url, httpx2.AsyncClient() as http:
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "t0ken"}):
            answer = await http.post(url, json=hello, headers=headers)
            assert (answer.status_code, answer.headers["www-authenticate"]) == (401, 'Bearer realm="hatchway"')
        strange = await http.post(url, json=hello, headers={"Authorization": "Bearer t0ken", "Host": "evil.test"})
        assert strange.status_code == 421
    with pytest.raises(InvalidSetting, match=r"serving on 0\.0\.0\.0 without a token would let everybody in"):
        await serve_http(face([], tmp_path), host="0.0.0.0", port=0, token=None)
