"""`hatchway serve`: Hatchway for other programs."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import click

from hatchway.cli.options import sandbox_option, tools_option

if TYPE_CHECKING:
    from hatchway.adapters.mcp_server import McpFace
    from hatchway.core.sandbox import CodeSandbox


@click.group()
def serve() -> None:
    """Serve code execution to other programs, over MCP."""


@serve.command("mcp")
@click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False),
    help="A file with `mcpServers`: their tools are offered to the code.",
)
@click.option("--allow", multiple=True, metavar="PATTERN", help="Tools that run without asking, such as 'time.*'.")
@click.option("--allow-read-only", is_flag=True, help="Run tools without asking that say they change nothing.")
@click.option(
    "--discovery",
    type=click.Choice(["none", "basic", "hybrid"]),
    default="basic",
    show_default=True,
    help="How the code finds tools; none lists them all to the model.",
)
@click.option("--journal", metavar="PATH|URL", help="Record runs there; one that waits can be resumed after a restart.")
@sandbox_option
@click.option(
    "--files",
    type=click.Path(exists=True, file_okay=False),
    metavar="FOLDER",
    help="Show it to the code as `input/`; what the code leaves in `output/` is sent along.",
)
@tools_option
@click.option("--http", is_flag=True, help="Listen for streamable HTTP instead of serving stdin and stdout.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Where to listen.")
@click.option("--port", type=click.IntRange(0, 65535), default=8765, show_default=True, help="0 takes a free one.")
@click.option(
    "--token",
    envvar="HATCHWAY_MCP_TOKEN",
    show_envvar=True,
    help="What clients must send; made up and printed where none is given.",
)
@click.option("--no-token", is_flag=True, help="Let in every program of this machine; on loopback only.")
def mcp(
    config: str | None,
    allow: tuple[str, ...],
    allow_read_only: bool,
    discovery: str,
    journal: str | None,
    sandbox: str,
    files: str | None,
    tools: tuple[str, ...],
    http: bool,
    host: str,
    port: int,
    token: str | None,
    no_token: bool,
) -> None:
    """Serve MCP: `execute_code`, with all the servers of --config behind it."""
    from hatchway.adapters.mcp_server import serve_http, serve_stdio

    async def served() -> None:
        async with AsyncExitStack() as stack:
            where = sandbox if files is None else await stack.enter_async_context(_with_files(sandbox, files))
            await serve_in(where)

    async def serve_in(where: str | CodeSandbox) -> None:
        face = _face(config, allow, discovery, journal, where, tools, allow_read_only=allow_read_only)
        if not http:
            await serve_stdio(face)
            return
        import secrets

        chosen = None if no_token else token or secrets.token_urlsafe(24)

        def ready(url: str) -> None:
            click.echo(f"Serving MCP at {url}", err=True)
            if chosen is not None and not token:
                click.echo(f"Clients send: Authorization: Bearer {chosen}", err=True)

        await serve_http(face, host=host, port=port, token=chosen, on_ready=ready)

    asyncio.run(served())


def _with_files(sandbox: str, folder: str) -> CodeSandbox:
    from hatchway.core.grants import INPUT_ROOT
    from hatchway.sandboxes.registry import make_sandbox

    return make_sandbox(sandbox, file_mounts=[(folder, INPUT_ROOT)])


def _face(
    config: str | None,
    allow: tuple[str, ...],
    discovery: str,
    journal: str | None,
    sandbox: str | CodeSandbox,
    tools: tuple[str, ...],
    *,
    allow_read_only: bool,
) -> McpFace:
    from hatchway.adapters.mcp_server import Hearing, McpFace
    from hatchway.cli.tool_modules import load_tools
    from hatchway.gate.rules import Rule
    from hatchway.mode.mode import CodeMode
    from hatchway.tools.mcp.notes import FOLDER
    from hatchway.tools.mcp.settings import load_servers
    from hatchway.tools.search.discovery import Finder
    from hatchway.tools.search.settings import usable_settings

    servers = {} if config is None else load_servers(config)
    entries = {name: entry.model_copy(update={"optional": True}) for name, entry in servers.items()}
    rules = [Rule("allow", pattern) for pattern in allow] + ([Rule("allow", read_only=True)] if allow_read_only else [])
    finder = Finder("hybrid" if discovery == "hybrid" else "basic", usable_settings())
    offered = [each for source in tools for each in load_tools(source)]
    hearing = Hearing()
    mode = CodeMode(
        sandbox,
        on_event=hearing,
        tools=offered,
        rules=rules,
        journal=journal,
        mcp_servers=entries,
        mcp_notes=FOLDER,
        discovery=None if discovery == "none" else finder,
    )
    return McpFace(mode, finder, hearing, lists_all=discovery == "none")
