"""A server's command and all that comes of it: gone with its connection, and with a host that was killed."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from hatchway.tools.mcp.server_process import end, start_child
from hatchway.tools.mcp.servers import McpServers
from hatchway.tools.mcp.settings import StdioSettings

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(sys.platform != "linux", reason="keepers are for Linux")]
ODD = {"command": sys.executable, "args": [str(Path(__file__).with_name("odd_server.py"))]}
HOST = """
import asyncio, sys
from hatchway.tools.mcp.servers import McpServers

async def main():
    async with McpServers({"odd": {"command": sys.executable, "args": [sys.argv[1]]}}) as servers:
        tools = {tool.name: tool for tool in await servers.tools()}
        print(await tools["odd.pid"].func(), await tools["odd.daemon"].func(), flush=True)
        await asyncio.sleep(600)

asyncio.run(main())
"""


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


async def called(servers: McpServers, name: str) -> Any:
    return await {tool.name: tool for tool in await servers.tools()}[f"odd.{name}"].func()


async def test_a_daemon_ends_with_its_server() -> None:
    async with McpServers({"odd": ODD}) as servers:
        left = int(await called(servers, "daemon"))
        assert is_alive(left)
    assert not is_alive(left)


def test_nothing_is_left_of_a_host_that_was_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", HOST, ODD["args"][0]], stdout=subprocess.PIPE, text=True) as host:
        assert host.stdout is not None
        pids = [int(pid) for pid in host.stdout.readline().split()]
        assert [is_alive(pid) for pid in pids] == [True, True]
        host.kill()
    deadline = time.monotonic() + 30
    while any(map(is_alive, pids)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert [is_alive(pid) for pid in pids] == [False, False]


@pytest.mark.parametrize(
    ("script", "code"), [("exit 3", 3), ("kill -SEGV $$", -signal.SIGSEGV), ("exec sleep 600", -9)]
)
async def test_it_ends_as_the_server_did(script: str, code: int) -> None:
    started = await start_child("odd", StdioSettings(command="sh", args=("-c", f"trap '' TERM; {script}")))
    await end(started, grace=0.2)
    assert started.returncode == code


async def test_a_server_that_takes_its_leave_is_let() -> None:
    script = "trap 'echo bye; exit 5' TERM; echo ready; while :; do sleep 0.05; done"
    started = await start_child("odd", StdioSettings(command="sh", args=("-c", script)))
    assert started.stdout is not None
    assert await started.stdout.readline() == b"ready\n"
    await end(started, grace=0.3)
    assert (await started.stdout.read(), started.returncode) == (b"bye\n", 5)
