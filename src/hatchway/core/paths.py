"""Path rules: places of the host that a sandbox shows where they are, and what in them stays closed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from hatchway.core.errors import InvalidSetting

Paths = Iterable[str | Path]


@dataclass(frozen=True, slots=True, kw_only=True)
class PathRules:
    """What of the host's files the code sees at its own path. Made by `path_rules`; nothing by default.

    A pattern without a slash (`.env`, `*.pem`) stands for every file or directory of that name, however deep; one with
    a slash is relative to each place that is shown, or absolute; `**` stands for any number of directories. A
    directory that matches is closed with all that is in it. What is denied is denied by its name at the moment it is
    used: also a file that appears or is replaced while the code runs. Deny wins.
    """

    read: tuple[Path, ...] = ()
    """Files and directories that can be read."""
    write: tuple[Path, ...] = ()
    """Files and directories that can be read and changed, on the host itself."""
    deny_read: tuple[str, ...] = ()
    """Patterns of what cannot be opened at all."""
    deny_write: tuple[str, ...] = ()
    """Patterns of what cannot be changed, made, moved or removed."""
    workdir: Path | None = None
    """Where the code starts; it lies in one of the places shown."""

    @property
    def is_guarded(self) -> bool:
        """Whether anything is denied by name."""
        return bool(self.deny_read or self.deny_write)


def path_rules(
    *,
    read: Paths = (),
    write: Paths = (),
    deny_read: Iterable[str] = (),
    deny_write: Iterable[str] = (),
    workdir: str | Path | None = None,
) -> PathRules:
    """Rules with absolute, real paths.

    Args:
        workdir: Default: the first directory of `write`, then of `read`.

    Raises:
        InvalidSetting: A path does not exist, is the root, or a pattern is empty or climbs.
    """
    rules = PathRules(
        read=tuple(_place("read", p) for p in _several("read", read)),
        write=tuple(_place("write", p) for p in _several("write", write)),
        deny_read=tuple(_pattern("deny_read", p) for p in _several("deny_read", deny_read)),
        deny_write=tuple(_pattern("deny_write", p) for p in _several("deny_write", deny_write)),
        workdir=None if workdir is None else _place("workdir", workdir),
    )
    shown = [*rules.write, *rules.read]
    if rules.workdir is None:
        start = next((p for p in shown if p.is_dir()), None)
        return PathRules(
            read=rules.read, write=rules.write, deny_read=rules.deny_read, deny_write=rules.deny_write, workdir=start
        )
    if not any(rules.workdir.is_relative_to(p) for p in shown):
        raise InvalidSetting(f"workdir {str(rules.workdir)!r} lies in no place that is shown", hint="add it to read=")
    if not rules.workdir.is_dir():
        raise InvalidSetting(f"workdir {str(rules.workdir)!r} is not a directory", hint="give a file by read= alone")
    return rules


def _several(setting: str, given: Paths) -> Paths:
    if isinstance(given, str | Path):
        raise InvalidSetting(f"{setting} takes a list, not one entry", hint=f"{setting}=[{str(given)!r}]")
    return given


def _place(setting: str, given: str | Path) -> Path:
    path = Path(given).expanduser()
    if not path.exists():
        raise InvalidSetting(f"{setting} {str(path)!r} does not exist on the host")
    path = path.resolve()
    if path == Path("/"):
        raise InvalidSetting(f"{setting} cannot be the whole root: name the directories that are needed")
    return path


def _pattern(setting: str, given: str | Path) -> str:
    text = str(given)
    text = str(Path(text).expanduser()) if text.startswith("~") else text
    parts = [part for part in text.split("/") if part not in ("", ".")]
    if not parts or ".." in parts or "\0" in text:
        raise InvalidSetting(f"{setting} pattern {text!r} names nothing", hint="write '.env', '*.pem' or 'config/keys'")
    joined = "/".join(parts)
    if text.startswith("/"):
        return "/" + joined
    return f"./{joined}" if text.startswith("./") else joined
