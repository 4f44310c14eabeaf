"""Uploads: files brought to a vendor, each content once, with progress; and where they lie there."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from hatchway.core.errors import HatchwayError, InvalidSetting
from hatchway.core.events import AgentEvent
from hatchway.core.results import ExecFile, check_input_files
from hatchway.hosted.code import ContainerRef, Item
from hatchway.hosted.context import Turn
from hatchway.hosted.events import ContainerLost, UploadProgress
from hatchway.hosted.failures import Failure
from hatchway.hosted.mounts import FileRules, LocalFile, as_mount, collect
from hatchway.hosted.provider_tool import ProviderTool
from hatchway.hosted.session import HostedSession
from hatchway.hosted.vendor import Vendor
from hatchway.trace.text import neutral

TIDY_SECONDS = 10.0
"""What cleaning up after a failure may take."""
T = TypeVar("T")
AnyTool = ProviderTool[Any, Any, Any]


class Uploads:
    """Knows what a vendor has already, by digest.

    Args:
        vendor: Where files go.
        roots: Where mounted ones may come from.
        retries: How often a busy vendor is asked again.
    """

    def __init__(self, vendor: Vendor, roots: Sequence[Path], retries: int) -> None:
        self._vendor = vendor
        self._roots = tuple(roots)
        self._retries = retries
        self._known: dict[str, str] = {}
        self._made: set[str] = set()
        """Containers made for files."""
        self._one_at_a_time = asyncio.Lock()

    async def bring(
        self, tool: ProviderTool[Any, Any, Any] | None, turn: Turn, *, is_again: bool = False
    ) -> list[Item]:
        """Have the files of a turn where its code finds them; what must be said for it.

        Args:
            tool: Whose code finds them; what it mounts is brought once to each session.
            turn: What it gives along is brought each time.
            is_again: What was brought is gone, with its container.

        Raises:
            InvalidSetting: A mount is not allowed, or a file is none the vendor takes. Nothing was uploaded.
            SandboxUnavailable, TransportError: The vendor does not take it now.
        """
        if tool is None:
            await self._bring_here(turn)
            return []
        given, is_first = _given(turn.files, self._vendor.takes), is_again or not turn.session.is_supplied
        mounts = self._vendor.mounts(tool) if is_first else ()
        before = turn.session.brought if is_first else {}
        if not mounts and not given and not before and not (is_first and self._vendor.attached(tool)):
            return []
        files = [*await asyncio.to_thread(collect, mounts, self._roots, self._vendor.takes), *given]
        said = await self._supplied(tool, turn, files, before)
        turn.session.is_supplied = True
        return said

    async def delete(self) -> int:
        """Delete at the vendor what was brought there, and the containers made for it; how many of both there were.

        Raises:
            SandboxUnavailable, TransportError: It cannot be asked; what is left is deleted by the next call.
        """
        async with self._one_at_a_time:
            files, containers = list(self._known.items()), list(self._made)
            for digest, file_id in files:
                await self._deleted(lambda file_id=file_id: self._vendor.discard(file_id))
                self._known.pop(digest, None)
            for container_id in containers:
                await self._deleted(lambda container_id=container_id: self._vendor.unmade(container_id))
                self._made.discard(container_id)
            return len(files) + len(containers)

    def forget(self, file_ids: Set[str]) -> None:
        """The vendor has these no more: what was in them is uploaded anew when it is wanted."""
        self._known = {digest: known for digest, known in self._known.items() if known not in file_ids}

    async def _bring_here(self, turn: Turn) -> None:
        """For code that runs here: nothing goes to the vendor, its model is told the names."""
        code, session = turn.adapter.offer.here, turn.session
        if code is None:
            return
        mounts = () if session.is_supplied else map(as_mount, code.settings.host_mounts)
        rules = FileRules(max_file_bytes=code.settings.limits.file_bytes)
        found = await asyncio.to_thread(collect, tuple(mounts), self._roots, rules)
        files = [*(ExecFile(name=file.name, content=file.content) for file in found), *turn.files]
        check_input_files(files)
        session.here |= {file.name: file for file in files}
        session.placed |= {file.name: f"{file.name}, in the working directory" for file in files}
        session.is_supplied = True

    async def _uploaded(self, files: Sequence[LocalFile], turn: Turn) -> dict[str, str]:
        uploaded: dict[str, str] = {}
        async with self._one_at_a_time:  # two requests at once do not upload one file twice
            for number, file in enumerate(files, 1):
                is_there = file.digest in self._known
                if not is_there:
                    self._known[file.digest] = await self.asked(lambda file=file: self._vendor.upload(file))
                uploaded[file.name] = self._known[file.digest]
                event: AgentEvent = UploadProgress(
                    file.name, size=len(file.content), done=number, total=len(files), reused=is_there
                )
                turn.event_bus.publish(replace(event, run_id=turn.run_id))
        return uploaded

    async def _supplied(
        self, tool: AnyTool, turn: Turn, files: Sequence[LocalFile], before: Mapping[str, str]
    ) -> list[Item]:
        """Uploaded and placed with those of `before`; once more where the vendor does not have a file any more."""
        session = turn.session
        uploaded = {**before, **await self._uploaded(files, turn)}
        try:
            said = await self._place(tool, turn, uploaded)
        except InvalidSetting as e:
            missed = self._missed(e, uploaded)
            if not missed:
                raise
            self.forget(missed)
            session.forget(missed)
            left = {name: file_id for name, file_id in before.items() if file_id not in missed}
            uploaded = {**left, **await self._uploaded(files, turn)}
            said = await self._place(tool, turn, uploaded)
        session.brought |= uploaded
        return said

    async def _place(self, tool: AnyTool, turn: Turn, uploaded: Mapping[str, str]) -> list[Item]:
        session, fixed = turn.session, self._vendor.fixed_container(tool)
        container = session.container
        if container is None and fixed is not None and fixed not in session.lost:
            container = ContainerRef(id=fixed)
        try:
            return await self._placed(tool, session, uploaded, container)
        except HatchwayError as e:
            if container is not None and self._is_gone(e, uploaded):
                self._lost(turn, container.id, e.message)
                return await self.bring(tool, turn, is_again=True)
            await self._tidy(session, uploaded, e, is_new=container is None)
            raise

    async def _placed(
        self, tool: AnyTool, session: HostedSession, uploaded: Mapping[str, str], container: ContainerRef | None
    ) -> list[Item]:
        """File by file: what is there already is not brought again when the vendor is busy."""
        if container is None and (container := await self.asked(lambda: self._vendor.made(tool))) is not None:
            self._made.add(container.id)
        session.container = container
        said: list[Item] = []
        attached: list[dict[str, str]] = [{}] if self._vendor.attached(tool) else []
        for some in [*attached, *({name: file_id} for name, file_id in uploaded.items())]:
            places, items = await self.asked(lambda some=some: self._vendor.place(tool, some, container))
            session.placed |= places
            said += items
        return said

    async def _tidy(
        self, session: HostedSession, uploaded: Mapping[str, str], error: HatchwayError, *, is_new: bool
    ) -> None:
        """Leave nothing behind that nobody uses: a container made in vain, files the vendor would refuse again."""
        made = session.container if is_new else None
        if made is not None:
            session.container, session.placed = None, {}
            self._made.discard(made.id)
        refused = set(uploaded.values()) if made is not None and isinstance(error, InvalidSetting) else set[str]()
        refused -= self._missed(error, uploaded)
        self.forget(refused)
        with suppress(Exception):  # the error under way is the one to tell
            async with asyncio.timeout(TIDY_SECONDS):
                for file_id in sorted(refused):
                    await self._vendor.discard(file_id)
                if made is not None:
                    await self._vendor.unmade(made.id)

    async def _deleted(self, delete: Callable[[], Awaitable[None]]) -> None:
        with suppress(InvalidSetting):  # it is not there any more
            await self.asked(delete)

    def _failure(self, error: HatchwayError) -> Failure | None:
        cause = error.__cause__
        return self._vendor.failure(cause, {}) if isinstance(cause, Exception) else None

    def _missed(self, error: HatchwayError, uploaded: Mapping[str, str]) -> set[str]:
        found = self._failure(error)
        return set() if found is None else found.misses(uploaded.values())

    def _is_gone(self, error: HatchwayError, uploaded: Mapping[str, str]) -> bool:
        """Whether it is the container that is not there: the place was asked for by its id, and no file is missed."""
        found = self._failure(error)
        if found is None or found.misses(uploaded.values()):
            return False
        return found.kind == "gone" or found.status in (404, 410)

    def _lost(self, turn: Turn, container_id: str, reason: str) -> None:
        session = turn.session
        session.container, session.placed = None, {}
        session.lost.add(container_id)
        session.history = self._vendor.cleaned(session.history)
        turn.event_bus.publish(ContainerLost(container_id, reason=reason, run_id=turn.run_id))

    async def asked(self, ask: Callable[[], Awaitable[T]]) -> T:
        """What the vendor gives; asked again when it is busy.

        Raises:
            InvalidSetting, SandboxUnavailable, TransportError: It refused.
        """
        for attempt in range(self._retries + 1):
            try:
                return await ask()
            except Exception as e:
                failure = self._vendor.failure(e, {})
                if failure is None:
                    raise
                if not failure.is_passing(attempt + 1, self._retries):
                    raise failure.error(self._vendor.provider) from e
                await asyncio.sleep(failure.wait(attempt + 1))
        raise AssertionError("the loop above returns or raises")


def told_places(instructions: str, session: HostedSession) -> str:
    """What the model is told first, and where its files lie."""
    if not session.placed:
        return instructions
    lines = "\n".join(f"- {_in_a_line(name)}: {_in_a_line(path)}" for name, path in sorted(session.placed.items()))
    return f"{instructions}\n\nFiles for your code, by their name and where they really lie:\n{lines}".lstrip()


def _in_a_line(text: str) -> str:
    """A name of a file cannot go on as an instruction."""
    return neutral(text).replace("\n", "\\n")


def _given(files: Iterable[ExecFile], rules: FileRules) -> list[LocalFile]:
    every = tuple(files)
    check_input_files(every)
    for file in every:
        rules.check(Path(file.name), len(file.content))
    return [
        LocalFile(name=file.name, content=file.content, digest=hashlib.sha256(file.content).hexdigest())
        for file in every
    ]
