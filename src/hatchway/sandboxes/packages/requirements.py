"""What packages are asked for, and the name of the environment that holds exactly those."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path

from hatchway.core.errors import InvalidSetting

FORMAT = 1
"""Counted up when a cached environment is laid out in another way."""
_REQUIREMENT = re.compile(
    r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?\s*(?:\[[A-Za-z0-9._,\s-]*\])?\s*"
    r"(?:(?:===|==|~=|!=|<=|>=|<|>)[^;@/]*)?(?:;[^@/]*)?"
)
_UV_SETTINGS = re.compile(
    r"UV_(.*INDEX.*|FIND_LINKS|PRERELEASE|RESOLUTION|EXCLUDE_NEWER|CONSTRAINT|OVERRIDE|CONFIG_FILE)"
)

OnProgress = Callable[[str], None]
"""Takes one line, without its end, while an environment is built."""


@dataclass(frozen=True, slots=True)
class Packages:
    """Packages the code may import, with all they depend on; a plain list stands for one with the defaults.

    uv's own settings (`UV_DEFAULT_INDEX`, `UV_OFFLINE`, the user's uv.toml, …) hold where nothing is said here.

    Raises:
        InvalidSetting: A requirement is not a name with an optional version.
    """

    requirements: tuple[str, ...]
    """Names with versions, such as `"pandas==2.*"`."""
    _: KW_ONLY
    index_url: str | None = None
    """The package index to ask; None leaves it to uv."""
    find_links: tuple[str | Path, ...] = ()
    """Folders or pages with wheels, asked as well."""
    no_index: bool = False
    """Ask no index at all, only `find_links`."""
    allow_sdists: bool = False
    """Also take packages that have no wheel. Their build code then runs ON THE HOST, unsealed."""
    cache: str | Path | None = None
    """Where environments are kept; None: `$HATCHWAY_CACHE`, else the user's cache folder, for root the system's."""
    on_progress: OnProgress | None = field(default=None, compare=False)
    """Sees what happens during a build, line by line, on the event loop."""

    def __post_init__(self) -> None:
        for name in ("requirements", "find_links"):
            if isinstance(getattr(self, name), str | Path):
                raise InvalidSetting(f"{name} takes a list, not one entry", hint=f"{name}=[{getattr(self, name)!r}]")
        object.__setattr__(self, "requirements", tuple(_checked(text) for text in self.requirements))
        object.__setattr__(self, "find_links", tuple(_link(link) for link in self.find_links))

    def key(self, abi: str) -> str:
        """The name of the environment in the cache, for an interpreter of this ABI."""
        wanted = sorted({re.sub(r"\s+", "", text).lower() for text in self.requirements})
        index = [self.index_url, list(self.find_links), self.no_index, self.allow_sdists]
        told = json.dumps([FORMAT, abi, wanted, index, _uv_settings()])
        return hashlib.sha256(told.encode()).hexdigest()[:32]  # not in clear: an index address may hold a password


def as_packages(given: Packages | Iterable[str]) -> Packages | None:
    """The packages asked for; None when there are none.

    Raises:
        InvalidSetting: A requirement is not one.
    """
    if isinstance(given, str):
        raise InvalidSetting("packages takes a list, not one entry", hint=f"packages=[{given!r}]")
    packages = given if isinstance(given, Packages) else Packages(tuple(given))
    return packages if packages.requirements else None


def _checked(text: str) -> str:
    """No option of uv's can pass for a requirement, nor a folder or an address, whose build code would run here."""
    if not isinstance(text, str) or not _REQUIREMENT.fullmatch(text.strip()):
        raise InvalidSetting(
            f"{text!r} is not a package with an optional version",
            hint="write it as 'pandas' or 'pandas==2.*'; your own wheels: Packages([...], find_links=['folder'])",
        )
    return text.strip()


def _link(link: str | Path) -> str:
    return link if isinstance(link, str) and "://" in link else str(Path(link).expanduser().resolve())


def _uv_settings() -> list[tuple[str, str]]:
    """uv's own settings that decide what is installed."""
    given = [(name, value) for name, value in sorted(os.environ.items()) if _UV_SETTINGS.fullmatch(name)]
    config = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "uv" / "uv.toml"
    for file in (config, Path("/etc/uv/uv.toml")):
        try:
            given.append((str(file), file.read_text(encoding="utf-8", errors="replace")))
        except OSError:
            continue  # most have none
    return given
