"""Deciding: what the framework is told of a paused action, and what its answer means for the calls inside.

The metadata of a request holds the keys `code_mode`, `original_metadata` and `_approval_call`, all JSON. Its
`checkpoint_data` is a signed reference to the run, never the run itself: the journal has that, and decides what may
still run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from pydantic_ai.exceptions import UserError
from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults, ToolApproved, ToolDenied

from hatchway.adapters.pause_tokens import Pause, Stop, nonce_of, read_token, token_of, waiting_in
from hatchway.adapters.written_decisions import all_read, written
from hatchway.core.calls import no_such_call
from hatchway.core.decisions import Allow, Deny, Edit, NotRun, Ran, Settlement, as_settlement
from hatchway.core.errors import InDoubt
from hatchway.core.plain_json import jsonable

KIND = "pydantic-ai"
"""Of our tokens."""
Answer = bool | Settlement
"""What may be said of a call inside the code."""


def request_metadata(stop: Stop, asked: Mapping[str, Any], *, key: bytes) -> dict[str, Any]:
    """What the framework shows and stores with the request.

    Args:
        stop: Where the action stands.
        asked: What the tools said when they asked, by call.
        key: Signs the token.
    """
    calls = [
        {
            "call_id": call.call_id,
            "tool_name": call.function_name,
            "tool_args": jsonable(dict(call.kwargs)),
            "original_metadata": jsonable(asked.get(call.call_id)),
        }
        for call in waiting_in(stop)
    ]
    first = calls[0]
    return {
        "code_mode": {
            "checkpoint_data": token_of(stop, kind=KIND, key=key),
            "tool_name": first["tool_name"],
            "tool_args": first["tool_args"],
            "run_id": stop.run_id,
            "nonce": nonce_of(stop),
            "calls": calls,
            "in_doubt": isinstance(stop, InDoubt),
        },
        "original_metadata": first["original_metadata"],
        "_approval_call": {"tool_name": first["tool_name"], "args": first["tool_args"]},
    }


def pause_of(metadata: Any, *, key: bytes) -> Pause | None:
    """The pause that metadata speaks of; None when it speaks of none.

    Raises:
        CheckpointRefused: The token is not ours, or was altered.
    """
    told = code_mode_of(metadata)
    if told is None:
        return None
    return read_token(str(told.get("checkpoint_data", "")), kind=KIND, key=key)


def code_mode_of(metadata: Any) -> dict[str, Any] | None:
    """Our part of a request's metadata."""
    told = cast(dict[str, Any], metadata).get("code_mode") if isinstance(metadata, dict) else None
    return cast(dict[str, Any], told) if isinstance(told, dict) else None


def asked_before(metadata: Any) -> dict[str, Any]:
    """What the tools had said when they asked, by call."""
    return {str(call.get("call_id")): call.get("original_metadata") for call in _calls(metadata)}


def _calls(metadata: Any) -> list[dict[str, Any]]:
    """The calls of a request, as far as what came back can be read."""
    told: Any = (code_mode_of(metadata) or {}).get("calls")
    listed = cast(list[Any], told) if isinstance(told, list) else []
    return [cast(dict[str, Any], call) for call in listed if isinstance(call, dict)]


def decisions_of(pause: Pause, metadata: Any, edited: Mapping[str, Any] | None) -> dict[str, Settlement]:
    """The decision about each call that waits: what the metadata says of it, else what was said of the request.

    Args:
        pause: The calls.
        metadata: May hold `code_mode.decisions`, as `decided` writes them.
        edited: Arguments given in place of the call's own.

    Raises:
        UserError: Edited arguments for several calls at once, or a plain yes or no to calls in doubt.
    """
    if edited is not None and len(pause.calls) != 1:
        raise UserError(
            "arguments were given for several calls at once: decide each, decided(requests, {call_id: Edit(…)})"
        )
    default = Allow() if edited is None else Edit(edited)
    decisions = all_read((code_mode_of(metadata) or {}).get("decisions"), pause.calls, default)
    if pause.in_doubt and not all(isinstance(each, Ran | NotRun) for each in decisions.values()):
        raise UserError(
            "nobody knows whether these calls ran: look whether their effects are there, then "
            "decided(requests, {call_id: Ran(value) or NotRun()})"
        )
    return decisions


def decided(requests: DeferredToolRequests, answers: Mapping[str, Answer] | Answer) -> DeferredToolResults:
    """The results that answer the requests of paused actions, call by call.

    Args:
        requests: What the run ended with.
        answers: One answer for all calls, or one per call: `True`, `False`, `Allow()`, `Deny(reason)`, `Edit(args)`;
            of calls in doubt `Ran(value)` or `NotRun()`. Keys are ids of calls in `code_mode.calls`, or of the model's
            call, for all in it. What has no answer is denied.

    Raises:
        InvalidSetting: An answer for something that does not wait.
    """
    results = DeferredToolResults()
    known: set[str] = set()
    for part in requests.approvals:
        metadata = requests.metadata.get(part.tool_call_id, {})
        told = code_mode_of(metadata)
        calls = [str(call["call_id"]) for call in told["calls"]] if told is not None else []
        known |= {part.tool_call_id, *calls}
        answer = _answer(answers, part.tool_call_id)
        if told is None:
            results.approvals[part.tool_call_id] = _plain(answer)
            continue
        each = {call_id: written(_answer(answers, call_id, answer)) for call_id in calls}
        results.approvals[part.tool_call_id] = ToolApproved()  # of the code, which goes on and learns of each call
        results.metadata[part.tool_call_id] = {**metadata, "code_mode": {**told, "decisions": each}}
    if isinstance(answers, Mapping) and (strangers := set(answers) - known):
        raise no_such_call(sorted(strangers), sorted(known))
    return results


def denied_inside(metadata: Mapping[str, Any], reason: str) -> dict[str, Any]:
    """Metadata that denies every call of a pause, so that the code learns of it and can go on."""
    told = code_mode_of(metadata) or {}
    each = {str(call.get("call_id")): written(Deny(reason)) for call in _calls(metadata)}
    return {**metadata, "code_mode": {**told, "decisions": each}}


def _answer(answers: Mapping[str, Answer] | Answer, key: str, otherwise: Settlement | None = None) -> Settlement:
    if not isinstance(answers, Mapping):
        return as_settlement(answers)
    given = answers.get(key)
    return (otherwise or Deny("nobody approved it")) if given is None else as_settlement(given)


def _plain(decision: Settlement) -> ToolApproved | ToolDenied:
    """A decision about a call of the model's own, of which there is no doubt."""
    match decision:
        case Allow():
            return ToolApproved()
        case Edit(args=args):
            return ToolApproved(override_args=dict(args))
        case Deny(reason=reason):
            return ToolDenied(reason) if reason else ToolDenied()
        case Ran() | NotRun():
            raise UserError("a call of the model is allowed or denied: whether it ran is not in doubt")
