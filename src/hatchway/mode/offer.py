"""What a mode offers to the code: its tools, and all that is made of them once so that each run finds it ready."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from operator import is_
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, cast

from hatchway.core.constraints import CodeConstraints
from hatchway.core.errors import InvalidSetting
from hatchway.core.sandbox import CodeSandbox
from hatchway.gate.rules import Rule
from hatchway.mode.passage import Passage
from hatchway.mode.prompt import build_code_mode_prompt, discovery_note
from hatchway.mode.styles import WrittenStyles
from hatchway.mode.threads import ToolThreads
from hatchway.tools.functions import Tool, as_tools
from hatchway.tools.stubs import render_stubs

if TYPE_CHECKING:
    from hatchway.tools.mcp.servers import McpServers
    from hatchway.tools.search.discovery import Discovery, Finder

Calls = Literal["declared", "async", "written"]
"""How the code calls a tool: in the tool's own style, always awaited, or as each action writes it."""


class Offer:
    """The tools of a mode.

    Args:
        tools: Functions and `Tool`s, and `fetch` where a sandbox was granted domains.
        rules: Stored permissions.
        threads: Where blocking tools run.
        asks_all: Somebody decides about every call that no rule settled.
        calls: As `CodeMode` takes it.
        type_check: Code is checked against the stubs before it runs.
        mcp_servers: As `CodeMode` takes them, and the folder of their notes.
        discovery: As `CodeMode` takes it.
        closing: Closes what is opened here.

    Raises:
        InvalidTool: A tool cannot be offered as given, or two share a name.
        InvalidSetting: A setting that is not valid.
    """

    tools: dict[str, Tool]
    """By name; those that find the others among them."""
    passage: Passage
    """What calls of them pass."""

    def __init__(
        self,
        tools: dict[str, Tool],
        *,
        rules: Iterable[Rule],
        threads: ToolThreads,
        asks_all: bool,
        calls: Calls,
        type_check: bool,
        mcp_servers: tuple[Mapping[str, Any] | McpServers, str | PathLike[str] | None] | None,
        discovery: Discovery | Finder | None,
        closing: AsyncExitStack,
    ) -> None:
        if calls not in ("declared", "async", "written"):
            raise InvalidSetting(f"calls is 'declared', 'async' or 'written', not {calls!r}")
        rules = tuple(rules)
        if strangers := [rule for rule in rules if not isinstance(cast(Any, rule), Rule)]:
            raise InvalidSetting(f"rules takes Rules, not {strangers[0]!r:.80}", hint='Rule("allow", "files.read")')
        self._own = tools
        self._rules, self._threads, self._asks_all = rules, threads, asks_all
        self._style: Literal["declared", "async"] = "async" if calls == "written" else calls
        self._is_written, self._type_check = calls == "written", type_check
        self._finder = None if discovery is None else _finder(discovery, self._style, closing)
        self._servers = None if mcp_servers is None else _servers(*mcp_servers, closing)
        self._edition = -1
        self._take(tools)

    async def refresh(self) -> None:
        """Take what the servers offer, if that is not known or has changed; for runs that start from now on."""
        servers = self._servers
        if servers is None:
            return
        servers.try_again()
        if servers.is_stale or servers.edition != self._edition:
            offered = await servers.tools()
            self._edition = servers.edition
            self._take(as_tools([*self._own.values(), *offered]))

    def for_run(self) -> dict[str, Any]:
        """What a run takes of it."""
        return {
            "passage": self.passage,
            "signatures": self._signatures,
            "stubs": self._stubs if self._type_check else None,
            "fit": self._fit,
            "away": () if self._servers is None else self._servers.away(),
        }

    def prompt(self, constraints: CodeConstraints) -> str:
        """What a model must know: the Python it may use, and the tools it may call or search."""
        if self._finder is None:
            return build_code_mode_prompt(signatures=[self._told], constraints=constraints)
        stubs = render_stubs(self._finder.tools(), self._style)
        note = discovery_note(self._finder.catalog.categories())
        return f"{build_code_mode_prompt(signatures=[stubs], constraints=constraints)}\n\n{note}"

    def _take(self, tools: Mapping[str, Tool]) -> None:
        self.tools = dict(tools)
        if self._finder is not None:
            self._finder.offer(tools)
            self.tools = as_tools([*tools.values(), *self._finder.tools()])
        self.passage = Passage(self.tools, self._rules, self._threads, asks_all=self._asks_all)
        self._signatures = tuple(tool.signature(style=self._style) for tool in self.tools.values())
        self._stubs = render_stubs(self.tools.values(), self._style)
        read = [tool.as_seen() for tool in self.tools.values()]
        is_same = all(map(is_, read, self.tools.values()))
        self._told = self._stubs if is_same else render_stubs(read, self._style)
        self._fit = WrittenStyles(self.tools, has_stubs=self._type_check) if self._is_written else None


def own_tools(tools: Iterable[Tool | Callable[..., Any]], sandbox: CodeSandbox | str) -> dict[str, Tool]:
    """The tools by name; a sandbox that was granted domains adds `fetch`, unless there is one of that name.

    Raises:
        InvalidTool: A tool cannot be offered as given, or two share a name.
    """
    named = as_tools(tools)
    if isinstance(sandbox, str) or not sandbox.network.allowed or "fetch" in named:
        return named
    from hatchway.mode.fetch import fetch_tool

    return {**named, "fetch": fetch_tool(sandbox.network)}


def _servers(
    given: Mapping[str, Any] | McpServers, notes: str | PathLike[str] | None, closing: AsyncExitStack
) -> McpServers:
    from hatchway.mode.mcp import mcp_servers

    servers, own = mcp_servers(given, notes=notes)
    if own is not None:
        closing.push_async_callback(own.aclose)
    return servers


def _finder(given: Discovery | Finder, style: Literal["declared", "async"], closing: AsyncExitStack) -> Finder:
    from hatchway.tools.search.discovery import Finder

    finder = given if isinstance(given, Finder) else Finder(given, style=style)
    if finder is not given:
        closing.callback(finder.close)
    return finder
