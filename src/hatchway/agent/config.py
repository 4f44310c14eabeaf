"""`.hatchway/`: settings, skills and permissions of a workspace. Loading needs no key and reaches nothing."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from hatchway.agent.env_file import read_env_file
from hatchway.agent.json_places import checked, read_json
from hatchway.agent.sandbox_config import SandboxConfig, load_sandbox_config
from hatchway.agent.settings import AgentSettings, check_servers
from hatchway.agent.skills import SkillMetadata, find_skills, render_skills
from hatchway.agent.workspace_files import is_secret, read_start
from hatchway.core.errors import InvalidSetting
from hatchway.tools.mcp.settings import variables_in

if TYPE_CHECKING:
    from pydantic_ai.models import Model
    from pydantic_ai.settings import ModelSettings

__all__ = ["Config", "SkillMetadata", "init_config"]

FOLDER = ".hatchway"
INSTRUCTIONS = "AGENTS.md"
_INSTRUCTIONS_BYTES = 64 * 1024
_loaded: dict[Path, Mapping[str, Mapping[str, Any]]] = {}


class Config:
    """All settings of a workspace, read once. Without a `.hatchway/` the defaults hold.

    Args:
        working_dir: The workspace; the current directory by default.
        model: A model in place of the one `config.json` names.
        model_settings: Settings in place of those in `config.json`.

    Raises:
        InvalidSetting: A file has mistakes; each is told with its file, line and column.
    """

    def __init__(
        self,
        working_dir: Path | None = None,
        model: str | Model | None = None,
        model_settings: ModelSettings | None = None,
    ) -> None:
        self.working_dir = Path(working_dir or ".").expanduser().resolve()
        self.hatchway_dir = self.working_dir / FOLDER
        self.plans_dir = self.hatchway_dir / "plans"
        self.permissions_file = self.hatchway_dir / "permissions.json"
        self.journal = self.hatchway_dir / "journal.db"
        """Where runs and conversations are kept."""
        self.settings = _settings(self.hatchway_dir / "config.json")
        """`config.json`, checked."""
        self.model: str | Model | None = model or self.settings.model
        """None: nobody named one; `choose_model` finds one."""
        self.model_settings = model_settings or cast("ModelSettings | None", self.settings.model_settings)
        self.tool_search = self.settings.tool_search
        self.mcp_servers: Mapping[str, Mapping[str, Any]] = self.settings.mcp_servers
        """Servers called by JSON; `${VAR}` in them is filled in when they are connected."""
        self.ptc_servers: Mapping[str, Mapping[str, Any]] = self.settings.ptc_servers
        """Servers called by code."""
        self.sandbox: bool | str = self.settings.sandbox
        self.sandbox_config = self._sandbox_config()
        self.packages = self.settings.packages
        """What code may import beside the standard library."""
        own = self.settings.python
        self.python = None if own is None else self.working_dir / Path(own).expanduser()
        """The interpreter of an environment whose packages code may import."""
        self.execution_timeout = self.settings.execution_timeout
        self.approval_timeout = self.settings.approval_timeout
        folders = (self.hatchway_dir / "skills", self.working_dir / ".agents" / "skills")
        self.skills_metadata, self.warnings = find_skills(folders)
        self.system_prompt = self._system_prompt()
        _loaded[self.working_dir] = self.ptc_servers

    def take_env_file(self) -> list[str]:
        """Put what the workspace's `.env` has of the variables its servers name into this process's environment.

        Only where they are not set, and nothing else of the file: it may have come with a repository.

        Returns:
            The names that were set.
        """
        wanted = variables_in(self.mcp_servers) | variables_in(self.ptc_servers)
        own = read_env_file(self.working_dir / ".env")
        taken = sorted(name for name in wanted if name in own and name not in os.environ)
        os.environ.update({name: own[name] for name in taken})
        return taken

    def _sandbox_config(self) -> SandboxConfig:
        match self.settings.sandbox_config:
            case SandboxConfig() as given:
                return given
            case str() as path:
                return load_sandbox_config(self.working_dir / Path(path).expanduser())
            case None:
                return SandboxConfig()

    def _system_prompt(self) -> str:
        """The template of the search mode, filled in, and what the workspace's AGENTS.md says."""
        text = files("hatchway.agent").joinpath("prompts", f"system-{self.tool_search}.md").read_text(encoding="utf-8")
        parts = {
            "{working_dir}": str(self.working_dir),
            "{skills}": render_skills(self.skills_metadata, self.working_dir),
        }
        for mark, value in parts.items():
            before, _, after = text.partition(mark)
            text = f"{before}{value}{after}"
        return f"{text.strip()}{self._instructions()}\n"

    def _instructions(self) -> str:
        """What AGENTS.md says. Where it leads out of the workspace, or to a secret, code may have put it there."""
        path = self.working_dir / INSTRUCTIONS
        real = path.resolve()
        if not real.is_relative_to(self.working_dir) or is_secret(real.name):
            self.warnings.append(f"{INSTRUCTIONS} left out: it is a link to {real}")
            return ""
        try:
            said = read_start(real, _INSTRUCTIONS_BYTES + 1)
        except FileNotFoundError:
            return ""
        except OSError as e:
            self.warnings.append(f"{INSTRUCTIONS} left out: {e.strerror}")
            return ""
        text = said[:_INSTRUCTIONS_BYTES].decode("utf-8-sig", "replace").strip()
        cut = "\n\n(cut here; read the file for the rest)" if len(said) > _INSTRUCTIONS_BYTES else ""
        return f"\n\n# What this workspace says ({INSTRUCTIONS})\n\n{text}{cut}" if text else ""


def loaded_ptc_servers(working_dir: Path) -> Mapping[str, Mapping[str, Any]]:
    """The `ptc-servers` of a workspace whose `Config` this process has loaded; none of any other.

    What a folder brings along starts no command before somebody has asked for its settings.
    """
    return _loaded.get(working_dir, {})


def init_config(working_dir: Path | None = None) -> list[Path]:
    """Make `.hatchway/` in a workspace. What is there already is left as it is; what is missing is made.

    Returns:
        The files that were made.

    Raises:
        InvalidSetting: The folder cannot be written.
    """
    target = Path(working_dir or ".").expanduser().resolve() / FOLDER
    made: list[Path] = []
    try:
        (target / "plans").mkdir(parents=True, exist_ok=True)
        for relative, source in _templates(files("hatchway.agent").joinpath("templates")):
            if _place(target / relative, source.read_bytes()):
                made.append(target / relative)
    except OSError as e:
        raise InvalidSetting(
            f"{e.filename or target} cannot be made: {e.strerror}", hint=f"see that {target.parent} can be written"
        ) from None
    return made


def _settings(path: Path) -> AgentSettings:
    if not path.exists():
        return AgentSettings()
    file = read_json(path)
    settings = checked(file, AgentSettings)
    check_servers(file, settings)
    return settings


def _templates(folder: Traversable, above: Path = Path()) -> Iterator[tuple[Path, Traversable]]:
    for entry in sorted(folder.iterdir(), key=lambda each: each.name):
        name = ".gitignore" if entry.name == "gitignore" else entry.name
        if entry.is_dir():
            yield from _templates(entry, above / name)
        else:
            yield above / name, entry


def _place(path: Path, content: bytes) -> bool:
    """Write a file whole or not at all, never over another; whether it was written."""
    if path.is_symlink() or path.exists():
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
    try:
        fresh.write_bytes(content)
        os.link(fresh, path)  # never replaces: of two processes at once one makes it
    except FileExistsError:
        return False
    finally:
        fresh.unlink(missing_ok=True)
    return True
