"""The `hatchway` command. Each subcommand is one file, imported when it is used: `--help` imports none."""

from __future__ import annotations

import errno
import io
import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from hatchway import __version__
from hatchway.core.errors import ApprovalRequired, HatchwayError, InDoubt

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


class Row(NamedTuple):
    """Where a subcommand lives, and its line in `--help`."""

    path: str
    help: str


COMMANDS = {
    "run": Row("hatchway.cli.run:run", "Run the agent: at the terminal, or once with TASK."),
    "init": Row("hatchway.cli.init:init", "Make .hatchway/ here: settings, permissions, skills."),
    "conversations": Row(
        "hatchway.cli.conversations:conversations", "List conversations with the agent, newest first."
    ),
    "demo": Row("hatchway.cli.demo.command:demo", "See it work: no key, no network."),
    "exec": Row("hatchway.cli.exec:exec_", "Run FILE in a sandbox, its tool calls through the gate."),
    "runs": Row("hatchway.cli.runs:runs", "List the runs of a journal, newest first."),
    "show": Row("hatchway.cli.show:show", "Show what happened in a run."),
    "approve": Row("hatchway.cli.approve:approve", "Allow calls that wait."),
    "deny": Row("hatchway.cli.deny:deny", "Refuse calls that wait."),
    "resume": Row("hatchway.cli.resume:resume", "Go on with a run that stands."),
    "replay": Row("hatchway.cli.replay:replay", "Run a run again from the journal, no tool called."),
    "prune": Row("hatchway.cli.prune:prune", "Drop ended runs and old conversations from a journal."),
    "serve": Row("hatchway.cli.serve:serve", "Serve code execution to other programs, over MCP."),
    "tools": Row("hatchway.cli.tools:tools", "List, search, describe and generate tools of MCP servers."),
    "jail": Row("hatchway.cli.jail:jail", "Run COMMAND behind the jail's wall."),
    "doctor": Row("hatchway.cli.doctor:doctor", "Say which sandboxes work here, and what the others need."),
    "conformance": Row("hatchway.cli.conformance:conformance", "Check a sandbox against the contract."),
    "completion": Row("hatchway.cli.completion:completion", "Print the completion script of your shell."),
}


class LazyGroup(click.Group):
    """A group that knows its commands by a table, and turns our errors into messages and exit codes."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Without a command it is the agent: `hatchway -c` is `hatchway run -c`."""
        is_word = bool(args) and (not args[0].startswith("-") or args[0] in ("-h", "--help", "--version"))
        if not is_word and not ctx.resilient_parsing:
            ctx.meta["hatchway.no_word"] = True
            args = ["run", *args]
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, imported now."""
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name].path.partition(":")
        return getattr(import_module(module), attribute)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command and its arguments; a word that is none is told with those close to it."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as e:
            from difflib import get_close_matches

            close = get_close_matches(args[0], COMMANDS)
            meant = f" Did you mean {' or '.join(close)}?" if close else ""
            raise click.UsageError(f"{e.message}{meant}", ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The table as help text."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, row.help) for name, row in COMMANDS.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The names that begin so, without importing any command."""
        from click.shell_completion import CompletionItem

        return [CompletionItem(name, help=row.help) for name, row in COMMANDS.items() if name.startswith(incomplete)]

    def invoke(self, ctx: click.Context) -> Any:
        """Run the subcommand; an error of ours is a message and an exit code, not a traceback."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as e:
            click.echo("\n".join(["\nInterrupted.", *map(str, e.args)]), err=True)
            ctx.exit(130)
        except OSError as e:
            if e.errno != errno.ENOSPC:
                raise
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what is still kept back goes nowhere, without a word
            click.echo(f"Error: the output cannot be written: {e.strerror}", err=True)
            ctx.exit(1)
        except HatchwayError as e:
            from hatchway.cli.display import neutral
            from hatchway.cli.exits import exit_for

            told = neutral(str(e))
            click.echo(told if isinstance(e, ApprovalRequired | InDoubt) else f"Error: {told}", err=True)
            ctx.exit(exit_for(e))


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="hatchway", message="%(prog)s %(version)s")
def cli() -> None:
    """Run model-written Python in a sandbox; every tool call leaves through one gate.

    Without a command: the agent, at your terminal, with the options of `hatchway run`.
    """


def main() -> None:
    """Entry point of the console script and of `python -m hatchway`."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal without Unicode must not end a run
    cli(prog_name="hatchway")
