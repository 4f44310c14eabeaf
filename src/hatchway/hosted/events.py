"""Events of code at a vendor, beside those of every run (`core/events.py`).

AgentEvent
├── HostedCodeChunk      a piece of the code, as the model writes it
├── HostedCodeStarted    the code is whole and runs
├── HostedCodeEnded      it ended
├── HostedCallMade       a call to one of our tools left the vendor, on its way to the gate
├── HostedRequestEnded   a request to the vendor came back
├── UploadProgress       a file went to the vendor, or was there already
├── ContainerLost        a container is gone; another is made and the history cleaned
└── UnknownItem          an item of a kind nobody here has heard of; it is kept
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hatchway.core.events import AgentEvent
from hatchway.hosted.code import HostedCodeCall, HostedCodeResult, ProgrammaticCall, Telemetry


@dataclass(frozen=True)
class HostedCodeChunk(AgentEvent):
    """A piece of the code, as the model writes it."""

    text: str
    call_id: str = field(default="", kw_only=True)


@dataclass(frozen=True)
class HostedCodeStarted(AgentEvent):
    """The code is whole and runs at the vendor."""

    call: HostedCodeCall


@dataclass(frozen=True)
class HostedCodeEnded(AgentEvent):
    """The code at the vendor ended."""

    result: HostedCodeResult


@dataclass(frozen=True)
class HostedCallMade(AgentEvent):
    """A call to one of our tools left the vendor; the gate is next, and tells the arguments (`CallStarted`)."""

    call: ProgrammaticCall


@dataclass(frozen=True)
class HostedRequestEnded(AgentEvent):
    """A request to the vendor came back."""

    telemetry: Telemetry


@dataclass(frozen=True)
class UploadProgress(AgentEvent):
    """A file went to the vendor, or was there already."""

    name: str
    size: int = field(default=0, kw_only=True)
    """Bytes of this file."""
    done: int = field(default=0, kw_only=True)
    """Files there so far, this one included."""
    total: int = field(default=0, kw_only=True)
    """Files in all."""
    reused: bool = field(default=False, kw_only=True)
    """It was there already."""


@dataclass(frozen=True)
class ContainerLost(AgentEvent):
    """A container is gone. The history was cleaned of it and the request is made once more with a new one."""

    container_id: str
    reason: str = field(default="", kw_only=True)


@dataclass(frozen=True)
class UnknownItem(AgentEvent):
    """The vendor sent something of a kind nobody here has heard of; it is kept and sent back as it came.

    A piece of a stream that nobody here can put together is left out.
    """

    kind: str
