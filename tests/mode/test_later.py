"""`Later`: whoever is asked cannot say now, and the run pauses at the call."""

import pytest

from hatchway import Allow, ApprovalRequired, CodeMode, tool
from hatchway.core.calls import FunctionCall
from hatchway.core.decisions import Later
from hatchway.core.events import AgentEvent, ApprovalRequest, RunPaused

pytestmark = pytest.mark.anyio


def pay(euros: int) -> str:
    """Pay."""
    return f"paid {euros}"


async def test_a_callback_that_cannot_say_now_pauses_the_run() -> None:
    def decide(call: FunctionCall) -> bool | Later:
        return Later() if call.kwargs["euros"] > 10 else True

    async with CodeMode("monty", tools=[pay], approve=decide) as mode:
        with pytest.raises(ApprovalRequired) as paused:
            await mode.run("[pay(5), pay(50)]")
        [call] = paused.value.pending
        assert call.kwargs == {"euros": 50}
        result = await mode.resume(paused.value.run_id, {call.call_id: Allow()})
    assert result.output == ["paid 5", "paid 50"]


async def test_a_request_that_is_left_ends_the_stream_with_a_pause() -> None:
    async with CodeMode("monty", tools=[tool(pay, approval="ask")]) as mode:
        events: list[AgentEvent] = []
        async for event in mode.stream("pay(5)"):
            events.append(event)
            if isinstance(event, ApprovalRequest):
                assert event.is_open
                event.approve(Later())
                assert not event.is_open
                assert not await event.approved()
        assert isinstance(events[-1], RunPaused)
        [call] = events[-1].pending
        assert (await mode.resume(events[-1].run_id, {call.call_id: Allow()})).output == "paid 5"
