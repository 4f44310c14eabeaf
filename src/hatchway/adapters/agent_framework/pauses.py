"""Pauses: actions that wait for a person.

The request a person gets names the calls that wait and carries a signed token of the pause; its approval brings both
back. The session's state has the same, for applications that build an approval of their own. Both are bound to one
occurrence of the model's call, and the journal decides what may still run.

The framework re-enters a tool only when its request was approved; a denial inside the code is therefore an approved
request with a decision written beside it, by `decide`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from agent_framework import AgentSession, Content

from hatchway.adapters.agent_framework.nested import CALL_TOOL
from hatchway.adapters.pause_tokens import Pause, Stop, read_token, token_of, waiting_in
from hatchway.adapters.written_decisions import all_read, written
from hatchway.core.calls import FunctionCall, no_such_call
from hatchway.core.decisions import Allow, Deny, Edit, NotRun, Ran, Settlement, as_settlement
from hatchway.core.errors import InDoubt, InvalidSetting
from hatchway.core.plain_json import jsonable

Answer = bool | Settlement
"""What may be said of a call inside the code."""
KEY = "hatchway"
"""Where a request and its approval hold what we say of them, in `additional_properties`."""
KIND = "agent-framework"
"""Of our tokens."""
TOOL_NAME = "tool_name"
"""What `call_tool` takes beside the arguments of the tool it names."""


class Pauses:
    """The paused actions of one provider.

    Args:
        source_id: Where in a session's state they are.
        key: What tokens are signed with.
        tool_name: What the model calls.
    """

    def __init__(self, source_id: str, key: Callable[[], bytes], tool_name: str) -> None:
        self._source_id, self._key, self._tool_name = source_id, key, tool_name
        self._here: dict[str, dict[str, Any]] = {}

    def of(self, occurrence: str, session: AgentSession | None, approval: Content) -> tuple[Pause, Any] | None:
        """The pause an approval is for, and the decisions written beside it; None when it is for none.

        Raises:
            CheckpointRefused: The token was altered, or is of another call.
        """
        kept = self._entries(session).get(occurrence, {})
        brought: Any = approval.additional_properties.get(KEY)
        told = cast(dict[str, Any], brought) if isinstance(brought, dict) and brought else kept
        if "token" not in told:
            return None
        pause = read_token(str(told["token"]), kind=f"{KIND} {occurrence}", key=self._key())
        return pause, told.get("decisions", kept.get("decisions"))

    def request(self, stop: Stop, *, call_id: str, occurrence: str, code: str, session: AgentSession | None) -> Content:
        """Keep the pause; gives the request for it, which carries the model's own call and names those inside."""
        token = token_of(stop, kind=f"{KIND} {occurrence}", key=self._key())
        calls = [_told(call) for call in waiting_in(stop)]
        told = {"run_id": stop.run_id, "token": token, "calls": calls, "in_doubt": isinstance(stop, InDoubt)}
        self._entries(session)[occurrence] = told
        call = Content.from_function_call(call_id=call_id, name=self._tool_name, arguments={"code": code})
        call.id = occurrence
        return Content.from_function_approval_request(
            id=occurrence, function_call=call, additional_properties={KEY: told}
        )

    def decide(self, request: Content, answers: Mapping[str, Answer] | Answer, session: AgentSession | None) -> Content:
        """Write down the answer to each call of a request; gives the response to hand to the next run.

        Raises:
            InvalidSetting: No action waits for this, or an answer is for a call that does not.
        """
        told: dict[str, Any] | None = request.additional_properties.get(KEY)
        if told is None:
            raise InvalidSetting("this request is of no paused action", hint="decide(request) takes one of ours")
        known = [str(call["call_id"]) for call in told["calls"]]
        each = answers if isinstance(answers, Mapping) else dict.fromkeys(known, answers)
        if strangers := set(each) - set(known):
            raise no_such_call(sorted(strangers), known)
        unsaid = Deny("nobody approved it")
        decisions = {k: written(as_settlement(each[k]) if k in each else unsaid) for k in known}
        entry = self._entries(session).get(str(request.id), {})
        if entry.get("token") == told["token"]:
            entry["decisions"] = decisions
        response = request.to_function_approval_response(approved=True)
        response.additional_properties = {**request.additional_properties, KEY: {**told, "decisions": decisions}}
        return response

    def ended(self, occurrence: str, session: AgentSession | None) -> None:
        """The action is over and waits no more; a session in which none waits is left as it was."""
        kept = self._here if session is None else session.state.get(self._source_id, {}).get("paused", {})
        kept.pop(occurrence, None)

    def _entries(self, session: AgentSession | None) -> dict[str, dict[str, Any]]:
        if session is None:
            return self._here
        state = session.state.setdefault(self._source_id, {})
        return state.setdefault("paused", {})


def decisions_of(pause: Pause, told: Any, stop: Stop) -> dict[str, Settlement]:
    """What was decided about the calls that wait now; nothing about calls nobody was shown.

    Raises:
        ApprovalRequired, InDoubt: The action stands elsewhere, or a plain yes or no was said to calls in doubt: the
            person is asked again.
    """
    shown = [call.call_id for call in waiting_in(stop) if call.call_id in pause.calls]
    decisions = all_read(told, shown, Allow())
    for call in waiting_in(stop):
        if call.function_name == CALL_TOOL and isinstance(edit := decisions.get(call.call_id), Edit):
            # a person sees the arguments of the tool it names, and changes those
            decisions[call.call_id] = Edit({**edit.args, TOOL_NAME: call.kwargs[TOOL_NAME]})
    settles = all(isinstance(each, Ran | NotRun) for each in decisions.values())
    if pause.in_doubt != isinstance(stop, InDoubt) or (pause.in_doubt and not settles):
        raise stop
    return decisions


def _told(call: FunctionCall) -> dict[str, Any]:
    name, arguments = call.function_name, dict(call.kwargs)
    if name == CALL_TOOL:
        name = str(arguments.pop(TOOL_NAME, name))
    return {"call_id": call.call_id, "tool_name": name, "arguments": jsonable(arguments)}
