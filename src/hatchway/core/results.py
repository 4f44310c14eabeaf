"""Results: what an action gave."""

from __future__ import annotations

import mimetypes
from dataclasses import dataclass, field
from typing import Any, Literal

Tier = Literal["language", "process", "landlock", "namespaces", "container", "vm", "vendor"]
"""How strong a wall is. `process` is no wall at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecFile:
    """A file that goes into or comes out of a sandbox."""

    name: str
    """Relative path, `/` between parts, never absolute, never with `..`."""
    content: bytes
    """The whole file."""
    mime_type: str = ""
    """Guessed from the name when left empty."""

    def __post_init__(self) -> None:
        if not self.mime_type:
            guessed = mimetypes.guess_type(self.name)[0] or "application/octet-stream"
            object.__setattr__(self, "mime_type", guessed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What an execution took."""

    wall_seconds: float = 0.0
    """Time the code itself ran; waiting on the host is not counted."""
    cpu_seconds: float = 0.0
    """CPU time of the code and its descendants; 0.0 where the backend cannot tell."""
    memory_bytes: int = 0
    """Peak memory; 0 where the backend cannot tell."""
    calls: int = 0
    """Tool calls made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionResult:
    """What one action gave."""

    output: Any = None
    """The value of the last expression; None when the code does not end in one."""
    stdout: str = ""
    """What was printed, cut in the middle past `Limits.output_bytes`."""
    stderr: str = ""
    """What was written to stderr, cut likewise."""
    files: tuple[ExecFile, ...] = ()
    """Files the code left in `/output`."""
    images: tuple[ExecFile, ...] = ()
    """Pictures the code displayed, in order."""
    usage: Usage = field(default_factory=Usage)
    """Time, memory and calls."""
    tier: Tier = "process"
    """How strong the wall was that held this very execution."""
