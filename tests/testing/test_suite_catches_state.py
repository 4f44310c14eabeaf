"""The suite catches broken sessions and checkpoints, on the backend that has both."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from hatchway.core.limits import Limits
from hatchway.core.sandbox import CodeExecution, CodeSession, Functions
from hatchway.sandboxes.monty import MontySandbox
from hatchway.testing import CHECKS, run_check

pytestmark = pytest.mark.anyio
BY_ID = {check.id: check for check in CHECKS}


class RestoresNothing(MontySandbox):
    async def restore(self, checkpoint: bytes, **options: Any) -> CodeExecution | None:
        return None


class RestoresAnything(MontySandbox):
    """Takes damaged bytes for something to run."""

    async def restore(self, checkpoint: bytes, **options: Any) -> CodeExecution | None:
        return await super().restore(checkpoint, **options) or await self.execute("1")


class RaisesOnDamage(MontySandbox):
    async def restore(self, checkpoint: bytes, **options: Any) -> CodeExecution | None:
        execution = await super().restore(checkpoint, **options)
        if execution is None:
            raise ValueError("damaged")
        return execution


class SilentAfterRestore(MontySandbox):
    async def restore(self, checkpoint: bytes, **options: Any) -> CodeExecution | None:
        return await super().restore(checkpoint)


class ForgetfulSession(CodeSession):
    """Runs each action in a fresh interpreter."""

    def __init__(self, sandbox: MontySandbox) -> None:
        self.sandbox = sandbox

    async def execute(self, code: str, functions: Functions = (), **options: Any) -> CodeExecution:
        return await self.sandbox.execute(code, functions, **options)


class ForgetsState(MontySandbox):
    @asynccontextmanager
    async def session(self, *, limits: Limits | None = None) -> AsyncGenerator[CodeSession]:
        yield ForgetfulSession(self)


class SharesSessions(MontySandbox):
    """Gives the session that is open to whoever asks."""

    open: CodeSession | None = None

    @asynccontextmanager
    async def session(self, *, limits: Limits | None = None) -> AsyncGenerator[CodeSession]:
        if self.open is not None:
            yield self.open
            return
        async with super().session(limits=limits) as self.open:
            yield self.open


CAUGHT: tuple[tuple[type[MontySandbox], str], ...] = (
    (RestoresNothing, "checkpoints.one_pending"),
    (RestoresNothing, "checkpoints.several_pending"),
    (RestoresAnything, "checkpoints.damaged"),
    (RestoresAnything, "checkpoints.foreign"),
    (RaisesOnDamage, "checkpoints.damaged"),
    (SilentAfterRestore, "checkpoints.output_after_restore"),
    (ForgetsState, "sessions.state_kept"),
    (ForgetsState, "sessions.one_at_a_time"),
    (ForgetsState, "sessions.left"),
    (SharesSessions, "sessions.isolated"),
)


@pytest.mark.parametrize(("sandbox", "check_id"), CAUGHT, ids=[f"{s.__name__}-{c}" for s, c in CAUGHT])
async def test_a_broken_sandbox_fails_the_check_that_names_it(sandbox: type[MontySandbox], check_id: str) -> None:
    outcome = await run_check(replace(BY_ID[check_id], seconds=5.0), sandbox)
    assert outcome.state == "failed", outcome
    assert outcome.message


@pytest.mark.parametrize("check_id", sorted({check_id for _, check_id in CAUGHT}))
async def test_the_same_sandbox_unbroken_passes(check_id: str) -> None:
    outcome = await run_check(BY_ID[check_id], MontySandbox)
    assert (outcome.state, outcome.message) == ("passed", "")
