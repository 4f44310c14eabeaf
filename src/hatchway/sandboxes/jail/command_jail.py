"""CommandJail: any program behind the jail's wall, with the same files, network and limits as code has."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Self

from hatchway.core.errors import InvalidSetting, SandboxCrashed, SandboxUnavailable
from hatchway.core.grants import AllowedDomainInput, FileMountInput, as_environment, as_file_mounts
from hatchway.core.limits import MIB, Limits
from hatchway.core.network import NetworkRules
from hatchway.core.paths import PathRules
from hatchway.core.results import Tier
from hatchway.sandboxes.jail.command import CommandBody, JailedCommand, Pipes, Stream
from hatchway.sandboxes.jail.egress import Egress
from hatchway.sandboxes.jail.interpreter import interpreter_files
from hatchway.sandboxes.jail.launch import Launch
from hatchway.sandboxes.jail.sealed_command import SealedCommand
from hatchway.sandboxes.jail.system_files import PATH
from hatchway.sandboxes.jail.zygote import Zygote
from hatchway.sandboxes.shortage import NoRoom, no_process
from hatchway.sandboxes.starting import to_the_end

if TYPE_CHECKING:
    from hatchway.sandboxes.jail.landlocked_command import CommandSpawner

COMMAND_LIMITS = Limits(
    wall_seconds=float("inf"),
    cpu_seconds=float("inf"),
    memory_bytes=1024 * MIB,
    processes=256,
    open_files=1024,
    file_bytes=1024 * MIB,
    disk_bytes=512 * MIB,
    disk_files=100_000,
)
"""A server runs until it is stopped; everything else is bounded."""
_log = logging.getLogger("hatchway")


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandResult:
    """What a command gave."""

    exit_code: int
    """Its exit code, or the negative number of the signal that killed it."""
    stdout: bytes
    """What it wrote."""
    stderr: bytes
    """What it wrote to its standard error."""
    limit: str
    """The field of `Limits` it was killed for, or empty."""
    tier: Tier
    """The wall that held it."""


class CommandJail:
    """Starts programs behind the jail's wall. They see the system's directories read-only and what is granted.

    Their environment is empty but for what is given here; there is no network but what is granted. An async context
    manager: what still runs at the end is killed.

    Args:
        tier: `"namespaces"` or `"landlock"` forces that wall; None takes the stronger one that works here.
        file_mounts: Files and directories shown read-only; relative paths land under `/input`.
        paths: Places of the host shown at their own paths, and what is denied in them; the first is where it starts.
        env: Environment variables of the programs.
        allowed_domains, denied_domains: What HTTP clients reach through a proxy; needs the namespaces tier.

    Raises:
        InvalidSetting: Something that is granted does not exist or cannot be shown there.
    """

    def __init__(
        self,
        *,
        tier: Literal["namespaces", "landlock"] | None = None,
        file_mounts: Iterable[FileMountInput] = (),
        paths: PathRules | None = None,
        env: Mapping[str, str] | None = None,
        allowed_domains: Iterable[AllowedDomainInput] = (),
        denied_domains: Iterable[str] = (),
    ) -> None:
        self._tier = tier
        network = NetworkRules.of(allowed_domains, denied_domains)
        self._launch = Launch(
            interpreter=interpreter_files(),
            mounts=as_file_mounts(file_mounts),
            paths=paths or PathRules(),
            egress=Egress(network) if network.allowed else None,
            is_command=True,
        )
        self._environment = as_environment(env)
        self._zygote: Zygote | None = None
        self._spawner: CommandSpawner | None = None
        self._running: set[JailedCommand] = set()
        self._starting = asyncio.Lock()
        self.weaker_because = ""
        """Why the wall is not the strongest one; empty when it is, or when it was forced."""

    async def start(
        self,
        argv: Sequence[str],
        *,
        stdin: Stream = "pipe",
        stdout: Stream = "pipe",
        stderr: Stream = "pipe",
        limits: Limits = COMMAND_LIMITS,
        env: Mapping[str, str] | None = None,
        has_tty: bool = False,
    ) -> JailedCommand:
        """Start a program; it runs when this returns.

        Args:
            argv: The program, looked up on the jail's `PATH`, and its arguments.
            stdin, stdout, stderr: `"pipe"`, `"null"` or a descriptor.
            limits: What it may take; by default there is no limit on time.
            env: More environment variables.
            has_tty: `stdin` is a terminal that becomes the program's own.

        Raises:
            InvalidSetting: There is no such program inside.
            SandboxUnavailable: The wall cannot be built here.
            SandboxCrashed: It died while starting, or the machine has no room for it.
        """
        if not argv or isinstance(argv, str):
            raise InvalidSetting("a command is a list: the program and its arguments", hint="['ls', '-l']")
        try:
            return await self._started(argv, (stdin, stdout, stderr), limits, as_environment(env), has_tty=has_tty)
        except OSError as e:
            raise no_process(e) from e

    async def _started(
        self, argv: Sequence[str], streams: tuple[Stream, ...], limits: Limits, env: Mapping[str, str], *, has_tty: bool
    ) -> JailedCommand:
        async with self._starting:
            await self._build()
        environment = {
            **{"HOME": "/tmp", "TMPDIR": "/tmp", "LANG": "C.UTF-8", "PATH": PATH},
            **(self._launch.egress.environment if self._launch.egress else {}),
            **self._environment,
            **env,
        }
        pipes = Pipes(*streams)
        try:
            body = await self._body(argv, environment, limits, pipes, has_tty=has_tty)
        except BaseException:
            pipes.close()
            raise
        command = JailedCommand(body, limits, "landlock" if self._zygote is None else "namespaces")
        self._running = {each for each in self._running if each.returncode is None} | {command}
        command.stdin, (command.stdout, command.stderr) = await pipes.connected()
        return command

    async def run(
        self,
        argv: Sequence[str],
        data: bytes = b"",
        *,
        limits: Limits = COMMAND_LIMITS,
        env: Mapping[str, str] | None = None,
    ) -> CommandResult:
        """Run a program to its end.

        Raises:
            InvalidSetting, SandboxUnavailable, SandboxCrashed: As `start`.
        """
        command = await self.start(argv, limits=limits, env=env)
        try:
            stdout, stderr = await command.communicate(data)
        except BaseException:
            await command.aclose()
            raise
        return CommandResult(
            exit_code=await command.wait(), stdout=stdout, stderr=stderr, limit=command.limit, tier=command.tier
        )

    async def aclose(self) -> None:
        """Kill everything that still runs; nothing is left when this returns. Legal twice."""
        await asyncio.gather(*(command.aclose() for command in self._running))
        self._running.clear()
        zygote, self._zygote = self._zygote, None
        if zygote is not None:
            await zygote.close()
        spawner, self._spawner = self._spawner, None
        if spawner is not None:
            await spawner.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await to_the_end(self.aclose())

    async def _body(
        self, argv: Sequence[str], environment: Mapping[str, str], limits: Limits, pipes: Pipes, *, has_tty: bool
    ) -> CommandBody:
        fds, pipes.theirs = pipes.theirs, []
        if self._zygote is not None:
            return await SealedCommand.started(
                self._zygote, limits, fds, self._launch.egress, argv=argv, environment=environment, has_tty=has_tty
            )
        assert self._spawner is not None
        return await self._spawner.started(limits, fds, argv=argv, environment=environment, has_tty=has_tty)

    async def _build(self) -> None:
        if (self._zygote is not None and self._zygote.is_alive) or (self._spawner and self._spawner.is_alive):
            return
        await self.aclose()
        if self._launch.egress is not None and self._tier == "landlock":
            raise SandboxUnavailable(
                "the landlock tier has no network to give a command", hint="leave allowed_domains out, or the tier"
            )
        if self._tier != "landlock":
            try:
                self._zygote = await Zygote.start(self._launch)
                return
            except NoRoom:
                raise  # no reason to hold it by less
            except (SandboxUnavailable, SandboxCrashed) as refused:
                if self._tier == "namespaces" or self._launch.egress is not None:
                    raise
                self.weaker_because = f"{refused.message}; {refused.hint}"
        from hatchway.sandboxes.jail.landlocked_command import CommandSpawner  # not where namespaces hold

        self._spawner = await CommandSpawner.start(self._launch)
        if self.weaker_because:
            _log.warning("the command is held by Landlock only: %s", self.weaker_because)


async def run_command(
    argv: Sequence[str],
    data: bytes = b"",
    *,
    limits: Limits = COMMAND_LIMITS,
    paths: PathRules | None = None,
    file_mounts: Iterable[FileMountInput] = (),
    env: Mapping[str, str] | None = None,
    allowed_domains: Iterable[AllowedDomainInput] = (),
    tier: Literal["namespaces", "landlock"] | None = None,
) -> CommandResult:
    """Run one program in a jail of its own, to its end.

    Raises:
        InvalidSetting, SandboxUnavailable, SandboxCrashed: As `CommandJail.start`.
    """
    async with CommandJail(
        tier=tier, file_mounts=file_mounts, paths=paths, env=env, allowed_domains=allowed_domains
    ) as jail:
        return await jail.run(argv, data, limits=limits)
