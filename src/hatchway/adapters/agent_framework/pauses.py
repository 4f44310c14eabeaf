"""Pauses: actions that wait for a person, kept in the session's state so that they survive with it.

An entry is JSON: the run, its code, the calls that wait, and what was decided about each. The framework re-enters a
tool only when its request was approved; a denial inside the code is therefore an approved request with a decision
written beside it, by `decide`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from agent_framework import AgentSession, Content

from hatchway.adapters.agent_framework.nested import CALL_TOOL
from hatchway.adapters.agent_framework.registry import EXECUTE_CODE
from hatchway.adapters.written_decisions import jsonable, read, written
from hatchway.core.calls import FunctionCall
from hatchway.core.decisions import Allow, Decision, Deny, as_decision
from hatchway.core.errors import ApprovalRequired

Answer = bool | Decision
"""What may be said of a call inside the code."""
KEY = "hatchway"
"""Where a request holds what we say of it, in `additional_properties`."""


@dataclass(frozen=True, slots=True)
class Pause:
    """One action that waits."""

    entry: Mapping[str, Any]

    @property
    def run_id(self) -> str:
        """The run it stands in."""
        return str(self.entry["run_id"])

    def decisions(self, pending: Sequence[FunctionCall]) -> dict[str, Decision]:
        """What was decided about the calls that wait now; nothing about calls nobody was shown."""
        shown = {str(call["call_id"]) for call in self.entry["calls"]}
        told: Mapping[str, Any] = self.entry.get("decisions") or {}
        return {
            call.call_id: read(told[call.call_id]) if call.call_id in told else Allow()
            for call in pending
            if call.call_id in shown
        }


class Pauses:
    """The paused actions of one provider.

    Args:
        source_id: Where in a session's state they are.
    """

    def __init__(self, source_id: str) -> None:
        self._source_id = source_id
        self._here: dict[str, dict[str, Any]] = {}

    def of(self, call_id: str, code: str, session: AgentSession | None) -> Pause | None:
        """The pause of this call of the model, if it is one that waits."""
        entry = self._entries(session).get(call_id)
        return Pause(entry) if entry is not None and entry["code"] == code else None

    def request(
        self,
        paused: ApprovalRequired,
        *,
        call_id: str,
        occurrence: str | None,
        code: str,
        session: AgentSession | None,
    ) -> Content:
        """Keep the pause; gives the request for it, which carries the model's own call and names those inside."""
        calls = [_told(call) for call in paused.pending]
        self._entries(session)[call_id] = {"run_id": paused.run_id, "code": code, "calls": calls}
        call = Content.from_function_call(call_id=call_id, name=EXECUTE_CODE, arguments={"code": code})
        call.id = occurrence
        told = {"run_id": paused.run_id, "calls": calls}
        return Content.from_function_approval_request(
            id=occurrence or call_id, function_call=call, additional_properties={KEY: told}
        )

    def decide(self, request: Content, answers: Mapping[str, Answer] | Answer, session: AgentSession | None) -> Content:
        """Write down the answer to each call of a request; gives the response to hand to the next run.

        Raises:
            KeyError: No such action waits, or an answer is for a call that does not.
        """
        call_id = str(cast(Content, request.function_call).call_id)
        entry = self._entries(session)[call_id]
        known = [str(call["call_id"]) for call in entry["calls"]]
        each = answers if isinstance(answers, Mapping) else dict.fromkeys(known, answers)
        if strangers := set(each) - set(known):
            raise KeyError(f"no such call waits: {', '.join(sorted(strangers))}")
        unsaid = Deny("nobody approved it")
        entry["decisions"] = {k: written(as_decision(each[k]) if k in each else unsaid) for k in known}
        return request.to_function_approval_response(approved=True)

    def ended(self, call_id: str, session: AgentSession | None) -> None:
        """The action is over and waits no more."""
        self._entries(session).pop(call_id, None)

    def _entries(self, session: AgentSession | None) -> dict[str, dict[str, Any]]:
        if session is None:
            return self._here
        state = session.state.setdefault(self._source_id, {})
        return state.setdefault("paused", {})


def _told(call: FunctionCall) -> dict[str, Any]:
    name, arguments = call.function_name, dict(call.kwargs)
    if name == CALL_TOOL:
        name = str(arguments.pop("tool_name", name))
        arguments = arguments.pop("arguments", arguments)
    return {"call_id": call.call_id, "tool_name": name, "arguments": jsonable(arguments)}
