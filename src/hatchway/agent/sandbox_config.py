"""What code actions may read, write and reach: the settings of `sandbox-config.json`, and the sandbox made of them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from hatchway.agent.json_places import checked, read_json
from hatchway.core.paths import path_rules
from hatchway.core.signing import key_path

_SYSTEM_NAMES = """
    bin boot dev etc input lib lib32 lib64 libx32 output packages proc run sbin sys tmp usr
"""
_SYSTEM = frozenset(_SYSTEM_NAMES.split())
"""The system's own directories, of which a sandbox shows what Python needs, and those that it has itself."""
_KEY_PLACES = """
    .ssh .gnupg .aws .azure .kube .config/gcloud .docker/config.json .netrc .git-credentials
"""
_KEYS = tuple(_KEY_PLACES.split())
_NAMES = """
    .bashrc .bash_profile .bash_login .profile .zshrc .zprofile .zshenv .gitconfig .gitmodules .envrc .mcp.json
    .vscode .idea
"""
_RUN_BY_NAME = tuple(_NAMES.split())
_RUN_BY_GIT = (".git/hooks", ".git/config")


class _Settings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class NetworkSettings(_Settings):
    """What the code may reach."""

    allowed_domains: Annotated[tuple[str, ...], Field(alias="allowedDomains")] = ()
    """Names it may reach over HTTP; none by default."""
    denied_domains: Annotated[tuple[str, ...], Field(alias="deniedDomains")] = ()
    """Names it may not reach, whatever is allowed."""
    allow_local_binding: Annotated[bool, Field(alias="allowLocalBinding")] = False
    """Taken for files that have it; the jail grants it to no code, and the agent warns of that."""


class FilesystemSettings(_Settings):
    """What the code may read and write."""

    deny_read: Annotated[tuple[str, ...], Field(alias="denyRead")] = (".env",)
    """Patterns of what it cannot open."""
    allow_write: Annotated[tuple[str, ...], Field(alias="allowWrite")] = (".",)
    """Places it may change, relative to the working directory."""
    deny_write: Annotated[tuple[str, ...], Field(alias="denyWrite")] = ()
    """Patterns of what it cannot change, whatever is allowed."""


class SandboxConfig(_Settings):
    """The restrictions of code actions; by default: read all but `.env`, write the working directory, reach nothing."""

    network: NetworkSettings = NetworkSettings()
    filesystem: FilesystemSettings = FilesystemSettings()


def load_sandbox_config(path: Path) -> SandboxConfig:
    """The restrictions a file tells; what it leaves out has its default.

    Raises:
        InvalidSetting: The file cannot be read, or has mistakes; each with line and column.
    """
    found = checked(read_json(path), SandboxConfig)
    files = found.filesystem.model_copy(
        update={"deny_write": (*found.filesystem.deny_write, str(path.absolute()), str(path.resolve()))}
    )  # or the code would write its own restrictions of tomorrow
    return found.model_copy(update={"filesystem": files})


def sandbox_settings(
    config: SandboxConfig, working_dir: Path, hatchway_dir: Path | None = None, python: Path | None = None
) -> dict[str, Any]:
    """What `make_sandbox("jail", …)` takes for these restrictions. The agent's own folder is never written by code.

    Args:
        config: The restrictions.
        working_dir: Where the code starts, at its own path.
        hatchway_dir: The agent's folder; `.hatchway` in the working directory by default.
        python: The interpreter of the code, whose environment is never written: the host starts it too.

    Raises:
        InvalidSetting: A pattern names nothing.
    """
    files, home = config.filesystem, working_dir.expanduser().resolve()
    own = (hatchway_dir or home / ".hatchway").absolute()
    named = dict.fromkeys(_place(each, home) for each in files.allow_write)
    write = [place for place in named if place.exists()]  # files are shared by machines: `missing_places` tells
    return {
        "paths": path_rules(
            read=dict.fromkeys([*(p for p in readable_places() if p not in write), home]),
            write=write,
            deny_read=[*(_pattern(each, home) for each in files.deny_read), *_kept_secret()],
            deny_write=[
                *(_pattern(each, home) for each in files.deny_write),
                str(own),
                str(own.resolve()),
                *_environment(python),
                *_traps(write),
            ],
            workdir=home,
        ),
        "allowed_domains": config.network.allowed_domains,
        "denied_domains": config.network.denied_domains,
    }


def missing_places(config: SandboxConfig, working_dir: Path) -> list[str]:
    """What shall be written and is not there, as the file calls it: nothing of it is granted."""
    home = working_dir.expanduser().resolve()
    return [each for each in config.filesystem.allow_write if not _place(each, home).exists()]


def readable_places(root: Path = Path("/")) -> list[Path]:
    """The directories of the root that hold people's files and that this user may read; for root, those open to all."""
    tops = [path for path in sorted(root.iterdir()) if path.is_dir() and not path.is_symlink()]
    return [path for path in tops if path.name not in _SYSTEM and _is_open(path)]


def _is_open(path: Path) -> bool:
    if os.geteuid() == 0:
        return path.stat().st_mode & 0o005 == 0o005
    return os.access(path, os.R_OK | os.X_OK)


def _kept_secret() -> list[str]:
    """What no code reads, whatever the file says: the key that seals checkpoints, and where keys of this user lie."""
    home = Path.home()
    return [str(key_path().absolute()), *(str(home / name) for name in _KEYS)]


def _environment(python: Path | None) -> list[str]:
    """The folder of an environment, as it is called and as it leads; `/bin/python3` lies in none."""
    if python is None:
        return []
    folder = python.absolute().parent.parent
    folders = dict.fromkeys((folder, folder.resolve()))
    return [str(python.absolute()), *(str(each) for each in folders if each != Path("/"))]


def _traps(write: Iterable[Path]) -> list[str]:
    """What is run later, outside, by who thinks it is theirs: no code changes it, wherever it may write."""
    return [*_RUN_BY_NAME, *(f"{place}/**/{each}" for place in write for each in _RUN_BY_GIT)]


def _place(given: str, home: Path) -> Path:
    """A place to write; `dir/**` is all of `dir`."""
    return (home / Path(given.removesuffix("/**")).expanduser()).resolve()


def _pattern(given: str, home: Path) -> str:
    """A bare name is one at any depth; with a slash it is relative to the working directory."""
    path = Path(given).expanduser()
    return given if "/" not in given.strip("/") and not path.is_absolute() else str(home / path)
