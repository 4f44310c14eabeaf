"""Lists of tools with mistakes in them, over pipes and over HTTP: one bad tool costs no other; long and odd names."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from hatchway.core.errors import ToolError
from hatchway.tools.apigen import generate_mcp_sources
from hatchway.tools.mcp.naming import as_identifier, unique
from hatchway.tools.mcp.servers import McpServers

pytestmark = pytest.mark.anyio
HERE = Path(__file__).parent
LISTED = json.loads((HERE / "mistaken_tools.json").read_text(encoding="utf-8"))


class Answers(BaseHTTPRequestHandler):
    """Just as much of streamable HTTP as it takes to list and call."""

    def do_POST(self) -> None:
        told = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/broken":
            self._send(200, b'{"half": 1')
            return
        if "id" not in told:
            self._send(202, b"")
            return
        info = {"capabilities": {"tools": {}}, "serverInfo": {"name": "web", "version": "1"}}
        results: dict[str, Any] = {
            "initialize": {**info, "protocolVersion": "2025-06-18"},
            "tools/list": {"tools": LISTED},
            "tools/call": {"content": [{"type": "text", "text": "called"}]},
        }
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": told["id"]}
        found = results.get(told["method"])
        answer |= {"error": {"code": -32601, "message": "no"}} if found is None else {"result": found}
        self._send(200, json.dumps(answer).encode())

    def do_GET(self) -> None:
        self._send(405, b"")

    do_DELETE = do_GET

    def _send(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def on_the_web() -> Iterator[dict[str, Any]]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield {"url": f"http://127.0.0.1:{server.server_port}/mcp"}
        server.shutdown()


@contextmanager
def on_pipes() -> Iterator[dict[str, Any]]:
    yield {"command": sys.executable, "args": [str(HERE / "odd_server.py"), "mistaken"]}


@pytest.mark.parametrize("transport", [on_pipes, on_the_web])
async def test_one_bad_tool_costs_no_other(transport: Any, caplog: pytest.LogCaptureFixture) -> None:
    with transport() as entry:
        async with McpServers({"odd": entry}) as servers:
            tools = {tool.name.removeprefix("odd."): tool for tool in await servers.tools()}
            wrong = ["no_schema", "listed_schema", "other_schema", "required", "properties"]
            assert list(tools) == ["good", *wrong, "icons", "said", "gives", "hints"]
            assert [tools[name].bind((), {"x": [1]}) for name in wrong] == [{"x": [1]}] * len(wrong)
            assert (tools["said"].description, tools["hints"].read_only) == ("", False)
            with pytest.raises(ToolError, match="unknown parameter 'b'"):
                tools["good"].bind((), {"b": 1})
            assert await tools["other_schema"].func(anything=1) == "called"
    assert caplog.text.count("something without a name; it is left out") == 4
    assert "tool 'listed_schema' of an MCP server is listed with an invalid inputSchema" in caplog.text
    assert "tool 'icons' of an MCP server is listed with an invalid execution" in caplog.text


async def test_answers_that_are_none_are_told_in_one_line() -> None:
    entry = {"command": sys.executable, "args": [str(HERE / "odd_server.py"), "hollow"]}
    async with McpServers({"odd": entry}) as servers:
        [hollow] = await servers.tools()
        with pytest.raises(ToolError) as raised:
            await hollow.func()
    assert str(raised.value) == "its answer is not what MCP says: content: Field required"


async def test_half_an_answer_is_told_in_one_line(tmp_path: Path) -> None:
    with on_the_web() as entry:
        config = tmp_path / "mcp.json"
        config.write_text(json.dumps({"mcpServers": {"web": {"url": entry["url"].replace("/mcp", "/broken")}}}))
        command = [sys.executable, "-m", "hatchway", "tools", "list", "--config", str(config)]
        run = partial(subprocess.run, command, capture_output=True, text=True, cwd=tmp_path, timeout=60)
        done = await asyncio.to_thread(run)
    told = [line for line in done.stderr.splitlines() if not line.startswith("waiting for")]
    assert told[0].endswith("/broken) cannot be reached: Failed to parse JSON response")
    assert len(told) == 2, "why, and what to do"


def test_names_as_files_and_functions() -> None:
    assert [as_identifier(name) for name in ("größe", "ünï-códe", "查询", "1st", "__init__")] == [
        "grosse",
        "uni_code",
        "tool",
        "n1st",
        "init",
    ]
    long = unique(["x" * 5000, "x" * 5001])
    assert sorted(map(len, long.values())) == [100, 102]


async def test_sources_of_tools_with_long_names(tmp_path: Path) -> None:
    entry = {"command": sys.executable, "args": [str(HERE / "odd_server.py"), "long"]}
    done = await generate_mcp_sources({"s" * 300: entry}, tmp_path)
    assert [path.name for path in done.written if path.name.startswith("x")] == [f"{'x' * 100}.py"]
    await asyncio.to_thread(compile, done.written[-1].read_text(encoding="utf-8"), "module", "exec")
