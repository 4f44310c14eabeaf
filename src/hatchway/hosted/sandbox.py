"""HostedSandbox: a vendor as a sandbox. What is executed is a request; the vendor's model writes and runs the code."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Any

from hatchway.core.constraints import CodeConstraints
from hatchway.core.errors import CheckpointRefused, InvalidSetting
from hatchway.core.limits import DEFAULT_LIMITS, Limits
from hatchway.core.sandbox import Availability, CodeExecution, CodeSandbox, CodeSession, Functions, OnOutput
from hatchway.core.signing import unseal
from hatchway.hosted.context import TURN, Turn
from hatchway.hosted.execution import HostedExecution, read_checkpoint
from hatchway.hosted.session import HostedSession

if TYPE_CHECKING:
    from hatchway.hosted.adapter import HostedAdapter


class HostedSandbox(CodeSandbox):
    """Gives requests to a vendor's model; each call it or its code makes to a tool stops here like any other.

    Args:
        adapter: Speaks with the vendor.
    """

    name = "hosted"

    def __init__(self, adapter: HostedAdapter) -> None:
        self.adapter = adapter
        vars(self)["name"] = adapter.provider  # one class, three vendors
        self.constraints = CodeConstraints()
        self.tier = "vendor"

    async def execute(
        self,
        code: str,
        functions: Functions = (),
        *,
        inputs: Mapping[str, Any] | None = None,
        limits: Limits | None = None,
        on_output: OnOutput | None = None,
    ) -> CodeExecution:
        """Ask the vendor's model: `code` is the request in the user's words.

        Raises:
            InvalidSetting: Inputs, or a session that is busy.
        """
        turn = TURN.get()
        session = turn.session if turn is not None else HostedSession(self)
        return await self.begin(session, code, functions, inputs=inputs, limits=limits, on_output=on_output)

    async def begin(
        self,
        session: HostedSession,
        prompt: str,
        functions: Functions = (),
        *,
        inputs: Mapping[str, Any] | None = None,
        limits: Limits | None = None,
        on_output: OnOutput | None = None,
    ) -> HostedExecution:
        """As `execute`, in a given session."""
        if inputs:
            raise InvalidSetting("a vendor's code takes no inputs", hint="say them in the request, or mount a file")
        if session.is_busy:
            raise InvalidSetting(
                "this session is answering another request", hint="wait for it, or use another session"
            )
        turn = self._turn(prompt, session)
        execution = HostedExecution(turn, limits or DEFAULT_LIMITS, on_output)
        execution.begin(prompt)
        return execution

    def session(self, *, limits: Limits | None = None) -> AbstractAsyncContextManager[CodeSession]:
        """A conversation with its container."""
        return self._session()

    @asynccontextmanager
    async def _session(self) -> AsyncGenerator[CodeSession]:
        yield HostedSession(self)

    async def restore(self, checkpoint: bytes, *, on_output: OnOutput | None = None) -> CodeExecution | None:
        """A request that stood at calls of ours: the history has everything, in whatever process."""
        try:
            payload, _ = unseal(checkpoint, {"backend": self.name})
        except CheckpointRefused:
            return None
        state = read_checkpoint(payload)
        session = self.adapter.desk.known_session(state["session_id"]) or HostedSession(self)
        if session.history and session.history != state["session"]["history"]:
            raise CheckpointRefused("the session went on without this request", hint="ask anew in the session")
        session.load(state["session"])
        turn = self._turn(state["prompt"], session)
        turn.session, turn.options = session, state["options"]
        turn.run_id = turn.run_id or state["run_id"]
        execution = HostedExecution(turn, Limits(**state["limits"]), on_output)
        execution.go_on(state)
        return execution

    @classmethod
    def probe(cls) -> Availability:
        """A vendor is somewhere else: nothing here can be looked at."""
        return Availability(state="usable", tier="vendor", reason="needs an adapter with a key")

    def _turn(self, prompt: str, session: HostedSession) -> Turn:
        turn = TURN.get()
        if turn is not None:
            return turn
        return self.adapter.desk.turn(prompt, session)
