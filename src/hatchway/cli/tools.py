"""`hatchway tools`: what MCP servers offer, without a model."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from hatchway.cli.options import json_option

if TYPE_CHECKING:
    from hatchway.tools.functions import Tool
    from hatchway.tools.mcp.servers import McpServers
    from hatchway.tools.search.discovery import Finder

T = TypeVar("T")
_SLOW_SECONDS = 1.0
"""How long servers may take before somebody at a terminal is told what is waited for."""
config_option = click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False),
    default="mcp.json",
    show_default=True,
    help="A file with `mcpServers`.",
)


@click.group()
def tools() -> None:
    """List, search, describe and generate tools of MCP servers."""


@tools.command("list")
@click.argument("category", required=False)
@config_option
@json_option
def list_(category: str | None, config: str, as_json: bool) -> None:
    """The tools of all servers, or of one CATEGORY."""
    from hatchway.cli.display import neutral

    async def read(servers: McpServers) -> list[dict[str, str]]:
        finder = await _finder(servers)
        names = [category] if category else list(finder.catalog.categories())
        return [_row(each) for name in names for each in finder.catalog.listed(name)]

    rows = _with_servers(config, read, fresh=True)
    _print(rows, as_json, lambda row: neutral(f"{row['name']}  {row['summary']}"))


@tools.command()
@click.argument("query")
@click.option("--limit", type=click.IntRange(1, 50), default=5, show_default=True, help="How many.")
@config_option
@json_option
def search(query: str, limit: int, config: str, as_json: bool) -> None:
    """The tools that fit what you want to do, best first."""
    from hatchway.cli.display import neutral

    async def read(servers: McpServers) -> list[dict[str, str]]:
        finder = await _finder(servers)
        return [_row(each) for each in finder.search(query, limit)]

    rows = _with_servers(config, read)
    _print(rows, as_json, lambda row: neutral(f"{row['name']}  {row['summary']}"))


@tools.command()
@click.argument("name")
@config_option
def describe(name: str, config: str) -> None:
    """The typed signature of one tool."""
    from hatchway.cli.display import neutral

    async def read(servers: McpServers) -> str:
        return (await _finder(servers)).catalog.describe(name)

    click.echo(neutral(_with_servers(config, read)), nl=False)


@tools.command()
@config_option
@click.option("--root", type=click.Path(file_okay=False), default=".", show_default=True, help="Where `mcptools` goes.")
def generate(config: str, root: str) -> None:
    """Write typed APIs: mcptools/<server>/<tool>.py."""
    from hatchway.tools.apigen import generate_mcp_sources

    done = _with_servers(config, lambda servers: generate_mcp_sources(servers, root), fresh=True)
    click.echo(f"{len(done.written)} files written, {done.unchanged} unchanged, {len(done.removed)} removed")


def _with_servers(config: str, act: Callable[[McpServers], Awaitable[T]], *, fresh: bool = False) -> T:
    """What comes of the servers in a file; somebody at a terminal sees which of them are waited for.

    Only `fresh` asks servers whose tools are known from an earlier time.
    """
    from hatchway.mode.mcp import mcp_servers
    from hatchway.tools.mcp.notes import FOLDER
    from hatchway.tools.mcp.settings import load_servers

    async def acted() -> T:
        servers, _ = mcp_servers(load_servers(config), notes=FOLDER)
        async with servers:
            waiting = asyncio.create_task(_tell_waiting(servers))
            try:
                await servers.tools(fresh=fresh)
            finally:
                waiting.cancel()
            return await act(servers)

    return asyncio.run(acted())


async def _tell_waiting(servers: McpServers) -> None:
    started = time.monotonic()
    while True:
        await asyncio.sleep(_SLOW_SECONDS)
        slow = ", ".join(servers.waiting())
        if slow:
            click.echo(f"waiting for {slow} ({time.monotonic() - started:.0f} s)", err=True)


async def _finder(servers: McpServers) -> Finder:
    from dataclasses import replace

    from hatchway.tools.search.discovery import Finder
    from hatchway.tools.search.settings import usable_settings

    finder = Finder("hybrid", replace(usable_settings(), database=None))
    offered: dict[str, Tool] = {tool.name: tool for tool in await servers.tools()}
    finder.offer(offered)
    return finder


def _row(entry: Any) -> dict[str, str]:
    return {"name": entry.name, "category": entry.category, "summary": entry.summary}


def _print(rows: list[dict[str, str]], as_json: bool, line: Callable[[dict[str, str]], str]) -> None:
    click.echo(json.dumps(rows, indent=2) if as_json else "\n".join(map(line, rows)))
