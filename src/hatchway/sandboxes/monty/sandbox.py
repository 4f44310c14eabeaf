"""MontySandbox: the embedded sandbox. Nothing to set up, and a fresh interpreter in a fraction of a millisecond."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, ClassVar

from hatchway.core.calls import as_code
from hatchway.core.errors import InvalidSetting, MissingExtra
from hatchway.core.grants import (
    INPUT_ROOT,
    AllowedDomainInput,
    FileMount,
    FileMountInput,
    as_environment,
    as_file_mounts,
    as_workspace,
)
from hatchway.core.limits import DEFAULT_LIMITS, Limits
from hatchway.core.network import NetworkRules
from hatchway.core.recording import Recording
from hatchway.core.results import Tier
from hatchway.core.sandbox import Availability, CodeExecution, CodeSandbox, CodeSession, Functions, OnOutput
from hatchway.sandboxes.eviction import Sessions
from hatchway.sandboxes.monty.constraints import MONTY
from hatchway.sandboxes.monty.probe import INSTALL, probe
from hatchway.sandboxes.shown_files import PLACES

if TYPE_CHECKING:
    from hatchway.sandboxes.monty.runtime import Runtime


class MontySandbox(CodeSandbox):
    """Runs code in Monty, a Python interpreter in Rust that has no way out but its calls.

    All instances share one pool of worker processes. On Linux a worker is also sealed by Landlock and seccomp, so that
    a hole in the interpreter leads nowhere; the tier is `language` all the same.

    Args:
        file_mounts: Files and directories the code may read. Turns `/output` on, whose files come back.
        workspace_root: A directory the code may read as `/input`; also turns `/output` on.
        session_idle_seconds: A session without an action for so long is evicted; None never does.
        max_sessions: Sessions open at one time; past it the one that was idle longest is evicted. None sets no limit.
        env: The environment variables of the code; none of the host's are there.
        allowed_domains: What the code may reach by `fetch`; nothing by default.
        denied_domains: What it may not reach, whatever is allowed.

    Raises:
        InvalidSetting: A mount does not exist, two of them overlap, or a domain is none.
    """

    name: ClassVar[str] = "monty"
    constraints = MONTY
    tier: Tier = "language"

    def __init__(
        self,
        *,
        file_mounts: Iterable[FileMountInput] = (),
        workspace_root: str | Path | None = None,
        session_idle_seconds: float | None = None,
        max_sessions: int | None = None,
        env: Mapping[str, str] | None = None,
        allowed_domains: Iterable[AllowedDomainInput] = (),
        denied_domains: Iterable[str] = (),
    ) -> None:
        self.network = NetworkRules.of(allowed_domains, denied_domains)
        self._mounts = as_file_mounts(file_mounts)
        if (workspace := as_workspace(workspace_root)) is not None:
            self._mounts += (FileMount(workspace, str(INPUT_ROOT)),)
        _check_apart(self._mounts)
        if self._mounts:
            self.constraints = replace(
                MONTY, additional_instructions=f"{MONTY.additional_instructions}\n{PLACES}".strip()
            )
        self._places = Sessions(idle_seconds=session_idle_seconds, most=max_sessions)
        self._env = as_environment(env)
        self._running: Runtime | None = None

    async def execute(
        self,
        code: str,
        functions: Functions = (),
        *,
        inputs: Mapping[str, Any] | None = None,
        limits: Limits | None = None,
        on_output: OnOutput | None = None,
    ) -> CodeExecution:
        """As the contract says.

        Raises:
            TypeError: The code is no text.
        """
        return await (await self._runtime()).execute(
            as_code(code), functions, inputs or {}, limits or DEFAULT_LIMITS, on_output
        )

    @asynccontextmanager
    async def session(self, *, limits: Limits | None = None) -> AsyncGenerator[CodeSession]:
        """As the contract says; the memory limit is one for the whole session."""
        async with (await self._runtime()).session(limits or DEFAULT_LIMITS) as session:
            yield session

    async def replay(self, recording: Recording, *, on_output: OnOutput | None = None) -> CodeExecution:
        """As the contract says; clocks stop at the host, which writes down what they show."""
        from hatchway.sandboxes.recorded import check_facts

        check_facts(recording.facts, self.facts)
        return await (await self._runtime()).replay(recording, on_output)

    @asynccontextmanager
    async def replay_session(
        self, actions: Sequence[Recording], *, limits: Limits | None = None
    ) -> AsyncGenerator[CodeSession]:
        """As the contract says."""
        async with (await self._runtime()).replay_session(actions, limits or Limits()) as session:
            yield session

    @property
    def facts(self) -> Mapping[str, str]:
        """As the contract says."""
        return {"pydantic-monty": _version()}

    async def restore(self, checkpoint: bytes, *, on_output: OnOutput | None = None) -> CodeExecution | None:
        """As the contract says; the mounts and variables are those of this sandbox."""
        return await (await self._runtime()).restore(checkpoint, on_output)

    @asynccontextmanager
    async def restore_session(self, checkpoint: bytes) -> AsyncGenerator[CodeSession | None]:
        """As the contract says."""
        async with (await self._runtime()).restored_session(checkpoint) as session:
            yield session

    async def type_check(self, code: str, prefix_code: str = "") -> None:
        """As the contract says; a check that takes too long or too much memory is a `CodeTypeError` too."""
        await (await self._runtime()).type_check(as_code(code), prefix_code)

    @classmethod
    def probe(cls) -> Availability:
        """As the contract says; the reason tells what the kernel adds to the interpreter's wall."""
        return probe()

    async def aclose(self) -> None:
        """As the contract says; the last sandbox that closes ends the workers."""
        running, self._running = self._running, None
        if running is not None:
            await running.aclose()

    async def _runtime(self) -> Runtime:
        if self._running is None:
            made = await asyncio.to_thread(_runtime_class)  # the import takes longer than the loop may stand still
            self._running = self._running or made(self._mounts, self._env, self._places)
        return self._running


@cache
def _version() -> str:
    from importlib.metadata import version

    return version("pydantic-monty")


def _runtime_class() -> type[Runtime]:
    is_collecting = gc.isenabled()
    gc.disable()  # a full collection in the middle would hold every thread: with a framework loaded, for 50 ms and more
    try:
        from hatchway.sandboxes.monty.runtime import Runtime
    except ImportError as e:
        missing = MissingExtra(f"the package {e.name or 'pydantic_monty'}", "monty")
        missing.hint = INSTALL  # the base install has it: there is no extra to name
        raise missing from e
    finally:
        if is_collecting:
            gc.enable()
    return Runtime


def _check_apart(mounts: Sequence[FileMount]) -> None:
    """Monty takes no directory twice: a looser mount would open a stricter one."""
    directories = [Path(m.host_path) for m in mounts if Path(m.host_path).is_dir()]
    for index, one in enumerate(directories):
        for other in directories[:index]:
            if one.is_relative_to(other) or other.is_relative_to(one):
                raise InvalidSetting(f"the mounts {other} and {one} overlap: mount the outer one only")
    for file in mounts:
        for folder in mounts:
            is_inside = PurePosixPath(folder.mount_path) in PurePosixPath(file.mount_path).parents
            if is_inside and not Path(file.host_path).is_dir():
                raise InvalidSetting(
                    f"Monty cannot show the file {file.mount_path} inside the directory {folder.mount_path}",
                    hint="mount it elsewhere, or use sandbox='jail', which lays mounts over each other",
                )
