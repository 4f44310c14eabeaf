"""What code at a vendor is, gives and asks for: one vocabulary for OpenAI, Anthropic and Gemini."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from hatchway.core.errors import CodeExecutionError, CodeRuntimeError, CodeTimeoutError, InvalidSetting
from hatchway.core.results import DISPLAY_TYPES, Display, ExecutionResult

Item = dict[str, Any]
"""One item, block or part of a vendor's wire form, as JSON; kept as it came, so that it can be sent back."""
Provider = Literal["openai", "anthropic", "gemini"]
"""Who runs the code."""
Language = Literal["python", "javascript", "bash", "file_edit"]
"""What the code is written in; `file_edit` is a change of a file in the container."""
Status = Literal["ok", "failed", "timeout", "interrupted", "unavailable", "unknown"]
"""How it ended; `unknown` where the vendor does not say."""
Stop = Literal["end", "calls", "continue", "filtered", "incomplete", "failed"]
"""Why a vendor stopped: it is done, waits for our calls, wants to be asked again, or has no answer to give."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostedCodeCall:
    """One piece of code a vendor's model had run."""

    provider: str
    """Who ran it: the vendor, or a sandbox here by its name."""
    call_id: str
    """The vendor's own id of it; empty where it gives none."""
    language: Language
    code: str
    """The code; for `file_edit` the command as JSON."""
    container_id: str | None = None
    """Where it ran; None where the vendor does not say."""
    caller: str = "direct"
    """The type of who asked for it, as the vendor spells it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRef:
    """A file at the vendor, made by code there: what a citation tells of it."""

    provider: Provider
    file_id: str
    container_id: str | None = None
    filename: str = ""
    """As the code named it: text of a stranger, never a path to write to. `download_all` makes it safe."""
    span: tuple[int, int] | None = None
    """Where in the answer's text it is cited."""


def file_ref(given: object, provider: Provider) -> FileRef:
    """A file at the vendor, also as the citation it sent: JSON, or an object of its SDK.

    Raises:
        InvalidSetting: It names no file.
    """
    if isinstance(given, FileRef):
        return given
    file_id, container_id, filename = (_told(given, name) for name in ("file_id", "container_id", "filename"))
    if not file_id:
        raise InvalidSetting(f"{type(given).__name__} names no file", hint="give one of HostedReply.citations")
    return FileRef(provider=provider, file_id=file_id, container_id=container_id or None, filename=filename)


def _told(given: Any, name: str) -> str:
    told: Any = cast("Mapping[str, Any]", given).get(name) if isinstance(given, Mapping) else getattr(given, name, None)
    return told if isinstance(told, str) else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostedImage:
    """A picture the code showed."""

    url: str = ""
    """Where the vendor has it; empty when it came along."""
    display: Display | None = None
    """The picture itself, when it came along."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostedCodeResult:
    """How a piece of code ended. What a vendor does not tell is None, never made up."""

    call: HostedCodeCall
    status: Status
    stdout: str | None = None
    stderr: str | None = None
    exit_code: int | None = None
    logs: str | None = None
    """Output of which the vendor does not say on which stream it came."""
    error_code: str = ""
    """The vendor's own word for a failure of its machinery, such as `too_many_requests`."""
    images: tuple[HostedImage, ...] = ()
    files: tuple[FileRef, ...] = ()
    opaque: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)
    """Fields only the vendor can read (fingerprint, signature, encrypted output); they are in the history too."""

    @property
    def success(self) -> bool | None:
        """Whether it went well; None: the vendor does not say."""
        return {"ok": True, "unknown": None}.get(self.status, False)

    @property
    def text(self) -> str:
        """Everything it printed."""
        return "".join(part for part in (self.logs, self.stdout, self.stderr) if part)

    @property
    def displays(self) -> tuple[Display, ...]:
        """The pictures that came along."""
        return displays_of(self.images)

    def as_execution(self) -> ExecutionResult:
        """The same as a sandbox of ours would have told it.

        Raises:
            CodeTimeoutError: It ran out of the vendor's time.
            CodeRuntimeError: It failed, or did not run to its end.
        """
        printed = (self.logs or "") + (self.stdout or "")
        if self.success is False:
            raise self._failure(printed)
        return ExecutionResult(
            stdout=printed, stderr=self.stderr or "", images=self.displays, displays=self.displays, tier="vendor"
        )

    def _failure(self, printed: str) -> CodeExecutionError:
        kind = CodeTimeoutError if self.status == "timeout" else CodeRuntimeError
        why = self.stderr or self.error_code or f"the code at {self.call.provider} ended as {self.status}"
        return kind(why, stdout=printed, stderr=self.stderr or "", displays=self.displays)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgrammaticCall:
    """A call to one of OUR tools, made by a vendor's model or by its code."""

    call_id: str
    tool: str
    """The name as the vendor spells it."""
    arguments: Any
    """What was given; the gate checks it."""
    caller: str = "direct"
    """The type the vendor gives of who calls; anything but `direct` is code."""
    parent_code_call_id: str = ""
    """The code that calls."""
    raw_caller: Item | None = None
    """The vendor's whole word about the caller, to be sent back."""

    @property
    def is_from_code(self) -> bool:
        """Judged by the type as text: an SDK that does not know a type takes it for another class."""
        return self.caller != "direct"


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerRef:
    """A vendor's container."""

    id: str
    expires_at: str | None = None
    """As the vendor writes it."""
    memory_limit: str | None = None
    """The tier it was asked with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Telemetry:
    """What is known of one request to a vendor; holds no secret."""

    provider: Provider
    model: str
    request_id: str | None = None
    """The id the vendor's support asks for."""
    response_id: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    max_output_tokens: int | None = None
    """The limit that was asked for."""
    container_id: str | None = None
    memory_limit: str | None = None
    attempts: int = 1
    """Requests made, the retried ones included."""
    streamed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One response of a vendor, read."""

    items: tuple[Item, ...]
    """All of it, to be put behind the history."""
    stop: Stop
    reason: str = ""
    """The vendor's own word for why it stopped."""
    said: tuple[str | None, ...] = ()
    """Its words in their order; None where it worked in between: ran code, or called a tool."""
    refusal: str = ""
    """What the model said instead of an answer."""
    thoughts: str = ""
    codes: tuple[HostedCodeResult, ...] = ()
    """Code that ended."""
    begun: tuple[HostedCodeCall, ...] = ()
    """Code that began and waits for the calls it made."""
    calls: tuple[ProgrammaticCall, ...] = ()
    images: tuple[HostedImage, ...] = ()
    """Pictures that no code of this response made."""
    citations: tuple[FileRef, ...] = ()
    container: ContainerRef | None = None
    unknown: tuple[str, ...] = ()
    """Kinds of items nobody here has heard of; they are in `items` all the same."""
    response_id: str | None = None
    model: str = ""
    input_tokens: int | None = None
    output_tokens: int | None = None

    @property
    def every_image(self) -> tuple[HostedImage, ...]:
        """Its pictures in their order: those of its code stand behind the others."""
        return (*self.images, *(image for code in self.codes for image in code.images))

    @property
    def text(self) -> str:
        """All its words."""
        return "".join(words for words in self.said if words)


def spells(said: Iterable[str | None]) -> list[str]:
    """Words that were said together, without work in between; the last may be empty: it worked, and said no more."""
    every = [""]
    for words in said:
        if words is None:
            every.append("")
        else:
            every[-1] += words
    return every


def displays_of(images: Iterable[HostedImage]) -> tuple[Display, ...]:
    """The pictures that came along; those behind a URL did not."""
    return tuple(image.display for image in images if image.display is not None)


def picture(content: bytes, mime_type: str, number: int) -> HostedImage:
    """A picture that came along, named by us."""
    name = f"display-{number}{DISPLAY_TYPES.get(mime_type, '')}"
    return HostedImage(display=Display(name=name, content=content, mime_type=mime_type))
