"""code_tool: where a model's code runs, by one word. At the vendor, or here behind our own wall."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from hatchway.core.decisions import ApproveCallback
from hatchway.core.errors import InvalidSetting
from hatchway.core.limits import Limits
from hatchway.gate.rules import Rule
from hatchway.hosted.local_code import local_code, told_to_turn
from hatchway.mode.workbench import BenchSettings
from hatchway.sandboxes.registry import ROWS
from hatchway.tools.functions import Tool, as_tools

VENDORS = ("openai", "anthropic", "gemini")


def code_tool(
    where: str,
    *,
    tools: Iterable[Tool | Callable[..., Any]] = (),
    name: str = "execute_code",
    approve: ApproveCallback | None = None,
    rules: Iterable[Rule] = (),
    limits: Limits | None = None,
    **settings: Any,
) -> Tool:
    """A tool that runs the model's code: give it to any adapter, and change where by changing one word.

    At a vendor it is that vendor's own code tool; its adapter alone takes it, and its calls to `tools` pass the
    adapter's gate. Here it is a function named `execute_code` for any vendor's model, whose code runs in a sandbox with
    a gate of its own: `approve`, `rules` and `limits` are for that one.

    Args:
        where: `openai`, `anthropic` or `gemini`; or a sandbox: `jail`, `monty`, `container`, …, `auto`.
        tools: What the code may call.
        name: What the model calls it, where the vendor does not fix that.
        approve: Decides about calls from a sandbox; without it, calls that must be asked for are denied.
        rules: Stored permissions for calls from a sandbox.
        limits: Of each execution in a sandbox.
        settings: For the vendor's tool, such as `container=` or `host_mounts=`.

    Raises:
        InvalidSetting: An unknown place, or settings it does not take.
        InvalidTool: Tools that cannot be offered, or a vendor whose code cannot call any.
    """
    if where in VENDORS:
        if approve is not None or limits is not None or tuple(rules):
            raise InvalidSetting(f"at {where} the gate is the adapter's", hint="give approve and rules to it")
        return _vendor_tool(where, tuple(as_tools(tools).values()), settings)
    if where not in ("auto", *ROWS):
        known = ", ".join([*VENDORS, "auto", *ROWS])
        raise InvalidSetting(f"there is no place {where!r} for code to run", hint=f"there are {known}")
    if settings:
        raise InvalidSetting(f"a sandbox takes no {', '.join(settings)}")
    return local_code(
        BenchSettings(
            sandbox=where,
            tools=tuple(as_tools(tools).values()),
            approve=approve,
            rules=tuple(rules),
            limits=limits or Limits(),
            on_event=told_to_turn,
        ),
        name,
    )


def _vendor_tool(where: str, tools: tuple[Tool, ...], settings: dict[str, Any]) -> Tool:
    from hatchway.hosted.anthropic.tool import AnthropicCodeExecutionTool
    from hatchway.hosted.gemini.tool import GeminiCodeExecutionTool
    from hatchway.hosted.openai.tool import OpenAICodeInterpreterTool

    kinds: dict[str, Callable[..., Tool]] = {
        "openai": OpenAICodeInterpreterTool,
        "anthropic": AnthropicCodeExecutionTool,
        "gemini": GeminiCodeExecutionTool,
    }
    try:
        return kinds[where](tools=tools, **settings)
    except TypeError as e:
        raise InvalidSetting(f"the code tool of {where} is not given like this: {e}") from None
