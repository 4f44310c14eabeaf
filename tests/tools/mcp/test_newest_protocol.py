"""Servers of the newest protocol, over pipes and over HTTP with a token: content, changes, what is kept of them."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from hatchway.core.errors import InvalidSetting, ServerUnavailable, ToolError
from hatchway.tools.apigen import generate_mcp_sources
from hatchway.tools.mcp.servers import McpServers
from hatchway.tools.stubs import render_stubs

pytestmark = pytest.mark.anyio
SERVER = str(Path(__file__).with_name("sdk_server.py"))
STDIO = {"command": sys.executable, "args": [SERVER, "stdio"], "connect_timeout": 100}
TOKEN = "s3cret-token"


@pytest.fixture
def url() -> Iterator[str]:
    process = subprocess.Popen([sys.executable, SERVER, "http", TOKEN], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield f"http://127.0.0.1:{int(process.stdout.readline())}/mcp"
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


@asynccontextmanager
async def opened(entry: dict[str, Any], **options: Any) -> AsyncIterator[McpServers]:
    async with McpServers({"sdk": entry}, **options) as servers:
        yield servers


async def called(servers: McpServers, tool: str, **arguments: Any) -> Any:
    return await {each.name: each for each in await servers.tools()}[f"sdk.{tool}"].func(**arguments)


async def until(condition: Any) -> None:
    async with asyncio.timeout(100):
        while not condition():
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("kind", ["stdio", "http"])
async def test_calls_and_changes_in_either_transport(
    kind: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = STDIO
    if kind == "http":
        monkeypatch.setenv("SDK_TOKEN", TOKEN)
        headers = {"Authorization": "Bearer ${SDK_TOKEN}"}
        entry = {"url": request.getfixturevalue("url"), "headers": headers, "connect_timeout": 100}
    async with opened(entry) as servers:
        assert await called(servers, "double", n=21) == {"twice": 42}
        assert len(await called(servers, "long")) == 5_000_000
        await called(servers, "grow")
        await until(lambda: servers.is_stale)
        assert await called(servers, "added") == "here"
        assert servers.connection("sdk").starts == 1


async def test_a_wrong_token_is_told_as_such(url: str) -> None:
    async with opened({"url": url, "headers": {"Authorization": "Bearer wrong"}}) as servers:
        with pytest.raises(ServerUnavailable) as raised:
            await servers.tools()
    assert "HTTP 401 Unauthorized" in raised.value.message
    assert raised.value.hint == 'set its "headers", such as {"Authorization": "Bearer ${TOKEN}"}'


async def test_a_server_that_goes_away_during_calls(url: str) -> None:
    async with opened({"url": url, "headers": {"Authorization": f"Bearer {TOKEN}"}}) as servers:
        await servers.tools()
        servers.connection("sdk").settings.headers["Authorization"] = "Bearer other"  # type: ignore[index]
        await servers.connection("sdk").aclose()
        with pytest.raises(ToolError, match="HTTP 401 Unauthorized"):
            await called(servers, "double", n=1)


async def test_sound_files_and_links() -> None:
    async with opened(STDIO) as servers:
        assert await called(servers, "contents") == [
            "all of it",
            {"type": "audio", "mime_type": "audio/wav", "data": b"RIFF"},
            {"type": "resource", "uri": "note://1", "mime_type": "text/plain", "text": "a note"},
            {"type": "resource", "uri": "blob://1", "mime_type": "application/zip", "data": b"PK"},
            {
                "type": "resource_link", "uri": "file:///a.txt", "name": "a", "description": None,
                "mime_type": "text/plain",
            },
        ]  # fmt: skip


@pytest.mark.parametrize("state", ["person", "busy"])
async def test_a_server_that_asks_back_is_told_that_nobody_answers(state: str) -> None:
    async with opened(STDIO) as servers:
        with pytest.raises(ToolError) as raised:
            await called(servers, "ask", state=state)
    assert raised.value.message == "the server wants to ask a person or a model, which code cannot answer"


async def test_a_server_that_asks_by_a_way_that_is_none_is_told_so_too() -> None:
    async with opened(STDIO) as servers:
        with pytest.raises(ToolError, match="the server wants to ask a person or a model, which code cannot answer: "):
            await called(servers, "sample")


async def test_sources_follow_the_server(tmp_path: Path) -> None:
    folder = tmp_path / "mcptools" / "sdk"
    async with opened(STDIO) as servers:
        await generate_mcp_sources(servers, tmp_path, follow=True)
        untouched = (folder / "double.py").stat().st_mtime_ns
        assert "-> Any:" in (folder / "rows.py").read_text()
        await called(servers, "rows", count=2)
        await until(lambda: "class ResultRowsItem(TypedDict):" in (folder / "rows.py").read_text())
        await called(servers, "grow")
        await until((folder / "added.py").exists)
        assert (folder / "double.py").stat().st_mtime_ns == untouched
    with pytest.raises(InvalidSetting, match="follow=True needs McpServers"):
        await generate_mcp_sources({"sdk": STDIO}, tmp_path, follow=True)


async def test_a_known_server_is_connected_by_its_first_call(tmp_path: Path) -> None:
    async with opened(STDIO, notes=tmp_path) as servers:
        await called(servers, "rows", count=3)
    async with opened(STDIO, notes=tmp_path) as servers:
        tools = {tool.name: tool for tool in await servers.tools()}
        assert servers.connection("sdk").starts == 0
        stub = render_stubs([tools["sdk.rows"].as_seen()])
        assert "note: NotRequired[str]" in stub
        assert "The type of the result is what was seen so far" in stub
        assert render_stubs([tools["sdk.rows"]]).endswith(
            'def rows(count: int) -> Any:\n        """Data of no declared type; every second row has a note."""'
            "\n        ...\n"
        )
        assert await tools["sdk.double"].func(n=2) == {"twice": 4}
        assert servers.connection("sdk").starts == 1


async def test_notes_that_were_changed_are_not_believed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with opened(STDIO, notes=tmp_path) as servers:
        await servers.tools()
    (kept,) = tmp_path.glob("*.json")
    kept.write_bytes(kept.read_bytes().replace(b'"name": "double"', b'"name": "doable"'))
    async with opened(STDIO, notes=tmp_path) as servers:
        assert "sdk.double" in [tool.name for tool in await servers.tools()]
        assert servers.connection("sdk").starts == 1
    assert "its signature does not match" in caplog.text


async def test_notes_that_are_out_of_date_are_found_out_by_the_first_call(tmp_path: Path) -> None:
    async with opened(STDIO, notes=tmp_path) as servers:
        await called(servers, "grow")
        await until(lambda: servers.is_stale)
        await servers.tools()
    async with opened(STDIO, notes=tmp_path) as servers:
        assert "sdk.added" in [tool.name for tool in await servers.tools()]
        known = servers.edition
        await called(servers, "double", n=1)
        await until(lambda: servers.edition > known)
        assert "sdk.added" not in [tool.name for tool in await servers.tools()]
