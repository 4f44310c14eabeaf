"""Calls that a server answers later: it gives a task, which is asked about until it is over (protocol 2025-11-25)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, cast

from mcp.client.client import Client
from mcp.shared.dispatcher import ProgressFnT
from mcp.shared.exceptions import MCPError
from mcp.types import (
    CancelTaskRequest,
    CancelTaskRequestParams,
    GetTaskPayloadRequest,
    GetTaskPayloadRequestParams,
    GetTaskRequest,
    GetTaskRequestParams,
    Request,
)
from pydantic import TypeAdapter

from hatchway.core.errors import ToolError
from hatchway.tools.mcp.failures import ASKS_BACK

_SHORTEST, _LONGEST = 0.05, 5.0
"""Seconds between two questions, whatever the server wishes."""
_CANCEL_SECONDS = 2.0
_AS_IT_CAME: Any = TypeAdapter(dict[str, Any])


async def finished(client: Client, created: Mapping[str, Any], progressed: ProgressFnT) -> dict[str, Any]:
    """The result of a call that became a task. Cancelling this cancels the task.

    Args:
        client: Of the server.
        created: What the server answered to the call.
        progressed: Is told what the server says meanwhile.

    Raises:
        ToolError: The task ended without a result, or wants to ask a person.
        MCPError: The server refused.
    """
    task = cast(dict[str, Any], created["task"]) if isinstance(created["task"], dict) else {}
    if not isinstance(task_id := task.get("taskId"), str):
        raise ToolError("the server began a task and did not say which")
    over = False
    try:
        status, said = await _over(client, task_id, progressed)
        over = status != "input_required"
    finally:
        if not over:
            await asyncio.shield(_cancelled(client, task_id))
    if status in ("completed", "failed"):
        return await _asked(client, GetTaskPayloadRequest(params=GetTaskPayloadRequestParams(task_id=task_id)))
    raise ToolError(ASKS_BACK if status == "input_required" else f"the task ended as {status}: {said or 'no reason'}")


async def _over(client: Client, task_id: str, progressed: ProgressFnT) -> tuple[str, str]:
    """The status in which a task does not go on by itself, and what the server said about it last."""
    step, before = 0, ""
    while True:
        task = await _asked(client, GetTaskRequest(params=GetTaskRequestParams(task_id=task_id)))
        said = str(task.get("statusMessage") or "")
        if task.get("status") != "working":
            return str(task.get("status")), said
        if said != before:
            step, before = step + 1, said
            await progressed(step, None, said)
        wished = task.get("pollInterval")
        seconds = wished / 1000 if isinstance(wished, int | float) else 1.0
        await asyncio.sleep(min(max(seconds, _SHORTEST), _LONGEST))


async def _cancelled(client: Client, task_id: str) -> None:
    with suppress(MCPError, TimeoutError, OSError):
        async with asyncio.timeout(_CANCEL_SECONDS):
            await _asked(client, CancelTaskRequest(params=CancelTaskRequestParams(task_id=task_id)))


async def _asked(client: Client, request: Request[Any, Any]) -> dict[str, Any]:
    return await client.session.send_request(request, _AS_IT_CAME)
