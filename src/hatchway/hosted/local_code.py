"""Code of any vendor's model, run here: a function tool over a sandbox of ours."""

from __future__ import annotations

from typing import Any

from hatchway.core.constraints import CodeConstraints
from hatchway.core.errors import CodeExecutionError, ToolError
from hatchway.core.events import AgentEvent, RunStarted
from hatchway.hosted.context import TURN
from hatchway.mode.prompt import build_code_mode_prompt
from hatchway.mode.run import shown_text
from hatchway.mode.workbench import BenchSettings, Workbench
from hatchway.sandboxes.registry import choose_auto, sandbox_class
from hatchway.tools.functions import Tool, as_tools
from hatchway.tools.stubs import render_stubs


class LocalCode:
    """Runs code in a sandbox; the names it makes are kept as long as the session with the vendor lasts."""

    def __init__(self, settings: BenchSettings) -> None:
        self._bench = Workbench(settings)

    async def execute_code(self, code: str) -> dict[str, Any]:
        """Run Python to its end.

        Raises:
            ToolError: The code failed; the model is told how.
            SandboxUnavailable, SandboxCrashed, TransportError: The host failed.
        """
        turn = TURN.get()
        end = await self._bench.run(code, session=turn.session.session_id if turn is not None else None)
        if isinstance(end, CodeExecutionError):
            raise ToolError(f"{end.stdout}{end}")
        files = [file.name for file in (*end.files, *end.images)]
        return {"output": shown_text(end) or "", "stderr": end.stderr, "files": files, "tier": end.tier}

    async def aclose(self) -> None:
        """Close the sandbox. It can be used again afterwards."""
        await self._bench.aclose()


def local_code(settings: BenchSettings, name: str) -> Tool:
    """The function tool of a sandbox."""
    where = settings.sandbox
    chosen = choose_auto() if where == "auto" else where
    found = getattr(sandbox_class(chosen), "constraints", None) if isinstance(chosen, str) else None
    constraints = found if isinstance(found, CodeConstraints) else CodeConstraints()
    stubs = render_stubs(as_tools(settings.tools).values(), "declared")
    prompt = build_code_mode_prompt(signatures=[stubs], constraints=constraints)
    return Tool.from_function(LocalCode(settings).execute_code, name=name, description=prompt)


async def close_local_code(tool: Tool) -> None:
    """Close the sandbox of a tool, if it has one."""
    owner = getattr(tool.func, "__self__", None)
    if isinstance(owner, LocalCode):
        await owner.aclose()


def told_to_turn(event: AgentEvent) -> None:
    """An event of code that runs here: whoever follows the turn sees it."""
    turn = TURN.get()
    if turn is not None and not isinstance(event, RunStarted):
        turn.event_bus.publish(event)
