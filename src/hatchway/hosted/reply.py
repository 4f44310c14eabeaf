"""HostedReply: what a vendor's model answered, with all its code did; a result like that of any sandbox."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hatchway.core.errors import InvalidSetting
from hatchway.core.results import ExecutionResult
from hatchway.hosted.code import Answer, ContainerRef, FileRef, HostedCodeResult, Item, Telemetry, spells
from hatchway.hosted.context import ToolResult, Turn
from hatchway.hosted.session import HostedSession

if TYPE_CHECKING:
    from hatchway.hosted.adapter import HostedAdapter


@dataclass(frozen=True, slots=True, kw_only=True)
class HostedReply(ExecutionResult):
    """An answer. `output` is its text, or what it holds when an output schema was asked for; `stdout` is what all its
    code printed, where the vendor does not tell the streams apart too; `images` are the pictures that came along.
    Of code that ran here `files` has what it made; files at the vendor are downloaded.
    """

    text: str = ""
    """What the model said last: after its last code. What it said on the way is told in events (`Response`)."""
    codes: tuple[HostedCodeResult, ...] = ()
    """Every piece of code it had run, in order."""
    tool_results: tuple[ToolResult[Any], ...] = ()
    """What the handlers of the code tool made of each."""
    citations: tuple[FileRef, ...] = ()
    """Files its code made and the answer names; `download` has them."""
    container: ContainerRef | None = None
    telemetry: tuple[Telemetry, ...] = ()
    """One for each request."""
    items: tuple[Item, ...] = field(default=(), repr=False)
    """Everything the vendor sent, as it came."""
    session: HostedSession | None = field(default=None, repr=False, compare=False)
    """Give it to the next request to go on from here."""

    @property
    def files_made(self) -> tuple[FileRef, ...]:
        """Every file the code made, cited or not, each once."""
        every = [file for code in self.codes for file in code.files] + list(self.citations)
        return tuple({file.file_id: file for file in every}.values())

    async def download(self, citation: FileRef | Any) -> bytes:
        """A file its code made; raises as the adapter's `download`."""
        return await self._adapter().download(citation)

    async def download_all(self, folder: str | os.PathLike[str]) -> dict[str, Path]:
        """All files its code made; as the adapter's `download_all`, which must be open still."""
        return await self._adapter().download_all(self, folder)

    def _adapter(self) -> HostedAdapter:
        if self.session is None:
            raise InvalidSetting(
                "this reply was kept in the journal, without its files", hint="ask for them again in a new request"
            )
        return self.session.sandbox.adapter


def last_text(answers: list[Answer]) -> str:
    """What was said after the last code and the last call: the answer, without the words on the way to it.

    A vendor may pause and go on in between. One that ends without a word is taken at what it said before.
    """
    said = spells(words for answer in answers for words in answer.said)
    return next((words for words in reversed(said) if words.strip()), "")


async def handled(code: HostedCodeResult, turn: Turn) -> ToolResult[Any]:
    """A code result through the handlers of the code tool."""
    adapter = turn.adapter
    tool = adapter.offer.code
    if tool is None or code.call.provider != adapter.provider:
        return ToolResult(code.text, code, code.success)
    result, default = adapter.vendor.result(tool, code)
    return await tool.handle(result, default, turn.context(code.call.call_id))


async def with_here(reply: HostedReply, turn: Turn) -> HostedReply:
    """The reply, with what code did here: the same as if it had run at the vendor."""
    here = turn.here
    if not here.codes:
        return reply
    displays = tuple(display for code in here.codes for display in code.displays)
    return replace(
        reply,
        stdout=reply.stdout + "".join(code.stdout or "" for code in here.codes),
        stderr=reply.stderr + "".join(code.stderr or "" for code in here.codes),
        files=tuple(here.files.values()),
        images=(*reply.images, *displays),
        displays=(*reply.displays, *displays),
        tier=here.tier if here.tier and turn.adapter.offer.code is None else reply.tier,
        codes=(*reply.codes, *here.codes),
        tool_results=(*reply.tool_results, *[await handled(code, turn) for code in here.codes]),
    )


def as_reply(result: ExecutionResult) -> HostedReply:
    """A reply; one whose request ended in another process has only what the journal kept."""
    if isinstance(result, HostedReply):
        return result
    known = {each.name: getattr(result, each.name) for each in fields(ExecutionResult)}
    return HostedReply(**known, text=str(result.output or ""))
