"""A tool that finds out on its own that somebody must allow the call."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from hatchway import Allow, ApprovalRequired, CallContext, CodeMode, Deny, Edit, InDoubt, NotRun
from hatchway.core.decisions import AskFirst

pytestmark = pytest.mark.anyio
DID: list[int] = []


def pay(euros: int, call: CallContext) -> str:
    """Small sums go by themselves."""
    if euros > 10 and not call.approved:
        raise AskFirst
    DID.append(euros)
    return f"paid {euros}"


def stubborn(call: CallContext) -> None:
    raise AskFirst


@pytest.fixture(autouse=True)
def _empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    DID.clear()
    monkeypatch.setenv("HATCHWAY_KEY_FILE", str(tmp_path / "key"))


@pytest.mark.parametrize("sandbox", ["monty", "process"])
@pytest.mark.parametrize("has_journal", [True, False])
@pytest.mark.parametrize(
    ("answer", "saw", "did"),
    [(Allow(), "paid 50", [5, 50]), (Deny("no"), "no", [5]), (Edit({"euros": 20}), "paid 20", [5, 20])],
)
async def test_call_pauses_and_goes_on(
    sandbox: str, has_journal: bool, answer: Allow | Deny | Edit, saw: str, did: list[int], tmp_path: Path
) -> None:
    code = "pay(5)\ntry:\n    told = pay(50)\nexcept RuntimeError as e:\n    told = str(e)\ntold"
    journal = tmp_path / "journal.db" if has_journal else None
    async with CodeMode(sandbox, tools=[pay], journal=journal) as mode:
        with pytest.raises(ApprovalRequired) as paused:
            await mode.run(code)
        [call] = paused.value.pending
        assert call.kwargs == {"euros": 50}
        assert DID == [5]
        result = await mode.resume(paused.value.run_id, {call.call_id: answer})
        assert result.output.removeprefix("ToolDenied: ") == saw
        assert did == DID


async def test_another_process_goes_on_at_the_call(tmp_path: Path) -> None:
    async with CodeMode("process", tools=[pay], journal=tmp_path / "journal.db") as mode:
        with pytest.raises(ApprovalRequired) as paused:
            await mode.run("[pay(5), pay(50)]")
    async with CodeMode("process", tools=[pay], journal=tmp_path / "journal.db") as mode:
        [call] = paused.value.pending
        result = await mode.resume(paused.value.run_id, {call.call_id: True})
    assert result.output == ["paid 5", "paid 50"]
    assert DID == [5, 50]


async def test_callback_is_asked() -> None:
    async with CodeMode("monty", tools=[pay], approve=lambda call: call.kwargs["euros"] < 100) as mode:
        assert (await mode.run("pay(50)")).output == "paid 50"


async def test_tool_that_asks_again_is_refused() -> None:
    async with CodeMode("monty", tools=[stubborn], approve=lambda call: True) as mode:
        result = await mode.run("try:\n    stubborn()\nexcept RuntimeError as e:\n    told = str(e)\ntold")
    assert result.output == "ToolError: the tool stubborn was allowed to run and asks once more"


@pytest.mark.parametrize("was_allowed", [True, False])
async def test_call_that_was_cut_short_is_asked_about_again_unless_it_was_allowed(
    was_allowed: bool, tmp_path: Path
) -> None:
    started, is_stuck = asyncio.Event(), True

    async def slow_pay(euros: int, call: CallContext) -> str:
        if is_stuck and call.approved == was_allowed:
            started.set()
            await asyncio.Event().wait()
        return pay(euros, call)

    async def cut_short(driving: Any) -> None:
        task = asyncio.create_task(driving)
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    async with CodeMode("process", tools=[slow_pay], journal=tmp_path / "journal.db") as mode:
        if was_allowed:
            with pytest.raises(ApprovalRequired) as paused:
                await mode.run("await slow_pay(50)")
            await cut_short(mode.resume(paused.value.run_id, {paused.value.pending[0].call_id: True}))
        else:
            await cut_short(mode.run("await slow_pay(50)"))
        is_stuck = False
        [run] = mode.journal.runs()
        with pytest.raises(InDoubt) as doubt:
            await mode.resume(run.run_id)
        [call] = doubt.value.calls
        if not was_allowed:
            with pytest.raises(ApprovalRequired):
                await mode.resume(run.run_id, {call.call_id: NotRun()})
            assert DID == []
        settled = NotRun() if was_allowed else True
        assert (await mode.resume(run.run_id, {call.call_id: settled})).output == "paid 50"
    assert DID == [50]
