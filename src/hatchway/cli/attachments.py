"""Attachments: `@path` in a prompt brings a file along: a picture, all pictures of a folder, or text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hatchway.agent.scaling import scaled
from hatchway.core.errors import InvalidSetting
from hatchway.trace.text import size_text

PICTURES = (".png", ".jpg", ".jpeg", ".gif", ".webp")
"""What the name of a picture ends with."""
TEXT_BYTES, PICTURE_BYTES, PICTURES_PER_FOLDER = 200_000, 20_000_000, 50
MENTION = re.compile(r"""(?<!\S)@(?:"([^"\n]+)"|((?:\\ |\S)+))""")
"""`@` at the beginning of a word, then a path; quotes or backslashes keep its spaces."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A picture as a model gets it."""

    name: str
    content: bytes
    mime_type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Attached:
    """A prompt, and what its mentions brought along."""

    text: str
    parts: Sequence[str | Picture] = ()
    notes: Sequence[str] = field(default_factory=tuple[str, ...])
    """What the person should know about it, one line each."""

    def content(self) -> str | list[Any]:
        """The prompt as the agent takes it."""
        if not self.parts:
            return self.text
        from pydantic_ai.messages import BinaryContent

        def sent(part: str | Picture) -> Any:
            if isinstance(part, str):
                return part
            return BinaryContent(part.content, media_type=part.mime_type, identifier=part.name)

        return [self.text, *map(sent, self.parts)]


def attached(prompt: str, folder: Path) -> Attached:
    """The prompt with the files it mentions; a mention of nothing that is there is left as it is written.

    Raises:
        InvalidSetting: A file that is mentioned is too large, cannot be read, or is neither text nor a picture.
    """
    parts: list[str | Picture] = []
    notes: list[str] = []
    for path in dict.fromkeys(_mentioned(prompt, folder)):
        if not isinstance(path, Path):
            notes.append(f"@{path}: there is no such file, so it is sent as it is written")
            continue
        if path.is_dir():
            found = _pictures_in(path)
            pictures = {0: "no pictures in it", 1: "1 picture"}.get(len(found), f"{len(found)} pictures")
            notes.append(f"@{_shown(path, folder)}: {pictures}")
            parts += found
        elif path.suffix.lower() in PICTURES:
            picture = _picture(path)
            parts.append(picture)
            notes.append(f"@{_shown(path, folder)}: picture, {size_text(len(picture.content))}")
        else:
            parts.append(_text(path, _shown(path, folder)))
            notes.append(f"@{_shown(path, folder)}: text, {size_text(path.stat().st_size)}")
    return Attached(text=prompt, parts=parts, notes=notes)


def _mentioned(prompt: str, folder: Path) -> Iterator[Path | str]:
    """What is there, as a path; what is not and looks like one, as it is written."""
    for quoted, bare in MENTION.findall(prompt):
        written = quoted or bare.replace("\\ ", " ")
        for name in dict.fromkeys([written, written.rstrip(".,;:!?)'\"")]):
            path = (folder / Path(name).expanduser()) if name else folder / "\0"
            if _exists(path):
                yield path
                break
        else:
            if quoted or "/" in written or Path(written.rstrip(".,;:!?)'\"")).suffix:
                yield written


def _exists(path: Path) -> bool:
    try:
        return path.is_file() or path.is_dir()
    except (OSError, ValueError):  # a name too long or with a NUL is no path
        return False


def _pictures_in(folder: Path) -> list[Picture]:
    try:
        paths = sorted(path for path in folder.iterdir() if path.suffix.lower() in PICTURES and path.is_file())
    except OSError as e:
        raise InvalidSetting(f"the folder {folder} cannot be read: {e.strerror}", hint="mention another") from e
    if len(paths) > PICTURES_PER_FOLDER:
        more = f"mention single files, or a folder of at most {PICTURES_PER_FOLDER}"
        raise InvalidSetting(f"{folder} has {len(paths)} pictures", hint=more)
    return [_picture(path) for path in paths]


def _picture(path: Path) -> Picture:
    content = _content(path, PICTURE_BYTES)
    try:
        sent = scaled(content)
    except ValueError as e:
        raise InvalidSetting(f"{path} is not a picture that can be read: {e}", hint="mention another file") from e
    return Picture(name=path.name, content=sent.content, mime_type=sent.mime_type)


def _text(path: Path, name: str) -> str:
    content = _content(path, TEXT_BYTES)
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise InvalidSetting(
            f"{path} is neither text nor a picture ({', '.join(PICTURES)})",
            hint="name it without @: the agent can open files itself",
        )
    return f'<file path="{name}">\n{text}\n</file>'


def _content(path: Path, limit: int) -> bytes:
    try:
        size = path.stat().st_size
        content = path.read_bytes() if size <= limit else b""
    except OSError as e:
        raise InvalidSetting(f"{path} cannot be read: {e.strerror}", hint="mention another file") from e
    if size > limit:
        raise InvalidSetting(
            f"{path} has {size_text(size)}, and at most {size_text(limit)} can be sent along",
            hint="name it without @: the agent can open files itself",
        )
    return content


def _shown(path: Path, folder: Path) -> str:
    return str(path.relative_to(folder)) if path.is_relative_to(folder) else str(path)
