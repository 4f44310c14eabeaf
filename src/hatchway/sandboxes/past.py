"""The past of a session: the actions it ran, so that it can be had again elsewhere."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from hatchway.core.calls import as_code
from hatchway.core.limits import Limits
from hatchway.core.recording import Recording
from hatchway.core.sandbox import Functions, OnOutput
from hatchway.sandboxes.guest_execution import GuestExecution
from hatchway.sandboxes.recorded import Origin, Said, sealed
from hatchway.sandboxes.replay import run_to_end

MOST_ACTIONS = 10_000
"""A session with more actions cannot be dumped."""
Begin = Callable[[Origin, OnOutput | None], Awaitable[GuestExecution]]
"""Starts an action in the session's process."""


class Past:
    """What a session did.

    Args:
        backend: Who can run it again.
        facts: What it takes.
    """

    def __init__(self, backend: str, facts: Mapping[str, str]) -> None:
        self._backend, self._facts = backend, facts
        self._seed = os.urandom(32)
        self._actions: list[Said] | None = []
        self._number = 0
        self._current: GuestExecution | None = None

    def fresh(self, code: str, functions: Functions, inputs: Mapping[str, Any] | None, limits: Limits) -> Recording:
        """The next action."""
        return Recording(
            code=as_code(code),
            functions=functions,
            inputs=inputs or {},
            limits=limits,
            seed=self._seed,
            facts=self._facts,
        )

    async def begin(self, recording: Recording, begin: Begin, on_output: OnOutput | None) -> GuestExecution:
        """Start the next action, after what the last one said was kept."""
        self._keep_last()
        origin = Origin(recording, self._backend, self._number)
        self._number += 1
        self._current = await begin(origin, on_output)
        return self._current

    async def repeat(self, actions: Sequence[Recording], begin: Begin) -> None:
        """Run actions of another session again, each to its end.

        Raises:
            ReplayDiverged, CheckpointRefused: One of them went another way.
        """
        for action in actions:
            await run_to_end(action, lambda on_output, action=action: self.begin(action, begin, on_output))
        if actions:
            self._seed = actions[-1].seed

    def sealed(self) -> bytes | None:
        """The actions so far as signed bytes; None when they are too many, or one of them cannot be repeated."""
        self._keep_last()
        if self._actions is None:
            return None
        return sealed([said.recording() for said in self._actions], backend=self._backend, kind="session")

    def _keep_last(self) -> None:
        last, self._current = self._current, None
        if last is None or self._actions is None:
            return
        said = last.said()
        if said is None or len(self._actions) >= MOST_ACTIONS:
            self._actions = None
        else:
            self._actions.append(said)
