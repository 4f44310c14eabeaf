"""code_capability: where an agent's code runs, by one word. In a sandbox of ours, or at the vendor of its model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import UserError
from pydantic_ai.native_tools import AbstractNativeTool, CodeExecutionTool
from pydantic_ai.tools import AgentDepsT, AgentNativeTool

from hatchway.adapters.pydantic_ai.capability import CodeModeCapability
from hatchway.mode.code_places import HERE, VENDORS, check_place, check_settings

SYSTEMS = {"openai": ("openai",), "anthropic": ("anthropic",), "gemini": ("google", "google-gla", "google-vertex")}
"""What Pydantic AI calls each vendor."""
_SETTINGS = {each.name for each in fields(CodeModeCapability) if each.init} - {"sandbox"}


def code_capability(where: str, **settings: Any) -> AbstractCapability[Any]:
    """A capability that gives an agent code, here or at its model's vendor.

    In a sandbox it is a `CodeModeCapability`, and the agent's tools are functions of the code. At a vendor it is the
    native tool of Pydantic AI: the agent's tools stay tools of the model, and files the code made cannot be had; for
    that see `hatchway.hosted` and `LlmAgent(code=…)`.

    Args:
        where: `openai`, `anthropic` or `gemini`; or a sandbox: `jail`, `monty`, `container`, …, `auto`.
        settings: Of the `CodeModeCapability`, or `files=` of the native tool, which Gemini has not.

    Raises:
        InvalidSetting: No such place, or settings it does not take.
    """
    if where not in VENDORS:
        if ":" not in str(where):  # an import path of a sandbox
            check_place(where, HERE)
        check_settings("CodeModeCapability", settings, _SETTINGS)
        return CodeModeCapability(sandbox=where, **settings)
    check_settings(f"Pydantic AI's code at {where}", settings, () if where == "gemini" else ("files",))
    return NativeCodeCapability(where, CodeExecutionTool(**settings))


@dataclass
class NativeCodeCapability(AbstractCapability[AgentDepsT]):
    """Code at the vendor of the agent's model."""

    where: str
    tool: CodeExecutionTool

    def get_native_tools(self) -> Sequence[AgentNativeTool[AgentDepsT]]:
        """The native tool, once it is known that the model is this vendor's."""
        return [self._checked]

    def _checked(self, ctx: RunContext[AgentDepsT]) -> AbstractNativeTool:
        if ctx.model.system not in SYSTEMS[self.where]:
            raise UserError(
                f"code at {self.where} is run by a model of {self.where}, and {ctx.model.model_name} is one of "
                f"{ctx.model.system}: take code_capability('jail'), which works with any model"
            )
        return self.tool
