"""Restoring what guests were dumped as: the same for every sandbox whose guests are repeated."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from hatchway.core.errors import CheckpointRefused, ReplayDiverged
from hatchway.core.sandbox import CodeExecution, CodeSandbox, CodeSession, OnOutput
from hatchway.sandboxes.recorded import unsealed


async def restored(checkpoint: bytes, sandbox: CodeSandbox, on_output: OnOutput | None) -> CodeExecution | None:
    """The execution of a checkpoint; None when the bytes are not ours, damaged, or not for here.

    Raises:
        ReplayDiverged: The code went another way than before.
    """
    try:
        (recording,) = unsealed(checkpoint, backend=sandbox.name, kind="execution")
        return await sandbox.replay(recording, on_output=on_output)
    except ReplayDiverged:
        raise
    except CheckpointRefused:
        return None


@asynccontextmanager
async def restored_session(checkpoint: bytes, sandbox: CodeSandbox) -> AsyncGenerator[CodeSession | None]:
    """The session of a checkpoint; None when the bytes are not ours or damaged.

    Raises:
        ReplayDiverged, CheckpointRefused: An action cannot be run again.
    """
    try:
        actions = unsealed(checkpoint, backend=sandbox.name, kind="session")
    except CheckpointRefused:
        yield None
        return
    async with sandbox.replay_session(actions, limits=actions[-1].limits if actions else None) as session:
        yield session
