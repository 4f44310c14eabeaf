"""Code of any model, run here: a function tool over a sandbox of ours."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any, Protocol

from hatchway.core.constraints import CodeConstraints
from hatchway.core.errors import CodeExecutionError, ToolError
from hatchway.core.events import AgentEvent, RunStarted
from hatchway.mode.prompt import build_code_mode_prompt
from hatchway.mode.run import shown_text
from hatchway.mode.workbench import BenchSettings, Workbench
from hatchway.sandboxes.registry import choose_auto, sandbox_class
from hatchway.tools.functions import Tool, as_tools
from hatchway.tools.stubs import render_stubs


class Asker(Protocol):
    """For whom the code of a function tool runs."""

    @property
    def session_name(self) -> str:
        """Under this name the code's state is kept."""
        ...

    def hear(self, event: AgentEvent) -> None:
        """What happens to the code."""
        ...


ASKER: ContextVar[Asker | None] = ContextVar("hatchway_code_asker", default=None)
"""Who asks in this task; without one, code is fresh each time and nobody hears of it."""


class SandboxCode:
    """Runs code in a sandbox; the names it makes are kept as long as the asker's session lasts."""

    def __init__(self, settings: BenchSettings) -> None:
        self.settings = settings
        self._bench = Workbench(settings)

    async def execute_code(self, code: str) -> dict[str, Any]:
        """Run Python to its end.

        Raises:
            ToolError: The code failed; the model is told how.
            SandboxUnavailable, SandboxCrashed, TransportError: The host failed.
        """
        asker = ASKER.get()
        end = await self._bench.run(code, session=asker.session_name if asker is not None else None)
        if isinstance(end, CodeExecutionError):
            raise ToolError(f"{end.stdout}{end}")
        files = [file.name for file in (*end.files, *end.images)]
        return {"output": shown_text(end) or "", "stderr": end.stderr, "files": files, "tier": end.tier}

    async def aclose(self) -> None:
        """Close the sandbox. It can be used again afterwards."""
        await self._bench.aclose()


def sandbox_code_tool(settings: BenchSettings, name: str) -> Tool:
    """The function tool of a sandbox."""
    return Tool.from_function(SandboxCode(settings).execute_code, name=name, description=code_prompt(settings))


def code_prompt(settings: BenchSettings) -> str:
    """What a model must know to write code for a sandbox; nothing is started for it.

    Raises:
        InvalidSetting, SandboxUnavailable: There is no such sandbox here.
    """
    where = choose_auto() if settings.sandbox == "auto" else settings.sandbox
    found = getattr(sandbox_class(where) if isinstance(where, str) else where, "constraints", None)
    constraints = found if isinstance(found, CodeConstraints) else CodeConstraints()
    stubs = render_stubs(as_tools(settings.tools).values(), "declared")
    return build_code_mode_prompt(signatures=[stubs], constraints=constraints)


def sandbox_code(tool: Tool) -> SandboxCode | None:
    """What runs the code of a tool made by `sandbox_code_tool`; None for any other tool."""
    owner = getattr(tool.func, "__self__", None)
    return owner if isinstance(owner, SandboxCode) else None


def told_to_asker(event: AgentEvent) -> None:
    """An event of code that runs here: whoever asked for it hears it."""
    asker = ASKER.get()
    if asker is not None and not isinstance(event, RunStarted):
        asker.hear(event)
