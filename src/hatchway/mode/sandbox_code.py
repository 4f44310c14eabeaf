"""Code of any model, run here: a function tool over a sandbox of ours."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextvars import ContextVar
from dataclasses import replace
from typing import Any, Protocol

from hatchway.core.constraints import CodeConstraints
from hatchway.core.decisions import ApproveCallback
from hatchway.core.errors import CodeExecutionError, ToolError
from hatchway.core.events import AgentEvent
from hatchway.core.results import ExecFile
from hatchway.gate.rules import Rule
from hatchway.mode.prompt import build_code_mode_prompt
from hatchway.mode.run import shown_text
from hatchway.mode.workbench import BenchSettings, End, Workbench
from hatchway.sandboxes.registry import choose_auto, sandbox_class
from hatchway.tools.functions import Tool, as_tools
from hatchway.tools.stubs import render_stubs


class Asker(Protocol):
    """For whom the code of a function tool runs."""

    @property
    def session_name(self) -> str:
        """Under this name the code's state is kept."""
        ...

    @property
    def code_files(self) -> Sequence[ExecFile]:
        """What lies in the working directory of the code."""
        ...

    def begun(self, action: str, sandbox: str) -> object:
        """Code is about to run; what is given is handed to `ended`."""
        ...

    def hear(self, event: AgentEvent) -> None:
        """What happens to the code."""
        ...

    def ended(self, begun: Any, end: End) -> None:
        """The code ended, and this is what it gave and made."""
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
        end = await (self._bench.run(code) if asker is None else self._run_for(asker, code))
        if isinstance(end, CodeExecutionError):
            raise ToolError(f"{end.stdout}{end}")
        files = [file.name for file in (*end.files, *end.images)]
        return {"output": shown_text(end) or "", "stderr": end.stderr, "files": files, "tier": end.tier}

    @property
    def takes_files(self) -> bool:
        """Whether its code has a working directory that lasts."""
        constraints = _constraints(self.settings)
        return constraints.filesystem and constraints.stateful

    async def _run_for(self, asker: Asker, code: str) -> End:
        sandbox = self.settings.sandbox
        begun = asker.begun(code, sandbox if isinstance(sandbox, str) else sandbox.name)
        end = await self._bench.run(code, files=asker.code_files, session=asker.session_name)
        asker.ended(begun, end)
        return end

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
    stubs = render_stubs(as_tools(settings.tools).values(), "declared")
    return build_code_mode_prompt(signatures=[stubs], constraints=_constraints(settings))


def gated(tool: Tool, approve: ApproveCallback | None, rules: Iterable[Rule]) -> Tool:
    """The tool whose code is asked about by whoever else decides; what it was told itself holds too.

    A tool that runs no code is given back as it is.
    """
    code = sandbox_code(tool)
    if code is None:
        return tool
    own = code.settings
    settings = replace(own, approve=own.approve or approve, rules=(*rules, *own.rules))
    return replace(tool, func=SandboxCode(settings).execute_code)


def _constraints(settings: BenchSettings) -> CodeConstraints:
    where = choose_auto() if settings.sandbox == "auto" else settings.sandbox
    found = getattr(sandbox_class(where) if isinstance(where, str) else where, "constraints", None)
    return found if isinstance(found, CodeConstraints) else CodeConstraints()


def sandbox_code(tool: Tool) -> SandboxCode | None:
    """What runs the code of a tool made by `sandbox_code_tool`; None for any other tool."""
    owner = getattr(tool.func, "__self__", None)
    return owner if isinstance(owner, SandboxCode) else None


def told_to_asker(event: AgentEvent) -> None:
    """An event of code that runs here: whoever asked for it hears it."""
    asker = ASKER.get()
    if asker is not None:
        asker.hear(event)
