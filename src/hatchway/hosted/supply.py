"""Supply: the files of a turn where its code finds them, and its model told where they lie."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hatchway.core.errors import HatchwayError, InvalidSetting
from hatchway.core.results import ExecFile, check_input_files
from hatchway.hosted.code import ContainerRef, Item
from hatchway.hosted.context import Turn
from hatchway.hosted.events import ContainerLost
from hatchway.hosted.mounts import FileRules, LocalFile, as_mount, collect
from hatchway.hosted.provider_tool import ProviderTool
from hatchway.hosted.session import HostedSession
from hatchway.hosted.uploads import Uploads
from hatchway.hosted.vendor import Vendor
from hatchway.trace.text import neutral

AnyTool = ProviderTool[Any, Any, Any]


class Supply:
    """Brings files to code, at a vendor or here.

    Args:
        vendor: Whose code it is.
        roots: Where mounted files may come from.
        uploads: What the vendor has already.
    """

    def __init__(self, vendor: Vendor, roots: Sequence[Path], uploads: Uploads) -> None:
        self._vendor = vendor
        self._roots = tuple(roots)
        self._uploads = uploads

    async def bring(self, tool: AnyTool | None, turn: Turn, *, is_again: bool = False) -> list[Item]:
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

    async def _supplied(
        self, tool: AnyTool, turn: Turn, files: Sequence[LocalFile], before: Mapping[str, str]
    ) -> list[Item]:
        """Uploaded and placed with those of `before`; once more where the vendor does not have a file any more."""
        session = turn.session
        uploaded = {**before, **await self._uploads.upload(files, turn)}
        try:
            said = await self._place(tool, turn, uploaded)
        except InvalidSetting as e:
            missed = self._uploads.missed(e, uploaded.values())
            if not missed:
                raise
            self._uploads.forget(missed)
            session.forget(missed)
            left = {name: file_id for name, file_id in before.items() if file_id not in missed}
            uploaded = {**left, **await self._uploads.upload(files, turn)}
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
        session.container = container = container or await self._uploads.make(tool)
        said: list[Item] = []
        attached: list[dict[str, str]] = [{}] if self._vendor.attached(tool) else []
        for some in [*attached, *({name: file_id} for name, file_id in uploaded.items())]:
            places, items = await self._uploads.asked(lambda some=some: self._vendor.place(tool, some, container))
            session.placed |= places
            said += items
        return said

    async def _tidy(
        self, session: HostedSession, uploaded: Mapping[str, str], error: HatchwayError, *, is_new: bool
    ) -> None:
        made = session.container if is_new else None
        if made is not None:
            session.container, session.placed = None, {}
        refused = set(uploaded.values()) if made is not None and isinstance(error, InvalidSetting) else set[str]()
        await self._uploads.tidy(refused - self._uploads.missed(error, uploaded.values()), made)

    def _is_gone(self, error: HatchwayError, uploaded: Mapping[str, str]) -> bool:
        """Whether it is the container that is not there: the place was asked for by its id, and no file is missed."""
        found = self._uploads.failure(error)
        if found is None or found.misses(uploaded.values()):
            return False
        return found.kind == "gone" or found.status in (404, 410)

    def _lost(self, turn: Turn, container_id: str, reason: str) -> None:
        session = turn.session
        session.container, session.placed = None, {}
        session.lost.add(container_id)
        session.history = self._vendor.cleaned(session.history)
        turn.event_bus.publish(ContainerLost(container_id, reason=reason, run_id=turn.run_id))


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
