"""Which model, when a person just starts the agent: named, by a key, or by a server of this machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic_ai.models import Model

    from hatchway.agent.config import Config


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelChoice:
    """A model, and why this one."""

    model: str | None
    """Its name, as `--model` takes it; None: none was found."""
    why: str
    """One line for the person."""
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What to ask it with."""
    base_url: str = ""
    """Where it is served, for a server of this machine; else empty."""

    def load(self) -> str | Model:
        """What `Agent` takes.

        Raises:
            MissingExtra: The package that speaks with it is not installed.
        """
        return self.model or ""


def choose_model(flag: str | None, config: Config, environ: Mapping[str, str], working_dir: Path) -> ModelChoice:
    """The model to begin with: one that is named, one there is a key for, or one that is served on this machine.

    Args:
        flag: What `--model` says.
        config: The settings of the workspace.
        environ: Environment variables.
        working_dir: Where a `.env` may lie.
    """
    if flag:
        return ModelChoice(model=flag, why="named by --model")
    if config.model:
        return ModelChoice(model=str(config.model), why=f"named by {config.hatchway_dir / 'config.json'}")
    return ModelChoice(model=None, why="no model is named, there is no key and no server of this machine")
