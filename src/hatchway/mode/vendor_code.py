"""Code that a model's vendor runs, as those see it who give a prompt and want the answer: the contract of `hosted`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from hatchway.core.errors import CodeExecutionError
from hatchway.core.events import AgentEvent
from hatchway.core.results import ExecFile, ExecutionResult


@dataclass(frozen=True, slots=True, kw_only=True)
class VendorAction:
    """One piece of code a vendor's model had run there."""

    code: str
    language: str
    """`python`, `javascript`, `bash`, or `file_edit` for a change of a file."""
    call_id: str
    end: ExecutionResult | CodeExecutionError
    """How it ended, as a sandbox of ours would have told it; with the files it made, downloaded."""
    success: bool | None
    """None where the vendor does not say."""
    exit_code: int | None = None
    """None where the vendor does not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VendorTurn:
    """From the user's words to the answer of a vendor's model."""

    text: str
    actions: tuple[VendorAction, ...]
    requests: int
    """How often the vendor was asked."""
    input_tokens: int = 0
    output_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class VendorModel:
    """A model at a vendor, and how it is asked."""

    name: str
    """As the vendor spells it."""
    client: Any = None
    """The vendor's own async client, which stays the caller's to close; None takes one of the environment."""
    instructions: str = ""
    max_rounds: int = 50
    """Requests to the vendor for one answer."""
    max_output_tokens: int | None = None
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """More arguments for the SDK's call."""


class VendorTurns(ABC):
    """Answers prompts at a vendor, whose model runs its own code there."""

    @abstractmethod
    def session(self) -> object:
        """What is kept from turn to turn: the conversation and its container."""

    @abstractmethod
    async def turn(
        self,
        prompt: str,
        *,
        session: object,
        files: Sequence[ExecFile] = (),
        emit: Callable[[AgentEvent], None],
        streams: bool,
    ) -> VendorTurn:
        """Answer a prompt.

        Args:
            prompt: The user's words.
            session: What `session` gave.
            files: Uploaded for its code first.
            emit: Sees each event; code that runs there is told as runs of ours are.
            streams: Whether the answer is told as it is written.

        Raises:
            AnswerWithheld: The answer was filtered, refused or cut short, or took too many requests.
            CodeTimeoutError: It took too long.
            InvalidSetting, SandboxUnavailable, SandboxCrashed, TransportError: The vendor refused, failed or is away.
        """

    @abstractmethod
    async def aclose(self) -> None:
        """Give up what is under way. Legal twice."""


class VendorCode(ABC):
    """A code tool that runs at a vendor."""

    __slots__: ClassVar[tuple[str, ...]] = ()
    provider: Literal["openai", "anthropic", "gemini"]

    @abstractmethod
    def turns(self, model: VendorModel) -> VendorTurns:
        """The vendor's model with this tool.

        Raises:
            InvalidSetting: The model or its client is not one of this vendor.
            MissingExtra: The vendor's SDK is not installed.
        """
