"""Streaming: a run's events as they happen, approval requests among them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from typing import Any

from hatchway.core.calls import FunctionCall
from hatchway.core.decisions import Decision, Later
from hatchway.core.errors import CodeExecutionError
from hatchway.core.events import AgentEvent, ApprovalRequest
from hatchway.mode.run import Run


async def streamed(
    run: Run, code: str, inputs: Mapping[str, Any] | None, *, asks: bool
) -> AsyncGenerator[AgentEvent, None]:
    """The events of one run; leaving the loop early kills it.

    Args:
        run: The run, not started yet.
        code: Its code.
        inputs: Its inputs.
        asks: Calls to be asked about come as `ApprovalRequest` events; otherwise the run's own way of asking holds.
    """
    events: asyncio.Queue[AgentEvent | None] = asyncio.Queue()
    listener = run.emit

    def emit(event: AgentEvent) -> None:
        listener(event)
        events.put_nowait(event)

    async def request(call: FunctionCall) -> Decision | None:
        wanted = ApprovalRequest(call.function_name, call.kwargs, call_id=call.call_id, run_id=run.run_id)
        emit(wanted)
        answer = await wanted.decision()
        return None if isinstance(answer, Later) else answer

    run.emit = emit
    if asks:
        run.ask = request
    running = asyncio.create_task(run.start(code, inputs))
    running.add_done_callback(lambda _: events.put_nowait(None))
    try:
        while (event := await events.get()) is not None:
            yield event
        with suppress(CodeExecutionError):  # told as RunFailed already
            await running
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
