"""code_tool: where a model's code runs, by one word. At the vendor, or here behind our own wall."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from importlib import import_module
from typing import Any

from hatchway.core.decisions import ApproveCallback
from hatchway.core.errors import InvalidSetting
from hatchway.core.limits import Limits
from hatchway.gate.rules import Rule
from hatchway.mode.sandbox_code import sandbox_code, sandbox_code_tool, told_to_asker
from hatchway.mode.workbench import BenchSettings
from hatchway.sandboxes.registry import ROWS
from hatchway.tools.functions import Tool, as_tools

VENDORS: Mapping[str, str] = {
    "openai": "hatchway.hosted.openai.tool:OpenAICodeInterpreterTool",
    "anthropic": "hatchway.hosted.anthropic.tool:AnthropicCodeExecutionTool",
    "gemini": "hatchway.hosted.gemini.tool:GeminiCodeExecutionTool",
}
"""The vendors' code tools, imported when they are asked for. A vendor more is one row."""
HERE = ("auto", *ROWS)
"""The sandboxes of ours, by name."""


def check_place(where: Any, here: Iterable[str], vendors: Iterable[str] = VENDORS) -> None:
    """Refuse a word that names no place for code, and say which there are.

    Args:
        where: The word.
        here: The sandboxes there are.
        vendors: The vendors there are.

    Raises:
        InvalidSetting: It names none of them.
    """
    known = [*vendors, *here]
    if where not in known:
        raise InvalidSetting(f"there is no place {where!r} for code to run", hint=f"there are {', '.join(known)}")


def check_settings(what: str, settings: Iterable[str], known: Iterable[str]) -> None:
    """Refuse settings a place does not take, and say which it takes.

    Raises:
        InvalidSetting: One of them is not known.
    """
    words = sorted(known)
    if unknown := sorted(set(settings) - set(words)):
        hint = f"it takes {', '.join(words)}" if words else "leave it out; a sandbox of ours, as 'jail', takes more"
        raise InvalidSetting(f"{what} takes no {', '.join(unknown)}", hint=hint)


def code_tool(
    where: str,
    *,
    tools: Iterable[Tool | Callable[..., Any]] = (),
    name: str = "execute_code",
    approve: ApproveCallback | None = None,
    rules: Iterable[Rule] = (),
    limits: Limits | None = None,
    host_mounts: Sequence[Any] = (),
    **settings: Any,
) -> Tool:
    """A tool that runs the model's code: give it to any adapter, and change where by changing one word.

    At a vendor it is that vendor's own code tool; its adapter alone takes it, and `approve`, `rules` and `limits` are
    then those of the adapter, for each request. Here it is a function named `execute_code` for any vendor's model; its
    code runs in a sandbox with a gate of its own.

    Args:
        where: `openai`, `anthropic` or `gemini`; or a sandbox: `jail`, `monty`, `container`, …, `auto`.
        tools: What the code may call.
        name: What the model calls it, where the vendor does not fix that.
        approve: Decides about the code's calls. Without it, those that must be asked for are denied here; at a vendor
            the request waits for a person.
        rules: Stored permissions for the code's calls.
        limits: Of each execution here, of each request at a vendor.
        host_mounts: `HostMount`s: files for the code, in the folders its adapter allows.
        settings: For the vendor's tool: `container=` at OpenAI and Anthropic, `version=`, `skills=` and `file_ids=` at
            Anthropic, `handle_provider_output=` and `handler=` at all of them.

    Raises:
        InvalidSetting: An unknown place, or settings it does not take.
        InvalidTool: Tools that cannot be offered, or a vendor whose code cannot call any.
    """
    offered, stored = tuple(as_tools(tools).values()), tuple(rules)
    if where in VENDORS:
        settings |= {"tools": offered, "approve": approve, "rules": stored, "limits": limits}
        settings["host_mounts"] = host_mounts
        return _vendor_tool(where, settings)
    check_place(where, HERE)
    if settings:
        raise InvalidSetting(
            f"a sandbox takes no {', '.join(settings)}", hint="leave it out: it is a setting of a vendor's tool"
        )
    tool = sandbox_code_tool(
        BenchSettings(
            sandbox=where,
            tools=offered,
            approve=approve,
            rules=stored,
            limits=limits or Limits(),
            on_event=told_to_asker,
            host_mounts=tuple(host_mounts),
        ),
        name,
    )
    if host_mounts and (made := sandbox_code(tool)) is not None and not made.takes_files:
        raise InvalidSetting(f"the sandbox {where!r} has no place for files", hint="code_tool('jail', …) has")
    return tool


def _vendor_tool(where: str, settings: dict[str, Any]) -> Tool:
    module, _, name = VENDORS[where].partition(":")
    made: type[Tool] = getattr(import_module(module), name)
    own = {each.name for each in fields(made)} - {each.name for each in fields(Tool)}
    words = own - {"provider", "kind", "config"} | {"description"}
    named = {"tools", "approve", "rules", "limits", "host_mounts"}  # code_tool names them itself
    check_settings(f"the code tool of {where}", set(settings) - named, words - named)
    return made(**settings)
