"""code_executor: where an ADK agent's code runs, by one word. In a sandbox of ours, or at Gemini."""

from __future__ import annotations

from typing import Any

from google.adk.code_executors import BuiltInCodeExecutor
from google.adk.code_executors.base_code_executor import BaseCodeExecutor
from pydantic import ValidationError

from hatchway.adapters.google_adk.executor import HatchwayCodeExecutor
from hatchway.core.errors import InvalidSetting
from hatchway.mode.code_places import HERE, VENDORS, check_place, check_settings
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
        check_settings("ADK's code at gemini", settings, ())
        return BuiltInCodeExecutor()
    if where in VENDORS:
        raise InvalidSetting(
            f"ADK has no code at {where}", hint=f"code_executor('jail'), or the adapter of hatchway.hosted for {where}"
        )
    if ":" not in str(where):  # an import path of a sandbox
        check_place(where, HERE, ["gemini"])
    if where != "auto":
        sandbox_class(where)  # one that is not installed is told now
    check_settings("HatchwayCodeExecutor", settings, set(HatchwayCodeExecutor.model_fields) - {"sandbox"})
    try:
        return HatchwayCodeExecutor(sandbox=where, **settings)
    except ValidationError as e:
        raise InvalidSetting(_told(e), hint="help(HatchwayCodeExecutor) tells what each setting is") from None


def _told(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    return ": ".join([*map(str, first["loc"]), first["msg"].removeprefix("Value error, ")])
