"""The outfit of an agent: its sandbox, its tools and what its model must know, made of what the host says."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from hatchway.agent.discovery_tools import discovery_tools, opened_finder
from hatchway.agent.file_tools import file_tools
from hatchway.agent.images import SavedImages
from hatchway.agent.interpreter import Interpreter
from hatchway.agent.json_tools import JsonTool, json_name
from hatchway.agent.large_results import LargeResults
from hatchway.agent.models import ToolDefinition
from hatchway.agent.permissions import CODE_TOOL
from hatchway.agent.subagents import Subagents
from hatchway.agent.workspace_files import WorkspaceFiles
from hatchway.core.errors import InvalidSetting
from hatchway.core.limits import MIB, Limits
from hatchway.core.sandbox import CodeSandbox
from hatchway.gate.rules import Rule
from hatchway.mode.mode import CodeMode
from hatchway.mode.prompt import build_code_mode_prompt
from hatchway.mode.threads import ToolThreads
from hatchway.sandboxes.registry import choose_auto, make_sandbox
from hatchway.tools.apigen import write_sources
from hatchway.tools.functions import Tool, as_tools
from hatchway.tools.gentools import save_tool_tool
from hatchway.tools.mcp.naming import as_namespace
from hatchway.tools.mcp.notes import FOLDER as NOTES_FOLDER
from hatchway.tools.search.discovery import Finder
from hatchway.tools.stubs import render_stubs

if TYPE_CHECKING:
    from hatchway.agent.config import SkillMetadata
    from hatchway.agent.sandbox_config import SandboxConfig
    from hatchway.sandboxes.packages import Packages

UNSEALED = "code actions run unsealed: they can do whatever this user can"
NO_BINDING = "allowLocalBinding is not granted: no code listens on a port in the jail; calls of tools need none"
NOT_THERE = "it does not exist; make it before the agent starts"
NO_PATTERN = "of patterns it takes only `folder/**`; name the folder, and in denyWrite what stays shut"
FOR_GOOD = 10.0 * 365 * 86_400
"""Seconds that stand for no limit."""
MEMORY = 2048 * MIB
"""Of the code of an agent, which is no single action of a server."""
MORE_TOOLS = """
# More functions are there, of these servers; find them with your tools `pytools_…`, and call them by their full name,
# such as `server.function(argument=1)`.
"""
SKILLS = "Skills, which are instructions for one kind of task; read the file of one that fits before you begin:\n"
SAVE_TOOL = "save_tool"
_log = logging.getLogger("hatchway")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """An outfit that is put on."""

    tools: tuple[JsonTool, ...]
    """What the model calls itself."""
    threads: ToolThreads
    """Where they run."""
    large: LargeResults
    about_code: str
    """What a model must know to write code here."""
    skills: str
    """Skills by name."""

    def instructions(self, system_prompt: str) -> str:
        """All a model is told before the first word."""
        return "\n\n".join(text for text in (system_prompt.strip(), self.about_code, self.skills) if text)

    def definitions(self, subagents: Subagents | None) -> list[ToolDefinition]:
        """Every tool the model may call."""
        tasks = [] if subagents is None else [subagents.definition()]
        return [_code_tool(), *(each.definition() for each in self.tools), *tasks]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outfit:
    """What an agent and its subagents are given; see `Agent`."""

    working_dir: Path
    sandbox: bool | str | CodeSandbox
    sandbox_config: Path | SandboxConfig | None
    kernel_env: Mapping[str, str]
    packages: Packages | Sequence[str]
    python: Path | None
    images_dir: Path | None
    execution_timeout: float | None
    tools: tuple[Callable[..., Any] | Tool, ...]
    mcp_servers: Mapping[str, Mapping[str, Any]]
    ptc_servers: Mapping[str, Mapping[str, Any]]
    tool_search: Literal["basic", "hybrid"]
    journal: str | Path | None
    skills: tuple[SkillMetadata, ...]
    is_child: bool = False
    """It is worn by a subagent."""

    async def fit(self, interpreter: Interpreter, closing: AsyncExitStack) -> Fitted:
        """Start everything; `closing` ends it.

        Raises:
            SandboxUnavailable, ServerUnavailable, InvalidSetting, InvalidTool: Something cannot be had.
        """
        if not self.working_dir.is_dir():
            raise InvalidSetting(f"the working directory {self.working_dir} is not there", hint="make it first")
        sandbox = await self._sandbox(closing)
        own = as_tools(self.tools)
        if SAVE_TOOL not in own:
            own = {**own, SAVE_TOOL: save_tool_tool(self.working_dir)}
        hears = SavedImages(self.working_dir, self.images_dir, interpreter.heard).heard
        finder = None if "pytools" in self.mcp_servers else opened_finder(self.tool_search, self.working_dir, closing)
        finding = {} if finder is None else self._finding(finder, own)
        mode = CodeMode(
            sandbox,
            tools=[*own.values(), *finding.values()],
            rules=[Rule("allow", name) for name in finding],
            approve=interpreter.approve,
            limits=self._limits(),
            journal=self.journal,
            on_event=hears,
            mcp_servers=self.ptc_servers or None,
            mcp_notes=self.working_dir / NOTES_FOLDER,
        )
        await closing.enter_async_context(mode)
        interpreter.drive(mode, hears)
        closing.push_async_callback(interpreter.close)
        threads = ToolThreads()
        closing.callback(threads.close)
        found = {name: tool for name, tool in mode.tools.items() if name not in own and name not in finding}
        if self.ptc_servers:  # what is saved in gentools imports them from there
            spaces = {name.partition(".")[0] for name in found if "." in name}
            await asyncio.to_thread(write_sources, found.values(), spaces, self.working_dir)
        tools = [*self._own_tools(found, finder), *await self._server_tools(closing)]
        stubs = [render_stubs(own.values(), "declared"), *([MORE_TOOLS] if found else [])]
        about = build_code_mode_prompt(signatures=stubs, constraints=mode.sandbox.constraints)
        await interpreter.session()
        return Fitted(
            tools=tuple(tools),
            threads=threads,
            large=LargeResults(WorkspaceFiles(self.working_dir)),
            about_code=about,
            skills=SKILLS + "".join(f"\n- {each.name}: {each.description} ({each.path})" for each in self.skills)
            if self.skills
            else "",
        )

    def _limits(self) -> Limits:
        seconds = FOR_GOOD if self.execution_timeout is None else self.execution_timeout
        if not seconds > 0:
            raise InvalidSetting(f"execution_timeout must be more than 0, not {seconds}", hint="None sets no limit")
        return Limits(wall_seconds=seconds, cpu_seconds=max(seconds, 120.0), memory_bytes=MEMORY)

    async def _sandbox(self, closing: AsyncExitStack) -> CodeSandbox:
        """The sandbox; one that is made here is closed here, one that was given stays the caller's."""
        if isinstance(self.sandbox, CodeSandbox):
            if self.sandbox_config is not None or self._given():
                raise InvalidSetting("a ready sandbox has its own settings", hint="give them to the sandbox itself")
            return self.sandbox
        given: object = self.sandbox
        if not isinstance(given, bool | str):  # None must not mean what False means
            raise InvalidSetting(
                f"sandbox is True, False, a name or a CodeSandbox, not {given!r:.80}", hint="True is the strongest wall"
            )
        name = given if isinstance(given, str) else "auto" if given else "process"
        name = await asyncio.to_thread(choose_auto) if name == "auto" else name
        if name == "process" and not self.is_child:
            _log.warning(UNSEALED)
        made = await asyncio.to_thread(self._made, name)
        return await closing.enter_async_context(made)

    def _made(self, name: str) -> CodeSandbox:
        from hatchway.agent.sandbox_config import SandboxConfig, load_sandbox_config, missing_places, sandbox_settings

        if name != "jail":
            if self.sandbox_config not in (None, SandboxConfig()):
                raise InvalidSetting(f"sandbox_config is for the jail, not for {name!r}", hint="sandbox='jail'")
            return make_sandbox(name, **self._given(), **({"workdir": self.working_dir} if name == "process" else {}))
        config = self.sandbox_config or SandboxConfig()
        if isinstance(config, Path | str):
            config = load_sandbox_config(Path(config))
        if config.network.allow_local_binding and not self.is_child:
            _log.warning(NO_BINDING)
        for place in () if self.is_child else missing_places(config, self.working_dir):
            is_pattern = set("*?[") & set(place.removesuffix("/**"))
            _log.warning("allowWrite %r is not granted: %s", place, NO_PATTERN if is_pattern else NOT_THERE)
        settings = sandbox_settings(config, self.working_dir, python=self.python)
        return make_sandbox(name, **settings, **self._given(), spares=0)

    def _given(self) -> dict[str, Any]:
        """What was said about the sandbox that every kind takes, or says that it does not."""
        said = {"env": dict(self.kernel_env), "packages": self.packages, "python": self.python}
        return {name: value for name, value in said.items() if value}

    def _finding(self, finder: Finder, own: Mapping[str, Tool]) -> dict[str, Tool]:
        """What code finds tools with; what somebody calls by such a name himself goes first."""
        taken = {*own, *map(as_namespace, self.ptc_servers)}
        return {each.name: each for each in finder.tools() if each.name not in taken}

    def _own_tools(self, found: Mapping[str, Tool], finder: Finder | None) -> list[JsonTool]:
        """Files and discovery, unless a server of that name takes their place."""
        tools: list[JsonTool] = []
        if "filesystem" not in self.mcp_servers:
            tools += file_tools(self.working_dir)
        if finder is not None:
            finder.offer(found)
            tools += discovery_tools(finder)
        return tools

    async def _server_tools(self, closing: AsyncExitStack) -> list[JsonTool]:
        if not self.mcp_servers:
            return []
        from hatchway.mode.mcp import mcp_servers

        servers, _ = mcp_servers({name: _entry(given) for name, given in self.mcp_servers.items()})
        closing.push_async_callback(servers.aclose)
        return [JsonTool(name=json_name(tool.name), tool=tool) for tool in await servers.tools()]


def _entry(given: Mapping[str, Any]) -> dict[str, Any]:
    """An entry as the servers take it: `excluded_tools` are those their `exclude` names."""
    entry = dict(given)
    excluded = entry.pop("excluded_tools", None)
    return entry if excluded is None else {**entry, "exclude": [*entry.get("exclude", ()), *excluded]}


def _code_tool() -> ToolDefinition:
    schema = {
        "type": "object",
        "properties": {"code": {"type": "string", "description": "The Python source."}},
        "required": ["code"],
        "additionalProperties": False,
    }
    about = files("hatchway.agent").joinpath("prompts", "execute_code.md").read_text(encoding="utf-8").strip()
    return ToolDefinition(name=CODE_TOOL, description=about, parameters_json_schema=schema)
