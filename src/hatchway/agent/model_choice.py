"""Which model, when a person just starts the agent: named, by a key, or by a server of this machine."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hatchway.agent.env_file import read_env_file
from hatchway.agent.local_models import SERVERS, LocalModel, LocalModels, LocalServer, find_local_models
from hatchway.agent.vendors import VENDORS, Vendor, vendor_of
from hatchway.core.errors import InvalidSetting, MissingExtra

if TYPE_CHECKING:
    from pydantic_ai.models import Model

    from hatchway.agent.config import Config

ENV_FILE = ".env"
NAME_ONE = "name one, as Agent('openai:gpt-5') or as \"model\" in .hatchway/config.json, or set a vendor's key"
LOCAL_MODELS = "HATCHWAY_LOCAL_MODELS"
"""The variable that is `off` where no server of this machine is to be taken unasked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelChoice:
    """A model, and why this one."""

    model: str | None
    """Its name, as `--model` takes it; None: none was found."""
    why: str
    """One line for the person."""
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What to ask it with, as Pydantic AI's ModelSettings."""
    base_url: str = ""
    """Where it is served, for a server of this machine; else empty."""
    notes: tuple[str, ...] = ()
    """What was found and could not be used, and what would change that."""
    variables: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """What the vendor's package looks for in the environment and the `.env` of the workspace has. Secret."""

    def load(self) -> str | Model:
        """What `Agent` takes. Keys from `.env` are in this process's environment afterwards.

        Raises:
            ValueError: There is no model.
            MissingExtra: The package that speaks with it is not installed.
        """
        if self.model is None:
            raise ValueError(self.why)
        missing = {name: value for name, value in self.variables.items() if not os.environ.get(name)}
        os.environ.update(missing)  # a variable that is set to nothing is none
        return _local(self.model.partition(":")[2], self.base_url) if self.base_url else self.model


def choose_model(
    flag: str | None,
    config: Config,
    environ: Mapping[str, str],
    working_dir: Path,
    *,
    servers: Sequence[LocalServer] = SERVERS,
) -> ModelChoice:
    """The model to begin with: one that is named, one there is a key for, or one that is served on this machine.

    Args:
        flag: What `--model` says.
        config: The settings of the workspace.
        environ: Environment variables.
        working_dir: Where a `.env` may lie.
        servers: Where a server of this machine may listen; nobody is asked where `HATCHWAY_LOCAL_MODELS` is `off`.
    """
    settings = dict(config.model_settings or {})
    own = read_env_file(working_dir / ENV_FILE)
    named = flag or (config.model if isinstance(config.model, str) else None)
    if named:
        why = "named by --model" if flag else f"named by {config.hatchway_dir.name}/config.json"
        return _named(named, why, settings, environ, own)
    return _found(settings, environ, own, servers)


def given_or_found(model: str | Model | None, working_dir: Path) -> str | Model:
    """The model that is given, or the one `hatchway` would take in this directory.

    Raises:
        InvalidSetting: None is given, and none is found.
        MissingExtra: The package that speaks with it is not installed.
    """
    if model is not None:
        return model
    choice = _found({}, os.environ, read_env_file(working_dir / ENV_FILE), SERVERS)
    if choice.model is None:
        raise InvalidSetting(f"there is no model: {choice.why}", hint=NAME_ONE)
    return choice.load()


def _found(
    settings: Mapping[str, Any], environ: Mapping[str, str], own: Mapping[str, str], servers: Sequence[LocalServer]
) -> ModelChoice:
    by_key, notes = _by_key(environ, own, settings)
    if by_key is not None:
        return by_key
    local = find_local_models(() if environ.get(LOCAL_MODELS) == "off" else servers)
    if local.best is not None:
        return _served(local.best, settings, tuple(notes))
    key = "no vendor's key can be used" if notes else "no vendor's key is set"
    why = f"no model is named, {key}, and {_not_served(local)}"
    return ModelChoice(model=None, why="; ".join([why, *notes]), notes=tuple(notes))


def _named(
    model: str, why: str, settings: Mapping[str, Any], environ: Mapping[str, str], own: Mapping[str, str]
) -> ModelChoice:
    vendor = vendor_of(model)
    server = next((each for each in SERVERS if model.startswith(f"{each.prefix}:")), None)
    if server is not None and not environ.get("OLLAMA_BASE_URL"):
        return ModelChoice(model=model, why=why, settings=settings, base_url=LocalModel(server, "").base_url)
    is_set = vendor is None or any(environ.get(key) for key in vendor.keys)
    variables = {} if is_set or vendor is None else _of(vendor, own)
    notes = tuple(_address_left(vendor, environ, own)) if variables and vendor is not None else ()
    return ModelChoice(model=model, why=why, settings=settings, variables=variables, notes=notes)


def _by_key(
    environ: Mapping[str, str], own: Mapping[str, str], settings: Mapping[str, Any]
) -> tuple[ModelChoice | None, list[str]]:
    """The first vendor with a key, a package and a model; and what kept others from being it."""
    notes: list[str] = []
    for known, source, variables in ((environ, "", False), (own, f" in {ENV_FILE}", True)):
        for vendor in VENDORS:
            key = next((key for key in vendor.keys if known.get(key)), None)
            if key is None:
                continue
            if lack := _lack(vendor, known):
                notes.append(f"{key} is set{source}, but {lack}")
                continue
            why = f"{key} is set{source}"
            given = _of(vendor, own) if variables else {}
            notes += _address_left(vendor, environ, own) if variables else ()
            model = f"{vendor.prefix}:{vendor.model}"
            return ModelChoice(model=model, why=why, settings=settings, notes=tuple(notes), variables=given), notes
    return None, notes


def _lack(vendor: Vendor, known: Mapping[str, str]) -> str:
    if missing := [name for name in vendor.needs if not known.get(name)]:
        return f"not {', '.join(missing)}"
    if not vendor.model:
        return f"a model must be named: --model {vendor.prefix}:NAME"
    if not _is_installed(vendor.package):
        return f"its package is missing: pip install 'pydantic-ai-slim[{vendor.extra}]'"
    return ""


def _is_installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ImportError:
        return False


def _of(vendor: Vendor, own: Mapping[str, str]) -> dict[str, str]:
    """A vendor's variables, all of one file: an address from there never gets a key from elsewhere."""
    if not any(own.get(key) for key in vendor.keys):
        return {}
    return {name: own[name] for name in (*vendor.keys, *vendor.needs) if own.get(name)}


def _address_left(vendor: Vendor, environ: Mapping[str, str], own: Mapping[str, str]) -> list[str]:
    """That an address of the file is not gone by: the prompts of whoever opens a repository are not its to send."""
    stems = [key.removesuffix("_API_KEY") for key in vendor.keys if key.endswith("_API_KEY")]
    names = [name for stem in stems if own.get(name := f"{stem}_BASE_URL") and not environ.get(name)]
    return [f"{name} in {ENV_FILE} is not used: export {name}=… if that is where to ask" for name in names]


def _served(local: LocalModel, settings: Mapping[str, Any], notes: tuple[str, ...]) -> ModelChoice:
    return ModelChoice(
        model=f"{local.server.prefix}:{local.model}",
        why=f"{local.server.name} answers on port {local.server.port} of this machine",
        settings=settings,
        base_url=local.base_url,
        notes=notes,
    )


def _not_served(local: LocalModels) -> str:
    if not local.empty:
        return "no model server answers on this machine"
    server = local.empty[0]
    return f"{server.name}, which answers on port {server.port} of this machine, has no model ({server.gets_model})"


def _local(model: str, base_url: str) -> Model:
    try:
        from pydantic_ai.models.openai import OpenAIChatModel
        from pydantic_ai.providers.openai import OpenAIProvider
    except ImportError as e:
        raise MissingExtra("the package that speaks with model servers", "agent") from e
    return OpenAIChatModel(model, provider=OpenAIProvider(base_url=base_url, api_key="none"))
