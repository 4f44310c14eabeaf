"""Recovery: what the journal knows of a run, turned into what is needed to go on with it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from hatchway.core.calls import no_such_call
from hatchway.core.decisions import Allow, Deny, Edit, NotRun, Ran, Settlement
from hatchway.core.errors import ApprovalRequired, CheckpointRefused, InDoubt, InvalidSetting, ToolError
from hatchway.core.recording import RecordedAnswer, RecordedCall, Recording, told_error
from hatchway.core.signing import key_id, load_key
from hatchway.journal.entries import RunHead
from hatchway.journal.history import History, JournaledCall
from hatchway.mode.passage import Passage
from hatchway.mode.serve import Held

MOST_ACTIONS = 100_000
"""Of one session."""


def recording_of(head: RunHead, history: History, seed: bytes) -> Recording:
    """The run as a recording.

    Raises:
        CheckpointRefused: A result in it was redacted, so that it cannot be given again.
    """
    calls = sorted(history.calls.values(), key=lambda call: call.made)
    if hidden := [call.call for call in history.answers if call.is_redacted]:
        raise CheckpointRefused(
            f"the result of {hidden[0].function_name} (call {hidden[0].call_id}) was redacted and is stored nowhere",
            hint="such a run can go on only in the process that has it",
        )
    return Recording(
        code=head.code,
        functions=head.functions,
        inputs=head.inputs,
        limits=head.limits,
        seed=seed,
        facts=head.facts,
        calls=[_recorded(call) for call in calls],
        answers=[_answered(call) for call in history.answers],
        printed=history.printed,
        ran=max((float(call.trail.get("ran", 0.0)) for call in calls), default=0.0),
    )


def check_key(head: RunHead) -> None:
    """What was drawn from a key can be drawn again from that key alone.

    Raises:
        CheckpointRefused: The run was started with another one.
    """
    if head.key_id != key_id(load_key()):
        raise CheckpointRefused(
            "the run was started with another key", hint="point HATCHWAY_KEY_FILE to the key it was started with"
        )


def _recorded(call: JournaledCall) -> RecordedCall:
    answers = call.trail.get("answers")
    return RecordedCall(
        call=call.call,
        identity=call.identity,
        answers=answers if isinstance(answers, int) else call.answers_before,
        trail=call.trail,
    )


def _answered(call: JournaledCall) -> RecordedAnswer:
    if call.state == "done":
        return RecordedAnswer(call_id=call.call.call_id, value=call.value)
    error = told_error("ToolDenied" if call.state == "denied" else "ToolError", call.error)
    return RecordedAnswer(call_id=call.call.call_id, error=error)


def settled(run_id: str, history: History, given: Mapping[str, Settlement]) -> dict[str, Settlement]:
    """What becomes of the open calls of a run: what is given now, what was decided before, what goes by itself.

    Raises:
        InvalidSetting: A decision for a call that is not open, or of a kind that does not fit it.
        InDoubt: Calls are in doubt, and nothing says whether they ran.
        ApprovalRequired: The run waits for people, and nothing of it was decided.
    """
    _check(run_id, history, given)
    found: dict[str, Settlement] = {}
    for call in history.pending:
        if call.expires_at is not None and call.expires_at < time.time():
            found[call.call.call_id] = Deny("nobody decided in time: the request expired")
        elif call.call.call_id in given:
            found[call.call.call_id] = given[call.call.call_id]
        elif call.decision is not None:
            found[call.call.call_id] = call.decision
    doubts = [call for call in history.in_doubt if not call.idempotent and call.call.call_id not in given]
    if doubts:
        raise InDoubt(run_id, [call.call for call in doubts])
    for call in history.in_doubt:
        found[call.call.call_id] = given.get(call.call.call_id, NotRun())  # idempotent: the same key, once more
    if history.pending and not found and not history.in_doubt and len(history.pending) == _open(history):
        raise ApprovalRequired(run_id, [call.call for call in history.pending])
    return found


def _open(history: History) -> int:
    return sum(1 for call in history.calls.values() if call.state in ("pending", "started"))


def _check(run_id: str, history: History, given: Mapping[str, Settlement]) -> None:
    waiting = [call.call.call_id for call in history.pending]
    doubtful = [call.call.call_id for call in history.in_doubt]
    for call_id, settlement in given.items():
        is_about_doubt = isinstance(settlement, Ran | NotRun)
        if call_id not in waiting and call_id not in doubtful:
            where = f"`hatchway show {run_id[:8]}` tells what they are"
            raise no_such_call([call_id], [*waiting, *doubtful], where=where)
        if is_about_doubt != (call_id in doubtful):
            fits = "Ran(value) or NotRun()" if call_id in doubtful else "Allow(), Deny(reason) or Edit(args)"
            raise InvalidSetting(f"{call_id}: {settlement!r:.80} does not fit", hint=f"say {fits}")


def held_calls(history: History, passage: Passage, came: Mapping[str, Any]) -> dict[str, Held]:
    """The open calls, bound to their tools again as the code made them.

    Args:
        history: What is open.
        passage: The tools of today.
        came: The calls as the code makes them now, by id: what was not stored is taken from there.

    Raises:
        CheckpointRefused: A tool is gone or changed, so that what was shown is not what would run.
    """
    held: dict[str, Held] = {}
    for call in (*history.pending, *history.in_doubt):
        call_id = call.call.call_id
        try:
            admitted = passage.admit(came.get(call_id, call.call))
            shown = admitted.digest()
            if call.edit is not None:
                admitted = passage.edited(admitted, Edit(call.edit))
        except ToolError as e:
            raise CheckpointRefused(f"call {call_id} fits its tool no more: {e.message}") from e
        if call.digest and call.digest != shown and not call.is_hidden:
            raise CheckpointRefused(f"the arguments of call {call_id} are not what was shown")
        is_allowed = isinstance(call.decision, Allow | Edit) and call.by in ("person", "callback")
        held[call_id] = Held(admitted, admitted.digest(), is_edited=call.edit is not None, is_allowed=is_allowed)
    return held


def check_tools(head: RunHead, history: History, tools: Mapping[str, str]) -> None:
    """The open calls must meet the tools they were made for.

    Raises:
        CheckpointRefused: One of those tools is gone, or its schema is another.
    """
    for call in (*history.pending, *history.in_doubt):
        name = call.call.function_name
        if name not in tools:
            raise CheckpointRefused(
                f"the tool {name}, which call {call.call.call_id} waits for, is not offered here",
                hint="offer it: `hatchway resume RUN --tools MODULE`, or CodeMode(tools=[…]), or its MCP server",
            )
        if head.tools.get(name, tools[name]) != tools[name]:
            raise CheckpointRefused(
                f"the schema of the tool {name} changed since call {call.call.call_id} was made",
                hint="resume it with the tool as it was",
            )
