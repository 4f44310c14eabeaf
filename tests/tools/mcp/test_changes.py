"""Servers whose tools become others, or that come and go: what is offered follows, whoever has it."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hatchway import ApprovalRequired, CodeMode, Rule
from hatchway.core.errors import CodeRuntimeError, ToolError
from hatchway.tools.mcp.servers import McpServers
from hatchway.tools.mcp.whole import Whole

pytestmark = pytest.mark.anyio
ODD = {"command": sys.executable, "args": [str(Path(__file__).with_name("odd_server.py"))]}
ALLOWED = (Rule("allow", "*"),)


class Shop(BaseHTTPRequestHandler):
    """Streamable HTTP with sessions, which a new start forgets."""

    session = "first"
    text = b'"called"'
    status = 400

    def do_POST(self) -> None:
        told = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        is_first = told["method"] == "initialize"
        if not is_first and self.headers["Mcp-Session-Id"] not in (None, Shop.session):
            self._send(Shop.status, b"")
        elif "id" not in told:
            self._send(202, b"")
        else:
            self._send(200, b'{"jsonrpc": "2.0", "id": %d, %s}' % (told["id"], self._said(told["method"])))

    def do_GET(self) -> None:
        self._send(405, b"")

    do_DELETE = do_GET

    def _said(self, method: str) -> bytes:
        about = {"capabilities": {"tools": {}}, "serverInfo": {"name": "web", "version": "1"}}
        tool = {"name": "buy", "inputSchema": {"type": "object"}}
        results: dict[str, Any] = {
            "initialize": {**about, "protocolVersion": "2025-06-18"},
            "tools/list": {"tools": [tool]},
        }
        if method == "tools/call":
            return b'"result": {"content": [{"type": "text", "text": %s}]}' % Shop.text
        if method not in results:
            return b'"error": {"code": -32601, "message": "no"}'
        return b'"result": ' + json.dumps(results[method]).encode()

    def _send(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Mcp-Session-Id", Shop.session)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def shop(port: int = 0) -> Iterator[dict[str, Any]]:
    with ThreadingHTTPServer(("127.0.0.1", port), Shop) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield {"url": f"http://127.0.0.1:{server.server_port}/mcp"}
        server.shutdown()


async def names(servers: McpServers) -> list[str]:
    return [tool.name for tool in await servers.tools()]


@pytest.mark.parametrize("sandbox", ["monty", "process"])
async def test_a_session_sees_what_changed_before_its_next_action(sandbox: str, tmp_path: Path) -> None:
    mode = CodeMode(sandbox, mcp_servers={"odd": ODD}, rules=ALLOWED, journal=tmp_path / "journal.db")
    async with mode, mode.session() as session:
        await session.run("odd.change()")
        assert (await session.run("kept = odd\nodd.added()")).output == "added"
        await session.run("odd.drop()")
        for code in ("odd.added()", "kept.added()"):
            with pytest.raises(CodeRuntimeError, match="odd has no tool 'added'"):
                await session.run(code)
        assert (await session.run("kept.echo(text='x')")).output == "x"


async def test_a_call_of_a_tool_that_came_later_can_wait_and_go_on(tmp_path: Path) -> None:
    rules = [Rule("allow", "odd.change")]
    async with CodeMode("monty", mcp_servers={"odd": ODD}, rules=rules, journal=tmp_path / "journal.db") as mode:
        await mode.run("odd.change()")
        with pytest.raises(ApprovalRequired) as raised:
            await mode.run("odd.added()")
    async with CodeMode("monty", mcp_servers={"odd": ODD}, rules=rules, journal=tmp_path / "journal.db") as mode:
        await mode.run("odd.change()")
        [call] = raised.value.pending
        assert (await mode.resume(raised.value.run_id, {call.call_id: True})).output == "added"


@pytest.mark.parametrize("sandbox", ["monty", "process"])
async def test_a_run_that_waits_goes_on_with_a_server_that_offers_other_tools(sandbox: str, tmp_path: Path) -> None:
    version, journal = tmp_path / "version", tmp_path / "journal.db"
    entry = {**ODD, "args": [*ODD["args"], "file", str(version)]}
    run_id, settled = "", {}
    for offered in ("one two gone", "one two new", "one newer two"):
        version.write_text(offered)
        async with CodeMode(sandbox, mcp_servers={"odd": entry}, journal=journal) as mode:
            try:
                last = await (mode.resume(run_id, settled) if run_id else mode.run("odd.one() + odd.two()"))
            except ApprovalRequired as paused:
                run_id, settled = paused.run_id, {call.call_id: True for call in paused.pending}
            else:
                assert last.output == "onetwo"
                return
    pytest.fail("it waits for a third call")


async def test_two_modes_that_share_servers_both_see_a_change() -> None:
    async with McpServers({"odd": ODD}) as servers:
        one, other = (CodeMode("monty", mcp_servers=servers, rules=ALLOWED) for _ in range(2))
        async with one, other:
            await one.run("odd.change()")
            assert (await one.run("odd.added()")).output == "added"
            assert (await other.run("odd.added()")).output == "added"


async def test_a_change_while_the_list_is_read_is_not_lost() -> None:
    async with McpServers({"odd": {**ODD, "args": [*ODD["args"], "moving"]}}) as servers:
        assert "odd.added" in await names(servers)
        assert not servers.is_stale


async def test_a_server_that_was_started_again_is_asked_for_its_tools(tmp_path: Path) -> None:
    version = tmp_path / "version"
    version.write_text("die old pid")
    async with McpServers({"odd": {**ODD, "args": [*ODD["args"], "file", str(version)]}}) as servers:
        tools = {tool.name: tool for tool in await servers.tools()}
        version.write_text("die new pid")
        with pytest.raises(ToolError, match="died during the call"):
            await tools["odd.die"].func()
        known = servers.edition
        await tools["odd.pid"].func()
        async with asyncio.timeout(30):
            while servers.edition == known:
                await asyncio.sleep(0.01)
        assert await names(servers) == ["odd.die", "odd.new", "odd.pid"]


async def test_a_server_that_is_away_for_a_while_is_had_again() -> None:
    with shop() as entry:
        port = int(entry["url"].split(":")[2].split("/")[0])
    async with CodeMode("monty", mcp_servers={"shop": {**entry, "optional": True}}, rules=ALLOWED) as mode:
        with pytest.raises(CodeRuntimeError, match="name 'shop' is not defined"):
            await mode.run("shop.buy()")
        with shop(port):
            async with asyncio.timeout(30):
                while "shop.buy" not in mode.tools:
                    await mode.run("1")
                    await asyncio.sleep(0.05)
            assert (await mode.run("shop.buy()")).output == "called"


@pytest.mark.parametrize("status", [400, 404])
async def test_a_session_a_server_forgot_costs_one_call(status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Shop, "status", status)
    with shop() as entry:
        async with McpServers({"shop": entry}) as servers:
            [buy] = await servers.tools()
            assert await buy.func() == "called"
            monkeypatch.setattr(Shop, "session", "second")
            with pytest.raises(ToolError) as raised:
                await buy.func()
            assert f"HTTP {status}" in raised.value.message
            assert raised.value.hint == "call it again: the connection is a new one then"
            assert await buy.func() == "called"


@pytest.mark.parametrize("said", [b'"cut: \\ud83d"', b'"cut: \\ude00"', b'"cut: \xf0\x9f\x98"'])
async def test_half_a_character_costs_that_character(said: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Shop, "text", said)
    with shop() as entry:
        async with McpServers({"shop": entry}) as servers:
            [buy] = await servers.tools()
            assert await buy.func() == "cut: \N{REPLACEMENT CHARACTER}"


@pytest.mark.parametrize(
    ("what", "said"), [("a\ud83d", "it has half a character in it"), (b"\xff", "invalid utf-8 sequence")]
)
async def test_what_cannot_be_sent_fails_its_own_call_alone(what: Any, said: str) -> None:
    with shop() as entry:
        async with McpServers({"shop": entry}) as servers:
            [buy] = await servers.tools()
            with pytest.raises(ToolError, match=f"an argument cannot be sent as JSON: {said}"):
                await buy.func(what=what)
            assert await buy.func(what="tea") == "called"
            assert servers.connection("shop").starts == 1


PARTS = st.sampled_from([
    "a", "d8", "\\\\", "\\ud83d", "\\ude00", "\\ud83d\\ude00", "\\u0041", "\\n", '\\"', "\\uDBFF", "é", "\U0001f600",
    "\\ud7ff", "\\ue000",
])  # fmt: skip


@given(st.lists(PARTS, max_size=8).map("".join), st.lists(st.integers(0, 60), max_size=6))
def test_texts_in_pieces_are_the_same_but_for_halves(text: str, cuts: list[int]) -> None:
    data, whole = f'"{text}"'.encode(), Whole()
    ends = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    pieces = [whole.feed(data[start:end]) for start, end in pairwise(ends)]
    expected = "".join("\ufffd" if "\ud800" <= each <= "\udfff" else each for each in json.loads(data))
    assert json.loads(b"".join((*pieces, whole.end()))) == expected
