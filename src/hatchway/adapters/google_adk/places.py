"""code_executor: where an ADK agent's code runs, by one word. In a sandbox of ours, or at Gemini."""

from __future__ import annotations

from typing import Any

from google.adk.code_executors import BuiltInCodeExecutor
from google.adk.code_executors.base_code_executor import BaseCodeExecutor

from hatchway.adapters.google_adk.executor import HatchwayCodeExecutor
from hatchway.core.errors import InvalidSetting
from hatchway.mode.code_places import VENDORS
from hatchway.sandboxes.registry import sandbox_class


def code_executor(where: str, **settings: Any) -> BaseCodeExecutor:
    """For `LlmAgent(..., code_executor=code_executor("jail"))` of ADK.

    Args:
        where: `gemini`, which is ADK's own `BuiltInCodeExecutor` and calls none of our tools; or a sandbox: `jail`,
            `monty`, `container`, …, `auto`, which is a `HatchwayCodeExecutor`. ADK has no other vendor's code.
        settings: Of the executor.

    Raises:
        InvalidSetting: No such place, or settings it does not take.
    """
    if where == "gemini":
        if settings:
            raise InvalidSetting(
                f"ADK's code at gemini takes no {', '.join(settings)}", hint="code_executor('jail', …)"
            )
        return BuiltInCodeExecutor()
    if where in VENDORS:
        raise InvalidSetting(
            f"ADK has no code at {where}", hint=f"code_executor('jail'), or the adapter of hatchway.hosted for {where}"
        )
    if where != "auto":
        sandbox_class(where)  # a name nobody knows is told now
    return HatchwayCodeExecutor(sandbox=where, **settings)
