"""`hatchway jail`: run any command behind the jail's wall."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import click

from hatchway.cli.exits import Exit
from hatchway.cli.options import Seconds

if TYPE_CHECKING:
    from hatchway.core.limits import Limits
    from hatchway.sandboxes.jail.command import JailedCommand
    from hatchway.sandboxes.jail.command_jail import CommandJail

HELP = """Run COMMAND behind the jail's wall.

As if it ran here: its input, output, terminal and exit code are yours.

It sees the system's directories read-only, a scratch folder, and what these options grant; its environment is empty
but for --env; there is no network but --allow-domain. Patterns without a slash stand for a name at any depth.

\b
hatchway jail -- python3 -c 'print(1 + 1)'
hatchway jail --workspace .:rw --deny-read .env -- bash

Exits with the command's own code, 128 + N when signal N killed it, 124 when the time was over.
"""
GIVING_MORE = {
    "memory_bytes": "--memory",
    "disk_bytes": "--disk",
    "wall_seconds": "--timeout",
    "processes": "--processes",
}
SIZES = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


class Size(click.ParamType[int]):
    """Bytes, such as `512M`."""

    name = "size"

    def convert(self, value: str | int, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number of bytes."""
        if isinstance(value, int):
            return value
        if (found := re.fullmatch(r"(\d+)([KMG]?)B?", value.upper())) is None:
            self.fail(f"{value!r} is no size: write 512M or 2G", param, ctx)
        return int(found[1]) * SIZES[found[2]]


@click.command("jail", help=HELP, context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("--workspace", multiple=True, metavar="DIR[:rw]", help="Show DIR at its own path and start there.")
@click.option("--read", multiple=True, metavar="PATH", help="Show PATH read-only at its own path.")
@click.option("--mount", multiple=True, metavar="HOST:INSIDE", help="Show HOST read-only at INSIDE, below /input.")
@click.option("--deny-read", multiple=True, metavar="GLOB", help="Keep what matches closed, such as .env.")
@click.option("--deny-write", multiple=True, metavar="GLOB", help="Keep what matches as it is.")
@click.option("--allow-domain", multiple=True, metavar="DOMAIN[=GET,HEAD]", help="Let HTTP(S) to it through a proxy.")
@click.option("--deny-domain", multiple=True, metavar="DOMAIN", help="Keep it closed, whatever is allowed.")
@click.option("--env", multiple=True, metavar="NAME[=VALUE]", help="Set a variable, or hand on yours.")
@click.option("--memory", type=Size(), metavar="SIZE", help="Memory of all its processes, such as 512M.")
@click.option("--disk", type=Size(), metavar="SIZE", help="What it may write to its scratch folder, such as 2G.")
@click.option("--timeout", type=Seconds(), metavar="SECONDS", help="Kill it after that.")
@click.option("--processes", type=click.IntRange(min=1), metavar="N", help="Processes and threads at one time.")
@click.option("--tier", type=click.Choice(["namespaces", "landlock"]), help="Take this wall and no other.")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- COMMAND [ARGS]...")
@click.pass_context
def jail(
    ctx: click.Context,
    workspace: Sequence[str],
    read: Sequence[str],
    mount: Sequence[str],
    deny_read: Sequence[str],
    deny_write: Sequence[str],
    allow_domain: Sequence[str],
    deny_domain: Sequence[str],
    env: Sequence[str],
    memory: int | None,
    disk: int | None,
    timeout: float | None,
    processes: int | None,
    tier: Literal["namespaces", "landlock"] | None,
    command: Sequence[str],
) -> None:
    """Run any command behind the jail's wall."""
    # imported here: completion and --help read this file too, and stay quick
    from hatchway.core.paths import path_rules
    from hatchway.sandboxes.jail.command_jail import CommandJail

    spaces = [(w.removesuffix(":rw").removesuffix(":ro"), w.endswith(":rw")) for w in workspace]
    made = CommandJail(
        tier=tier,
        file_mounts=[_pair(m) for m in mount],
        paths=path_rules(
            read=[*(d for d, is_writable in spaces if not is_writable), *read],
            write=[d for d, is_writable in spaces if is_writable],
            deny_read=deny_read,
            deny_write=deny_write,
            workdir=_directory(spaces[0][0]) if spaces else None,
        ),
        env=dict(_variable(e) for e in env),
        allowed_domains=[_domain(d) for d in allow_domain],
        denied_domains=deny_domain,
    )
    ctx.exit(asyncio.run(_run(made, list(command), _limits(memory, disk, timeout, processes))))


async def _run(jail: CommandJail, argv: list[str], limits: Limits) -> int:
    from hatchway.cli.stdio import through_pipes, through_terminal

    attached = through_terminal if all(os.isatty(fd) for fd in (0, 1, 2)) else through_pipes
    async with jail:
        command = await attached(jail, argv, limits)
        return _exit_code(command)


def _exit_code(command: JailedCommand) -> int:
    assert command.returncode is not None
    if command.limit:
        more = f"; give it more with {GIVING_MORE[command.limit]}" if command.limit in GIVING_MORE else ""
        click.echo(f"hatchway: the command went over its limit of {command.limit}{more}", err=True)
        return Exit.TIMEOUT if command.limit == "wall_seconds" else 128 - command.returncode
    return command.returncode if command.returncode >= 0 else 128 - command.returncode


def _limits(memory: int | None, disk: int | None, timeout: float | None, processes: int | None) -> Limits:
    from dataclasses import replace

    from hatchway.sandboxes.jail.command_jail import COMMAND_LIMITS

    given = {"memory_bytes": memory, "disk_bytes": disk, "wall_seconds": timeout, "processes": processes}
    if disk is not None:
        given["file_bytes"] = max(disk, COMMAND_LIMITS.file_bytes)  # one file may fill it
    return replace(COMMAND_LIMITS, **{name: value for name, value in given.items() if value is not None})  # pyright: ignore


def _directory(workspace: str) -> str:
    if os.path.exists(workspace) and not os.path.isdir(workspace):
        raise click.UsageError(f"--workspace {workspace}: it is not a directory; show a file with --read {workspace}")
    return workspace


def _pair(text: str) -> tuple[str, str]:
    host, colon, inside = text.rpartition(":")
    if not colon or not host or not inside:
        raise click.UsageError(f"--mount {text!r}: write HOST:INSIDE")
    return host, inside


def _domain(text: str) -> str | tuple[str, list[str]]:
    domain, equals, methods = text.partition("=")
    return (domain, [m.strip().upper() for m in methods.split(",")]) if equals else domain


def _variable(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name:
        raise click.UsageError(f"--env {text!r}: write NAME=VALUE")
    if not equals and name not in os.environ:
        raise click.UsageError(f"--env {name}: there is no such variable here; write {name}=VALUE")
    return name, value if equals else os.environ[name]
