"""The contract of a vendor: its wire form written, read and repaired, and its SDK spoken to."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, ClassVar

from hatchway.core.events import AgentEvent
from hatchway.hosted.code import Answer, ContainerRef, FileRef, HostedCodeResult, Item, ProgrammaticCall, Provider
from hatchway.hosted.context import ToolResult
from hatchway.hosted.failures import Failure
from hatchway.hosted.mounts import FileRules, HostMount, LocalFile
from hatchway.hosted.provider_tool import ProviderTool
from hatchway.mode.sandbox_code import SandboxCode, sandbox_code
from hatchway.tools.functions import Tool


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """What a vendor's model is offered."""

    code: ProviderTool[Any, Any, Any] | None = None
    """Its own code tool."""
    direct: Mapping[str, Tool] = field(default_factory=dict[str, Tool])
    """Our tools the model may call, by the name on the wire."""
    from_code: Mapping[str, Tool] = field(default_factory=dict[str, Tool])
    """Our tools its code may call, by the name on the wire."""

    @property
    def tools(self) -> dict[str, Tool]:
        """All of ours."""
        return {**self.direct, **self.from_code}

    def refuses(self, call: ProgrammaticCall) -> str:
        """Why a call is not even brought to the gate; empty where it is."""
        if not isinstance(call.arguments, dict):
            return "the arguments are no JSON object"
        if call.is_from_code and call.tool in self.direct and call.tool not in self.from_code:
            return f"{call.tool} is offered to the model, not to its code"
        return ""

    @property
    def here(self) -> SandboxCode | None:
        """What runs code here, where one of the tools does."""
        return next((code for tool in self.direct.values() if (code := sandbox_code(tool)) is not None), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One request to a vendor."""

    model: str
    offer: Offer
    history: Sequence[Item]
    instructions: str = ""
    container: ContainerRef | None = None
    lost: Set[str] = frozenset()
    """Containers that are gone."""
    tool_choice: str | None = None
    """`auto`, `none`, `required` (some tool), or the name of a tool (this very one)."""
    output_schema: Mapping[str, Any] | None = None
    max_output_tokens: int | None = None
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """As `Vendor.settings` gave them; tools among them are offered beside ours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """One response as it came."""

    response: Item
    request_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """What became of a call of ours, as the vendor is told."""

    call: ProgrammaticCall
    content: str
    is_error: bool = False


class Fold(ABC):
    """A stream of a vendor, put together again."""

    @abstractmethod
    def feed(self, event: Item) -> Sequence[AgentEvent | HostedCodeResult]:
        """Take the next event in; what it tells at once: chunks, and code that ended."""

    def rest(self) -> Sequence[HostedCodeResult]:
        """Of a stream that does not end: the code that ended, and was kept back to see what follows it."""
        return ()

    @abstractmethod
    def response(self) -> Item:
        """The whole response, as if it had come at once.

        Raises:
            TransportError: The stream ended before its end.
        """


class Vendor(ABC):
    """One vendor. `read`, `request` and the other words about items know no SDK; the rest speaks with it."""

    provider: ClassVar[Provider]
    takes: ClassVar[FileRules]
    """Which files it takes."""
    runs: ClassVar[type[ProviderTool[Any, Any, Any]]]
    """Its kind of code tool."""
    tells_returns: ClassVar[bool] = False
    """Whether its code is told the schema of what a tool gives, and then takes text as JSON too."""

    @abstractmethod
    def settings(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """More arguments for the SDK's call, checked.

        Raises:
            InvalidSetting: A word the call does not take, or one the adapter writes itself.
        """

    @abstractmethod
    def spoken(self, prompt: str, files: Sequence[Item]) -> list[Item]:
        """What the user says, with the items `attach` gave, as history."""

    @abstractmethod
    def request(self, ask: Ask) -> dict[str, Any]:
        """The arguments of the SDK's call."""

    @abstractmethod
    def read(self, response: Item, before: Sequence[Item]) -> Answer:
        """A response, read: every item, wherever it stands.

        Args:
            response: As it came.
            before: What was said before: code may have begun there.
        """

    @abstractmethod
    def answered(self, answers: Sequence[Answered], offer: Offer) -> list[Item]:
        """What became of all calls of a response, as history."""

    @abstractmethod
    def cleaned(self, history: Sequence[Item]) -> list[Item]:
        """The history without anything that is bound to a container which is gone; what was said and done stays."""

    @abstractmethod
    def fold(self) -> Fold:
        """For one stream."""

    @abstractmethod
    async def send(self, request: Mapping[str, Any]) -> Received:
        """Ask, and wait for the whole response. Raises what the SDK raises."""

    @abstractmethod
    def stream(self, request: Mapping[str, Any]) -> AsyncGenerator[Item, None]:
        """Ask, and have the events as they come. Raises what the SDK raises."""

    @abstractmethod
    def failure(self, error: Exception, request: Mapping[str, Any]) -> Failure | None:
        """What an error of the SDK means; None: it is none of its errors."""

    @abstractmethod
    async def upload(self, file: LocalFile) -> str:
        """Have a file at the vendor; its id there."""

    @abstractmethod
    async def discard(self, file_id: str) -> None:
        """Delete a file that `upload` brought. Raises what the SDK raises."""

    @abstractmethod
    async def download(self, file: FileRef) -> bytes:
        """A file of the vendor's code."""

    @abstractmethod
    async def place(
        self, tool: ProviderTool[Any, Any, Any], uploaded: Mapping[str, str], container: ContainerRef | None
    ) -> tuple[dict[str, str], list[Item]]:
        """Bring uploaded files (names to ids) to where the code finds them; none: those `attached` names.

        Returns:
            Where each lies by its name, and what must be said to have them there.
        """

    @abstractmethod
    def mounts(self, tool: ProviderTool[Any, Any, Any]) -> Sequence[HostMount]:
        """The files of this machine its code tool wants."""

    @abstractmethod
    def result(self, tool: ProviderTool[Any, Any, Any], code: HostedCodeResult) -> tuple[Any, ToolResult[Any]]:
        """A code result as the typed payload of the tool, and the `ToolResult` it gets without a handler."""

    @abstractmethod
    def memory_limit(self, tool: ProviderTool[Any, Any, Any] | None) -> str | None:
        """The memory tier asked for, for logs."""

    async def made(self, tool: ProviderTool[Any, Any, Any]) -> ContainerRef | None:
        """A new container for files; None where the vendor makes it with the request."""
        return None

    async def unmade(self, container_id: str) -> None:
        """Delete a container that `made` gave. Raises what the SDK raises."""
        return None

    def attached(self, tool: ProviderTool[Any, Any, Any]) -> Sequence[str]:
        """Ids of files at the vendor that must be said in a message to be there."""
        return ()

    def files_said(self, history: Sequence[Item]) -> set[str]:
        """Ids of files at the vendor that what was said needs; without one of them it is refused."""
        return set()

    def without_files(self, history: Sequence[Item], file_ids: Set[str]) -> list[Item]:
        """The history without these files; the words stay."""
        return list(history)

    def lost(self, response: Item) -> Failure | None:
        """A response that says it failed as its container is gone; None: it does not say that."""
        return None

    async def named(self, file: FileRef) -> FileRef:
        """The file with its name, asked for where a citation does not tell it."""
        return file

    def fixed_container(self, tool: ProviderTool[Any, Any, Any] | None) -> str | None:
        """The container the tool was told to use; None: any."""
        return None

    async def aclose(self) -> None:
        """Close what was opened here. Legal twice."""
        return None
