"""The tools of the server: names, texts, schemas."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any, cast

from mcp.types import Tool, ToolAnnotations

from hatchway.core.decisions import NotRun, Ran, Settlement

EXECUTE = "execute_code"
_TEXT = {"type": "string"}
_SCHEMAS: dict[str, dict[str, Any]] = {
    EXECUTE: {
        "code": {**_TEXT, "description": "The Python to run; the value of its last expression comes back."},
        "session": {**_TEXT, "description": "Keeps variables from call to call under this name."},
        "timeout": {"type": "number", "exclusiveMinimum": 0, "description": "Seconds the code itself may take."},
    },
    "search_tools": {
        "query": {**_TEXT, "description": "What you want to do, in your own words."},
        "limit": {"type": "integer", "minimum": 1, "maximum": 50, "default": 5},
    },
    "describe_tool": {"name": {**_TEXT, "description": "As search_tools gives it, such as server.tool."}},
    "resume": {
        "run_id": {**_TEXT, "description": "Of the run that waits."},
        "decisions": {
            "type": "object",
            "additionalProperties": {
                "anyOf": [
                    {"enum": ["allow", "deny", "not_run"]},
                    {"type": "object", "properties": {"ran": {}}, "required": ["ran"], "additionalProperties": False},
                ]
            },
            "description": 'By call id. Of calls in doubt: "not_run", or {"ran": what it gave}.',
        },
    },
    "close_session": {"session": {**_TEXT, "description": "Its name."}},
}
_OPTIONAL = {"session", "timeout", "limit"}
_READ_ONLY = {"search_tools", "describe_tool"}


def offers(prompt: str) -> list[Tool]:
    """What the server lists; `prompt` says what code may be written and call."""
    return [_offer(name, f"{_said(name)}\n\n{prompt}" if name == EXECUTE else _said(name)) for name in _SCHEMAS]


def schema(name: str) -> dict[str, Any]:
    """The JSON schema of a tool's arguments.

    Raises:
        KeyError: There is no such tool.
    """
    properties = _SCHEMAS[name]
    required = [each for each in properties if each not in _OPTIONAL or name == "close_session"]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def settlement(said: Any) -> bool | Settlement:
    """What `resume` was told about a call."""
    if isinstance(said, dict):
        return Ran(cast(dict[str, Any], said)["ran"])
    return NotRun() if said == "not_run" else said == "allow"


def _offer(name: str, description: str) -> Tool:
    is_read_only = name in _READ_ONLY
    hints = ToolAnnotations(read_only_hint=is_read_only, open_world_hint=not is_read_only)
    return Tool(name=name, description=description, input_schema=schema(name), annotations=hints)


@cache
def _said(name: str) -> str:
    home = files("hatchway.adapters.mcp_server")
    return home.joinpath("prompts", f"{name}.md").read_text(encoding="utf-8").strip()
