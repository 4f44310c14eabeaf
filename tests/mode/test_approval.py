"""Approval of single calls inside running code: by rule, by callback, by a person after a pause."""

import asyncio
import re
from typing import Any

import pytest

from hatchway import Allow, ApprovalRequired, CodeMode, Deny, Edit, FunctionCall, NotRun, Ran, Rule, tool
from hatchway.core.errors import InvalidSetting, RunTaken, UnknownRun
from hatchway.core.events import ApprovalRequest

pytestmark = pytest.mark.anyio


class Effects:
    """Tools that leave a trace on the host, so that a test sees what really ran."""

    def __init__(self) -> None:
        self.log: list[str] = []

    def send(self, to: str, text: str = "hello") -> str:
        """Send a message."""
        self.log.append(f"{to}:{text}")
        return f"sent to {to}"

    async def asend(self, to: str) -> str:
        """Send a message, later."""
        self.log.append(to)
        return f"sent to {to}"


@pytest.fixture
def effects() -> Effects:
    return Effects()


SENT = "try:\n    r = send('ann')\nexcept RuntimeError as e:\n    r = str(e)\nr"


def plain(text: str) -> str:
    return re.sub("^Tool(Error|Denied): ", "", text)


@pytest.mark.parametrize(
    ("answer", "output", "log"),
    [
        (True, "sent to ann", ["ann:hello"]),
        (Allow(), "sent to ann", ["ann:hello"]),
        (False, "the call to send was denied", []),
        (Deny("not today"), "not today", []),
        (Edit({"to": "bob", "text": "hi"}), "sent to bob", ["bob:hi"]),
        (Edit({"to": 3}), "send(): parameter 'to' must be a string, got 3 (int)", []),
    ],
)
@pytest.mark.parametrize("style", ["sync", "async"])
async def test_a_callback_decides(
    sandbox: str, effects: Effects, answer: Any, output: str, log: list[str], style: str
) -> None:
    asked: list[FunctionCall] = []

    def approve(call: FunctionCall) -> Any:
        asked.append(call)
        return answer

    async def aapprove(call: FunctionCall) -> Any:
        return approve(call)

    callback = approve if style == "sync" else aapprove
    async with CodeMode(sandbox, tools=[effects.send], approve=callback) as mode:
        result = await mode.run(SENT)
    assert plain(result.output).startswith(output)
    assert effects.log == log
    assert [dict(call.kwargs) for call in asked] == [{"to": "ann"}]


async def test_what_is_approved_is_what_runs(sandbox: str) -> None:
    ran: list[Any] = []

    def pay(order: dict[str, int]) -> None:
        ran.append(order)

    def approve(call: FunctionCall) -> bool:
        call.kwargs["order"]["amount"] = 1_000_000
        return True

    async with CodeMode(sandbox, tools=[pay], approve=approve) as mode:
        await mode.run("pay({'amount': 1})")
    assert ran == [{"amount": 1}]


async def test_a_callback_that_fails_ends_the_run_with_its_error(sandbox: str, effects: Effects) -> None:
    def approve(call: FunctionCall) -> bool:
        raise ConnectionError("the approval service is down")

    async with CodeMode(sandbox, tools=[effects.send, effects.asend], approve=approve) as mode:
        with pytest.raises(ConnectionError, match="the approval service is down"):
            await mode.run(SENT)
        with pytest.raises(ConnectionError, match="the approval service is down"):
            await mode.run("import asyncio\nawait asyncio.gather(asend('a'), asend('b'))")
    assert effects.log == []


async def test_rules_come_before_the_callback(sandbox: str, effects: Effects) -> None:
    asked: list[str] = []

    def approve(call: FunctionCall) -> bool:
        asked.append(call.kwargs["to"])
        return True

    rules = [Rule("allow", "send", {"to": "ann"}), Rule("deny", "send", {"text": "hello*"}, reason="no greetings")]
    code = """
seen = []
for to, text in [("ann", "hello"), ("ann", "bye"), ("bob", "bye")]:
    try:
        seen.append(send(to, text))
    except RuntimeError as e:
        seen.append(str(e))
seen
"""
    async with CodeMode(sandbox, tools=[effects.send], approve=approve, rules=rules) as mode:
        output = (await mode.run(code)).output
    assert [plain(o) for o in output] == ["no greetings", "sent to ann", "sent to bob"]
    assert asked == ["bob"]


async def test_a_default_left_out_does_not_hide_from_a_rule(sandbox: str, effects: Effects) -> None:
    async with CodeMode(sandbox, tools=[effects.send], rules=[Rule("deny", "send", {"text": "hello"})]) as mode:
        assert plain((await mode.run(SENT)).output) == "a rule denies send"
    assert effects.log == []


async def test_a_run_pauses_and_goes_on_where_it_stood(sandbox: str, effects: Effects) -> None:
    code = "print('before')\nr = send('ann')\nprint('after')\nr"
    async with CodeMode(sandbox, tools=[tool(effects.send, approval="ask")]) as mode:
        with pytest.raises(ApprovalRequired) as paused:
            await mode.run(code)
        (call,) = paused.value.pending
        assert (call.function_name, dict(call.kwargs)) == ("send", {"to": "ann"})
        assert effects.log == []
        result = await mode.resume(paused.value.run_id, {call.call_id: Allow()})
        assert (result.output, result.stdout) == ("sent to ann", "before\nafter\n")
        assert await mode.resume(paused.value.run_id) == result
        assert await mode.resume(paused.value.run_id, {call.call_id: Allow()}) == result
    assert effects.log == ["ann:hello"]


async def test_all_pending_calls_of_a_gather_come_together_and_may_be_settled_one_by_one(
    sandbox: str, effects: Effects
) -> None:
    code = """
import asyncio
async def one(to):
    try:
        return await asend(to)
    except RuntimeError as e:
        return str(e)
await asyncio.gather(one('a'), one('b'), one('c'))
"""
    async with CodeMode(sandbox, tools=[tool(effects.asend, approval="ask")]) as mode:
        with pytest.raises(ApprovalRequired) as paused:
            await mode.run(code)
        run_id = paused.value.run_id
        ids = {call.kwargs["to"]: call.call_id for call in paused.value.pending}
        assert list(ids) == ["a", "b", "c"]
        with pytest.raises(ApprovalRequired) as still:
            await mode.resume(run_id, {ids["b"]: True})
        assert [call.call_id for call in still.value.pending] == [ids["a"], ids["c"]]
        assert effects.log == ["b"]
        result = await mode.resume(run_id, {ids["a"]: Deny("no"), ids["c"]: Edit({"to": "z"})})
    assert [plain(o) for o in result.output] == ["no", "sent to b", "sent to z"]
    assert effects.log == ["b", "z"]


async def test_calls_that_need_no_approval_go_on_beside_one_that_does(sandbox: str, effects: Effects) -> None:
    async def free(i: int) -> int:
        await asyncio.sleep(0.01)
        effects.log.append(f"free {i}")
        return i

    code = "import asyncio\nawait asyncio.gather(asend('a'), free(1), free(2))"
    async with CodeMode(sandbox, tools=[tool(effects.asend, approval="ask"), free]) as mode:
        with pytest.raises(ApprovalRequired) as paused:
            await mode.run(code)
        assert [call.function_name for call in paused.value.pending] == ["asend"]
        assert sorted(effects.log) == ["free 1", "free 2"]
        (call,) = paused.value.pending
        assert (await mode.resume(paused.value.run_id, {call.call_id: True})).output == ["sent to a", 1, 2]


async def test_a_session_pauses_and_keeps_its_state(sandbox: str, effects: Effects) -> None:
    async with CodeMode(sandbox, tools=[tool(effects.send, approval="ask")]) as mode, mode.session() as session:
        await session.run("x = 1")
        with pytest.raises(ApprovalRequired) as paused:
            await session.run("x = send('ann') + str(x)")
        (call,) = paused.value.pending
        await mode.resume(paused.value.run_id, {call.call_id: True})
        assert (await session.run("x")).output == "sent to ann1"


async def test_wrong_resumes_are_refused(sandbox: str, effects: Effects) -> None:
    async with CodeMode(sandbox, tools=[tool(effects.send, approval="ask")]) as mode:
        with pytest.raises(UnknownRun, match="no run 'nope' in this journal"):
            await mode.resume("nope")
        with pytest.raises(ApprovalRequired) as paused:
            await mode.run("send('ann')")
        (call,) = paused.value.pending
        with pytest.raises(InvalidSetting) as told:
            await mode.resume(paused.value.run_id, {"zzz": True})
        assert str(told.value) == f"zzz: no such pending call; pending are {call.call_id}\ndecide about one of these"
        with pytest.raises(ApprovalRequired):
            await mode.resume(paused.value.run_id)
        both = await asyncio.gather(
            mode.resume(paused.value.run_id, {call.call_id: True}),
            mode.resume(paused.value.run_id, {call.call_id: True}),
            return_exceptions=True,
        )
        assert [str(outcome) for outcome in both if isinstance(outcome, RunTaken)] == [
            f"run {paused.value.run_id} is being driven by somebody else\nwait for it to end, pause or die"
        ]
    assert effects.log == ["ann:hello"]


async def test_a_mode_that_ends_takes_its_paused_runs_along(sandbox: str, effects: Effects) -> None:
    async with CodeMode(sandbox, tools=[tool(effects.send, approval="ask")]) as mode:
        with pytest.raises(ApprovalRequired):
            await mode.run("send('ann')")
    assert effects.log == []


@pytest.mark.parametrize("settlement", [Ran(3), NotRun()])
async def test_a_call_that_waits_for_approval_is_not_in_doubt(sandbox: str, effects: Effects, settlement: Any) -> None:
    async with CodeMode(sandbox, tools=[tool(effects.send, approval="ask")]) as mode:
        with pytest.raises(ApprovalRequired) as paused:
            await mode.run(SENT)
        run_id, [call] = paused.value.run_id, paused.value.pending
        with pytest.raises(InvalidSetting, match=r"does not fit\nsay Allow\(\), Deny\(reason\) or Edit\(args\)$"):
            await mode.resume(run_id, {call.call_id: settlement})
        assert effects.log == []
        assert (await mode.resume(run_id, {call.call_id: True})).output == "sent to ann"
        async for event in mode.stream(SENT):
            if isinstance(event, ApprovalRequest):
                with pytest.raises(TypeError, match="is not in doubt: allow, deny or edit it"):
                    event.approve(settlement)
                event.approve(False)
    assert effects.log == ["ann:hello"]


def test_a_decision_that_says_nothing_is_refused_where_it_is_made() -> None:
    with pytest.raises(InvalidSetting, match="a call is allowed for 'call', 'run' or 'always', not 'forever'"):
        Allow("forever")  # type: ignore[arg-type]
    with pytest.raises(InvalidSetting, match="an edit gives all arguments by name, not 5"):
        Edit(5)  # type: ignore[arg-type]
