"""Results: what an action gave."""

from __future__ import annotations

import io
import mimetypes
from base64 import b64decode, b64encode
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Annotated, Any, BinaryIO, Literal

from hatchway.core.errors import InvalidSetting

Tier = Literal["language", "process", "landlock", "namespaces", "container", "vm", "vendor"]
"""How strong a wall is. `process` is no wall at all."""


class AsBase64:
    """Marks bytes that are base64 text in JSON; pydantic asks it, and only then is needed."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema

        text = core_schema.plain_serializer_function_ser_schema(
            lambda content: b64encode(content).decode("ascii"), when_used="json"
        )
        return core_schema.no_info_before_validator_function(_from_base64, handler(source), serialization=text)


def _from_base64(content: Any) -> Any:
    return b64decode(content, validate=True) if isinstance(content, str) else content


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecFile:
    """A file that goes into or comes out of a sandbox."""

    name: str
    """Relative path, `/` between parts, never absolute, never with `..`."""
    content: Annotated[bytes, AsBase64()]
    """The whole file; base64 where pydantic writes it as JSON. A large one that came out of a sandbox is read from
    disk each time: see `open`."""
    mime_type: str = ""
    """Guessed from the name when left empty."""

    def __post_init__(self) -> None:
        if not self.mime_type:
            object.__setattr__(self, "mime_type", guessed_type(self.name))

    @property
    def size(self) -> int:
        """Bytes of the file, known without reading it."""
        return len(self.content)

    def open(self) -> BinaryIO:
        """The content as a stream, from its beginning; a large file is read piece by piece."""
        return io.BytesIO(self.content)


def guessed_type(name: str) -> str:
    """The mime type a file's name stands for."""
    return mimetypes.guess_type(name)[0] or "application/octet-stream"


def check_input_files(files: Sequence[ExecFile]) -> None:
    """Refuse files that cannot be written below one folder, each under its own name.

    Raises:
        InvalidSetting: A name is absolute or empty, or leaves the folder, or is there twice.
    """
    names: set[str] = set()
    for name in (file.name for file in files):
        parts = PurePosixPath(name).parts
        if not parts or "\0" in name or name.startswith("/") or ".." in parts:
            raise InvalidSetting(f"{name!r} cannot be staged: a file name is relative, without '..'")
        if name in names:
            raise InvalidSetting(f"two input files are named {name!r}: give each its own name")
        names.add(name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Display(ExecFile):
    """Something the code showed: a picture, a table, a formula. Named by the host, `display-1.png` and so on."""

    text: str = ""
    """Its `repr`, for whoever cannot show it."""


DISPLAY_TYPES = {
    "image/png": ".png",
    "image/jpeg": ".jpg",
    "image/gif": ".gif",
    "image/webp": ".webp",
    "image/svg+xml": ".svg",
    "text/html": ".html",
    "text/markdown": ".md",
    "text/latex": ".tex",
}
"""The kinds of things code can show, and how their files are named."""


def pictures(displays: Sequence[Display]) -> tuple[Display, ...]:
    """Those that are pictures."""
    return tuple(display for display in displays if display.mime_type.startswith("image/"))


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
    displays: tuple[Display, ...] = ()
    """Everything the code displayed, in order: the pictures, and tables and formulas as HTML, Markdown or LaTeX."""
    usage: Usage = field(default_factory=Usage)
    """Time, memory and calls."""
    tier: Tier = "process"
    """How strong the wall was that held this very execution."""
