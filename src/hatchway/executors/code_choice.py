"""Where an agent's code runs, by a word or a tool of `code_tool`: in a sandbox of ours, or at the model's vendor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from hatchway.core.errors import InvalidSetting
from hatchway.executors.executor import CodeExecutor
from hatchway.executors.sandbox import SandboxCodeExecutor
from hatchway.mode.code_places import code_tool
from hatchway.mode.models import Model, ModelSettings
from hatchway.mode.sandbox_code import sandbox_code
from hatchway.mode.vendor_code import VendorCode, VendorModel, VendorTurns
from hatchway.tools.functions import Tool

OF_VENDOR: Mapping[str, tuple[str, ...]] = {
    "openai": ("openai", "openai-responses", "openai-chat"),
    "anthropic": ("anthropic",),
    "gemini": ("google", "google-gla", "google-vertex", "google-cloud", "gemini"),
}
"""What Pydantic AI calls each vendor."""
SAMPLING: Mapping[str, Mapping[str, str]] = {
    "openai": {"temperature": "temperature", "top_p": "top_p"},
    "anthropic": {"temperature": "temperature", "top_p": "top_p"},
    "gemini": {"temperature": "temperature", "top_p": "topP", "top_k": "topK", "seed": "seed"},
}
"""What Pydantic AI's settings are called there."""


def chosen(
    code: str | Tool,
    model: Model | str,
    *,
    instruction: str,
    max_rounds: int,
    model_settings: ModelSettings | None,
) -> CodeExecutor | VendorTurns:
    """What runs the code.

    Raises:
        InvalidSetting: No such place, a tool that is none of `code_tool`, or a model of another vendor.
        InvalidTool: Tools that cannot be offered there.
    """
    if not isinstance(cast(Any, code), str | Tool):
        raise InvalidSetting(f"code is a word or a tool, not {code!r:.80}", hint="code='jail', or what code_tool gives")
    tool = code_tool(code) if isinstance(code, str) else code
    here = sandbox_code(tool)
    if here is not None:
        own = here.settings
        if own.host_mounts:
            raise InvalidSetting(
                "host mounts are brought by the adapters of hatchway.hosted", hint="agent.run(prompt, files=[…])"
            )
        return SandboxCodeExecutor(
            own.sandbox,
            tools=own.tools,
            approve=own.approve,
            rules=own.rules,
            timeout=own.limits.wall_seconds,
            limits=own.limits,
        )
    if not isinstance(tool, VendorCode):
        raise InvalidSetting(f"the tool {tool.name!r} runs no code", hint="give code='jail', or what code_tool gives")
    settings: dict[str, Any] = {**(model_settings or {})}
    name, client = _at(tool.provider, model)
    asked = VendorModel(
        name=name,
        client=client,
        instructions=instruction,
        max_rounds=max_rounds + 1,  # the last answer is no round
        max_output_tokens=settings.pop("max_tokens", None),
        settings=_sampling(tool.provider, settings),
    )
    return tool.turns(asked)


def _at(provider: str, model: Model | str) -> tuple[str, Any]:
    """The name of a model as its vendor spells it, and the client it is asked with."""
    if isinstance(model, str):
        system, colon, name = model.partition(":")
        name, client = (name, None) if colon else (model, None)
        system = system if colon else provider
    else:
        system, name, client = model.system, model.model_name, getattr(model, "client", None)
    if system not in OF_VENDOR[provider] or (client is None and not isinstance(model, str)):
        told = name if isinstance(model, str) else f"{type(model).__name__} {name!r}"
        raise InvalidSetting(
            f"code at {provider} is run by a model of {provider}, and {told} is one of {system or 'another'}",
            hint="code='jail' works with any model",
        )
    return name, client


def _sampling(provider: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    names = SAMPLING[provider]
    if unknown := sorted(set(settings) - set(names)):
        raise InvalidSetting(
            f"model_settings for code at {provider} are max_tokens, {', '.join(names)}, not {', '.join(unknown)}",
            hint=f"leave them out, or ask with the adapter of hatchway.hosted: {provider} takes settings= as they are",
        )
    return {names[name]: value for name, value in settings.items()}
