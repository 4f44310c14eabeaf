"""The agent as the command line asks for it: settings, model, permissions, conversation, put together."""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from hatchway.agent.config import Config, init_config
from hatchway.agent.human import HUMAN, human_model
from hatchway.agent.model_choice import ModelChoice, choose_model
from hatchway.agent.permissions import PermissionManager
from hatchway.agent.vendors import vendor_of
from hatchway.cli.agent_options import AgentOptions
from hatchway.cli.granted import offered_tools
from hatchway.cli.journals import new_journal
from hatchway.core.errors import HatchwayError, InvalidSetting

if TYPE_CHECKING:
    from pydantic_ai.models import Model

    from hatchway.agent.agent import Agent
    from hatchway.agent.conversations import Conversation, Conversations
    from hatchway.agent.sandbox_config import SandboxConfig

NO_MODEL = "`hatchway run --model human` needs none; with a key: export OPENAI_API_KEY=…, or any vendor's"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """Everything an agent is made of but its conversation."""

    options: AgentOptions
    config: Config
    choice: ModelChoice
    tools: list[Any]

    @property
    def warnings(self) -> list[str]:
        """What the person should know about settings and model."""
        return [*self.config.warnings, *self.choice.notes]


def prepare(options: AgentOptions, folder: Path | None = None) -> Setup:
    """Read the settings and find a model. It takes its time and may be done in a thread: nothing is started.

    Raises:
        InvalidSetting: A file has mistakes, or a tool module cannot be loaded.
    """
    import_module("hatchway.agent.agent")  # loaded here, where nobody waits for it
    folder = folder or Path.cwd()
    init_config(folder)
    config = Config(folder)
    config.take_env_file()
    return Setup(
        options=options,
        config=config,
        choice=choose_model(options.model, config, os.environ, folder),
        tools=offered_tools(options.tools),
    )


def load_model(name: str, choice: ModelChoice | None = None) -> Model:
    """The model of a name: a person, one from a file, or what Pydantic AI knows.

    Raises:
        InvalidSetting: There is no such model.
        MissingExtra: The package that speaks with it is not installed.
    """
    if name == HUMAN:
        return human_model()
    if ".py:" in name:
        return _model_of_file(name)
    from pydantic_ai.models import infer_model

    try:
        found = choice.load() if choice is not None and choice.model == name else name
        return infer_model(found) if isinstance(found, str) else found
    except HatchwayError:
        raise
    except Exception as e:  # an unknown name, a missing key or package: each in its own class
        raise _unusable(name, e) from e


def _unusable(name: str, error: Exception) -> InvalidSetting:
    """Why a model cannot be had. What its library says is for programs, where a key or a package is missing."""
    if (vendor := vendor_of(name)) is not None:
        if isinstance(error, ImportError):
            hint = f"pip install 'pydantic-ai-slim[{vendor.extra}]'"
            return InvalidSetting(f"the package that speaks with {name!r} is not installed", hint=hint)
        if not any(os.environ.get(key) for key in vendor.keys):
            hint = f"export {vendor.keys[0]}=… or put it as a line into .env of this folder"
            return InvalidSetting(
                f"the model {name!r} needs a key, and {' or '.join(vendor.keys)} is not set", hint=hint
            )
    return InvalidSetting(f"the model {name!r} cannot be used: {error}", hint=NO_MODEL)


def _model_of_file(name: str) -> Model:
    from pydantic_ai.models import Model

    from hatchway.cli.tool_modules import load_module

    path, _, attribute = name.rpartition(":")
    found: Any = getattr(load_module(path, "the model in"), attribute, None)
    if callable(found) and not isinstance(found, Model):
        found = found()
    if isinstance(found, Model):
        return cast("Model", found)
    raise InvalidSetting(f"{path} has no model named {attribute!r}", hint="name a pydantic_ai Model, or a function")


def find_conversation(kept: Conversations, options: AgentOptions, folder: Path) -> Conversation:
    """The conversation that is asked for, or a new one.

    Raises:
        InvalidSetting: There is no such conversation.
        RunTaken: Another process has it.
    """
    if options.session:
        return kept.pick(options.session)
    if not options.goes_on:
        return kept.create(folder)
    found, newest = kept.newest(folder), kept.list(folder, limit=1)
    if found is not None:
        if newest and newest[0].id != found.id:
            text = "conversation %s is newer and open in another terminal; this is number %s"
            logging.getLogger("hatchway").warning(text, newest[0].number, found.number)
        return found
    if newest:
        raise InvalidSetting(
            "every conversation of this folder is open in another terminal", hint="hatchway starts one"
        )
    raise InvalidSetting("there is no conversation in this folder yet", hint="hatchway starts one")


@asynccontextmanager
async def started(setup: Setup, model: str | Model) -> AsyncGenerator[tuple[Agent, PermissionManager]]:
    """The agent, started, and the permissions it goes by."""
    from hatchway.agent.agent import Agent
    from hatchway.agent.conversations import Conversations

    options, config = setup.options, setup.config
    permissions = PermissionManager(config.hatchway_dir)
    await permissions.load()
    with new_journal(options.journal) as journal:
        conversation = find_conversation(Conversations.open(journal), options, config.working_dir)
        agent = Agent(
            model,
            config.model_settings or dict(setup.choice.settings) or None,  # pyright: ignore
            config.system_prompt,
            mcp_servers=config.mcp_servers,
            sandbox=options.sandbox or config.sandbox,
            sandbox_config=_sandbox_config(setup),
            execution_timeout=options.execution_timeout or config.execution_timeout,
            approval_timeout=options.approval_timeout or config.approval_timeout,
            packages=(*config.packages, *options.packages),
            python=config.python,
            tools=setup.tools,
            working_dir=config.working_dir,
            ptc_servers=config.ptc_servers,
            tool_search=config.settings.tool_search,
            permissions=permissions,
            conversation=conversation,
        )
        async with agent:
            yield agent, permissions


def _sandbox_config(setup: Setup) -> Path | SandboxConfig | None:
    """What actions may read, write and reach, if somebody says so: not every sandbox can be told."""
    config = setup.config
    return setup.options.sandbox_config or (config.sandbox_config if config.settings.sandbox_config else None)
