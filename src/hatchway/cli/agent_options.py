"""Options of the agent, the same for `hatchway`, `hatchway run` and `hatchway run TASK`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

from hatchway.cli.options import Seconds, complete_sandbox, journal_option, packages_option, tools_option

F = TypeVar("F", bound=Callable[..., Any])
_LEVELS = click.Choice(["debug", "info", "warning", "error", "critical"])


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentOptions:
    """What the command line says; None: whatever the configuration says."""

    model: str | None
    sandbox: str | None
    sandbox_config: Path | None
    execution_timeout: float | None
    """Seconds of one action."""
    approval_timeout: float | None
    """Seconds somebody has to answer."""
    tools: tuple[str, ...]
    """Modules and files with functions."""
    packages: tuple[str, ...]
    """Beside those of the configuration."""
    yes: bool
    goes_on: bool
    """The newest conversation of this directory, instead of a new one."""
    session: str | None
    """A conversation, by number or id."""
    journal: str
    log_level: str
    record: bool
    record_dir: Path
    record_title: str

    def words(self) -> list[str]:
        """What must be typed again to go on in the same way."""
        given = {"--model": self.model, "--sandbox": self.sandbox, "--sandbox-config": self.sandbox_config}
        several = {"--tools": self.tools, "--packages": self.packages}
        named = [*given.items(), *((name, each) for name, words in several.items() for each in words)]
        return [word for name, value in named if value is not None for word in (name, str(value))]


_OPTIONS = (
    click.option("--model", metavar="NAME", help="Such as openai:gpt-5; human: you write the actions; FILE.py:NAME."),
    click.option(
        "-c", "--continue", "goes_on", is_flag=True, help="Go on with the newest conversation of this folder."
    ),
    click.option("--session", metavar="NUMBER|ID", help="Go on with this one: see `hatchway conversations`."),
    click.option(
        "--sandbox",
        is_flag=False,
        flag_value="auto",
        metavar="[NAME]",
        shell_complete=complete_sandbox,
        help="Where actions run: a name from `hatchway doctor`; auto by default.",
    ),
    click.option(
        "--sandbox-config",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        metavar="PATH",
        help="What actions may read, write and reach.",
    ),
    click.option(
        "--execution-timeout",
        type=Seconds(),
        metavar="SECONDS",
        help="Time one action may take, approvals apart. [default: 300]",
    ),
    click.option(
        "--approval-timeout", type=Seconds(), metavar="SECONDS", help="Time to answer a question. [default: no limit]"
    ),
    tools_option,
    packages_option,
    click.option("--yes", is_flag=True, help="Allow every action and call without asking."),
    journal_option,
    click.option("--log-level", type=_LEVELS, default="info", show_default=True, help="How much is logged."),
    click.option("--record", is_flag=True, help="Write the conversation as SVG and HTML."),
    click.option(
        "--record-dir",
        type=click.Path(file_okay=False, path_type=Path),
        default=Path("output"),
        show_default=True,
        metavar="PATH",
        help="Where recordings go.",
    ),
    click.option("--record-title", default="Conversation", show_default=True, metavar="TEXT", help="Their title."),
)


def agent_options(command: F) -> F:
    """The options themselves, in the order in which help shows them."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command
