"""Objects: runs, calls and events as the JSON that commands print."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

import click

from hatchway.cli.failing import vendor_words
from hatchway.core.decisions import Allow, Decision, Deny, Edit
from hatchway.core.errors import HatchwayError
from hatchway.core.events import AgentEvent
from hatchway.core.plain_json import jsonable
from hatchway.core.results import ExecutionResult
from hatchway.journal.entries import RunRow
from hatchway.journal.history import JournaledCall
from hatchway.journal.names import ArgumentNames
from hatchway.trace.wording import arguments


def print_json(value: Any) -> None:
    """Print a value as one line of JSON; bytes are base64, what JSON lacks is text."""
    click.echo(json.dumps(jsonable(value), allow_nan=False))


def run_object(run: RunRow) -> dict[str, Any]:
    """A run as a list of runs tells it; times are seconds since the epoch."""
    ending = run.ending
    return {
        "run_id": run.run_id,
        "state": run.state,
        "sandbox": run.sandbox,
        "tier": run.tier,
        "started_at": run.started_at,
        "updated_at": run.updated_at,
        "ended_at": run.ended_at,
        "epoch": run.epoch,
        "session_id": run.session_id or None,
        "place": run.place,
        "code": run.head.code,
        "error": error_object(ending) if isinstance(ending, HatchwayError) else None,
    }


def result_object(result: ExecutionResult) -> dict[str, Any]:
    """What an action gave; of files and pictures only what they are."""
    listed = [{"name": f.name, "bytes": len(f.content), "mime_type": f.mime_type} for f in result.files]
    return {"output": result.output, "stdout": result.stdout, "stderr": result.stderr, "files": listed}


def call_object(call: JournaledCall, names: ArgumentNames, *, in_doubt: bool) -> dict[str, Any]:
    """A call as the journal knows it."""
    state = "in_doubt" if in_doubt and call.state == "started" else call.state
    told: dict[str, Any] = {
        "call_id": call.call.call_id,
        "tool": call.call.function_name,
        "args": arguments(names.named(call.call)),
        "state": state,
        "at": call.at,
        "seconds": call.seconds,
    }
    match call.state:
        case "done":
            told["value"] = "[redacted]" if call.is_redacted else call.value
        case "failed" | "denied":
            told["error"] = call.error
        case _:
            pass
    if call.decision is not None:
        told["decision"] = decision_object(call.decision) | {"by": call.by}
    return told


def decision_object(decision: Decision) -> dict[str, Any]:
    """A decision."""
    match decision:
        case Allow(scope=scope):
            return {"kind": "allow", "scope": scope}
        case Deny(reason=reason):
            return {"kind": "deny", "reason": reason}
        case Edit(args=args):
            return {"kind": "edit", "args": dict(args)}


def event_object(event: AgentEvent) -> dict[str, Any]:
    """An event: its class as `event`, and its fields."""
    told: dict[str, Any] = {"event": type(event).__name__}
    for field in fields(event):
        value = getattr(event, field.name)
        if not field.name.startswith("_") and not (field.name == "agent_id" and not value):
            told[field.name] = _field(value)
    return told


def error_object(error: Exception) -> dict[str, str]:
    """An error: its class, what happened, what to do next."""
    if isinstance(error, HatchwayError):
        message, hint = error.message, error.hint
    else:
        message, hint = vendor_words(error) or (str(error), "")
    return {"type": type(error).__name__, "message": message, "hint": hint}


def _field(value: Any) -> Any:
    match value:
        case ExecutionResult():
            return result_object(value)
        case Allow() | Deny() | Edit():
            return decision_object(value)
        case Exception():
            return error_object(value)
        case _:
            return value
