"""The desk: everything that must be approved comes here, whatever it is, and a person's no is noted here."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, assert_never

from hatchway.agent.calls_made import CallsMade
from hatchway.core.calls import FunctionCall
from hatchway.core.decisions import Allow, Decision, Deny, Edit, Later, NotRun, Ran, Settlement
from hatchway.core.errors import ApprovalRequired, InvalidSetting
from hatchway.core.events import ApprovalRequest, Emit

if TYPE_CHECKING:
    from hatchway.agent.permissions import PermissionManager

GRACE_SECONDS = 0.25
"""How long code may go on after a person's no, so that code which just ends keeps its session."""
LATE_GRACE_SECONDS = 5.0
"""The same, for code that must first be led back to the call."""
PACE_SECONDS = 0.02
"""Between the refusals of code that calls on and on meanwhile: who listens would be flooded by thousands."""
REJECTED = "the user said no"


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """It may not run."""

    tool_name: str
    """What was asked about."""
    reason: str
    """Why; empty where a person gave none."""
    by_person: bool
    """A person's no ends the action; a rule's, or nobody's answer in time, is an error where it was asked."""


Answer = Allow | Edit | Ran | NotRun | Refused
"""What became of a question."""


class Desk:
    """Asks about code actions, calls of the code and calls of the model, unless a permission settles it.

    Args:
        agent_id: Who asks.
        emit: Takes the `ApprovalRequest`.
        permissions: What need not be asked, and what is denied; without it everything is asked.
        timeout: Seconds somebody has to answer; None waits for good.
        store: Awaited before a person is asked, so that what came before is not lost while they think.

    Raises:
        InvalidSetting: `timeout` is not above 0: nobody could answer.
    """

    def __init__(
        self,
        agent_id: str,
        emit: Emit,
        permissions: PermissionManager | None = None,
        timeout: float | None = None,
        store: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        if timeout is not None and not timeout > 0:
            raise InvalidSetting(f"approval_timeout must be more than 0, not {timeout}", hint="None waits for good")
        self._agent_id, self._emit = agent_id, emit
        self._permissions, self._timeout = permissions, timeout
        self._store = store

    async def ask(
        self,
        tool_name: str,
        tool_args: Mapping[str, Any],
        *,
        kind: Literal["code", "call", "tool"],
        call_id: str = "",
        run_id: str = "",
        diff: str = "",
        in_doubt: bool = False,
        code: str = "",
    ) -> Answer:
        """Whether it may run, by the rules or by whoever listens.

        Raises:
            ApprovalRequired: Whoever listens said `Later`.
        """
        if (refused := self._denied(tool_name, tool_args)) is not None:
            return refused
        if not in_doubt and self._permissions is not None and self._permissions.is_allowed(tool_name, dict(tool_args)):
            return Allow()
        if self._store is not None:
            await self._store()
        request = ApprovalRequest(
            tool_name,
            tool_args,
            call_id=call_id,
            run_id=run_id,
            kind=kind,
            diff=diff,
            in_doubt=in_doubt,
            code=code,
            agent_id=self._agent_id,
        )
        self._emit(request)
        try:
            async with asyncio.timeout(self._timeout):
                answer = await request.settlement()
        except TimeoutError:
            reason = f"nobody decided within {self._timeout:g} s"
            return Refused(tool_name=tool_name, reason=reason, by_person=False)
        finally:
            request.withdraw()
        if isinstance(answer, Later):
            raise _later(request)
        return self._taken(tool_name, answer, in_doubt=in_doubt)

    def _taken(self, tool_name: str, answer: Settlement, *, in_doubt: bool) -> Answer:
        match answer:
            case Deny(reason=reason):
                return Refused(tool_name=tool_name, reason=reason, by_person=True)
            case Edit(args=args):
                return self._denied(tool_name, args) or answer
            case Ran() | NotRun():
                return answer if in_doubt else Allow()
            case Allow():
                return answer
            case _:
                assert_never(answer)

    def _denied(self, tool_name: str, tool_args: Mapping[str, Any]) -> Refused | None:
        reason = None if self._permissions is None else self._permissions.is_denied(tool_name, dict(tool_args))
        return None if reason is None else Refused(tool_name=tool_name, reason=reason, by_person=False)


class ActionGate:
    """Decides about the calls of one code action. After a person's no nothing of that action passes any more.

    Args:
        desk: Where it is asked.
    """

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self.rejection: Refused | None = None
        """The person's no, once there was one. It is this flag that counts, whatever the code makes of the error."""
        self.on_rejected: Callable[[], None] = _nothing
        """Called at that moment."""
        self.run_id = ""
        """The run of the action, once it started."""
        self.calls = CallsMade()
        """What the action called, once it is over."""
        self.is_postponed = False
        """Somebody said `Later` to one of its calls."""
        self._rejected = asyncio.Event()

    async def decide(self, call: FunctionCall) -> Decision | Later:
        """What `CodeMode` asks."""
        if self.rejection is not None:
            await asyncio.sleep(PACE_SECONDS)
            return Deny(REJECTED)
        asking = asyncio.ensure_future(
            self._desk.ask(call.function_name, call.kwargs, kind="call", call_id=call.call_id, run_id=self.run_id)
        )
        rejected = asyncio.ensure_future(self._rejected.wait())
        try:
            await asyncio.wait({asking, rejected}, return_when=asyncio.FIRST_COMPLETED)
            if not asking.done():  # somebody said no to another call of this action meanwhile
                return Deny(REJECTED)
            return self._decided(asking.result())
        except ApprovalRequired:
            self.is_postponed = True
            return Later()
        finally:
            asking.cancel()
            rejected.cancel()

    def reject(self, refused: Refused) -> None:
        """A person said no."""
        if self.rejection is None:
            self.rejection = refused
            self._rejected.set()
            self.on_rejected()

    def _decided(self, answer: Answer) -> Decision:
        match answer:
            case Refused(by_person=True):
                self.reject(answer)
                return Deny(answer.reason or REJECTED)
            case Refused(reason=reason):
                return Deny(reason)
            case Allow() | Edit():
                return answer
            case Ran() | NotRun():
                return Allow()
            case _:
                assert_never(answer)


def _later(request: ApprovalRequest) -> ApprovalRequired:
    call = FunctionCall(call_id=request.call_id, function_name=request.tool_name, kwargs=request.tool_args)
    error = ApprovalRequired(request.run_id, [call])
    error.hint = "`Agent.resume` asks again"
    return error


def _nothing() -> None:
    return None
