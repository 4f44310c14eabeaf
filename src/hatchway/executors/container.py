"""ContainerCodeExecutor: each program in a fresh locked-down container."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from hatchway.core.errors import InvalidSetting, SandboxUnavailable
from hatchway.core.limits import MIB, Limits
from hatchway.executors import archive
from hatchway.executors.container_run import ContainerEnd, ContainerRun
from hatchway.executors.execution import CodeExecutionInput, CodeExecutionResult
from hatchway.executors.executor import CodeExecutor, InvocationContext
from hatchway.executors.languages import ALIASES, language_id, unknown_language
from hatchway.executors.marked_stream import MarkedStream, StreamText
from hatchway.sandboxes.container import owner
from hatchway.sandboxes.container.engine import Engine
from hatchway.sandboxes.container.policy import DEFAULT_IMAGE, NOBODY, ContainerPolicy

STAGE = Path(__file__).with_name("stage.sh").read_text(encoding="utf-8")
TMPFS_BYTES = 64 * MIB
"""The whole of `/tmp`, held by the kernel."""
TAR_BYTES = TMPFS_BYTES + 8 * MIB
"""Kept of what a container hands out: the files, and a header for each."""
ENGINE_CODES = (125, 126, 127)
"""Exit codes by which a client says that the container did not run."""
ARGV = {"python": ("python3", "-"), "shell": ("sh", "-s"), "bash": ("bash", "-s"), "node": ("node", "-")}


@dataclass(frozen=True)
class ContainerCodeExecutor(CodeExecutor):
    """Runs each program in a fresh container that is removed at its end, with the code on its stdin.

    No network, a read-only root file system, a private `/tmp` of 64 MiB, 256 MiB of memory and no swap, one core, 128
    processes, uid 65534, no capabilities, no new privileges. What loosens it is a deliberate act.

    Files: the working directory is `/tmp/work`, in the container's own memory. Input files go in as a tar on stdin, and
    what the program makes or changes there comes back as a tar on stdout, behind its own output and once everything it
    started is dead. Nothing is stored on this machine, so nothing has to be removed, and it works with an engine
    elsewhere. The quota is the kernel's: `/tmp` holds 64 MiB and no more; of that, `limits` says how many files are
    taken. The image needs `sh` and `tar` for this; `collect_files=False` starts the program itself, without files.

    Every container has a name and is killed by it when its time is over. What a crashed process of this machine left
    behind is removed by the first call of the next one, or by `sweep`: containers carry their owner as a label.

    Raises:
        InvalidSetting: A setting that is no such setting, or extra arguments that undo what is always on.
    """

    image: str = DEFAULT_IMAGE
    """Must be there: nothing is pulled."""
    argv: tuple[str, ...] = ("python3", "-")
    """The command inside; it reads the program from stdin."""
    timeout: float | None = 30.0
    """Seconds one program may take, the container's start included; None for no limit."""
    memory: str = "256m"
    """Memory; swap is pinned to the same value, so there is none."""
    cpus: str = "1.0"
    """How many cores it may use."""
    pids_limit: int = 128
    """Processes and threads at one time."""
    user: str = NOBODY
    """`uid:gid` inside; never root by default."""
    drop_capabilities: bool = True
    """Drop all capabilities and forbid new privileges. Off is for debugging only."""
    runtime: str = ""
    """Another OCI runtime, such as `runsc`; empty for the engine's own."""
    extra_args: tuple[str, ...] = ()
    """More arguments of `run`, before the image."""
    engine: str = "docker"
    """`docker`, `podman` or `nerdctl`, or the path of its client."""
    collect_files: bool = True
    """Whether files go in and come out; off, the image needs nothing but the command."""
    limits: Limits = field(default_factory=Limits)
    """Of output and files; memory, time and processes have settings of their own."""
    error_retry_attempts: int = 2
    """Attempts in all when the engine fails."""
    languages: tuple[str, ...] = field(init=False, repr=False, default=())
    """The language ids it takes: that of `argv`."""

    def __post_init__(self) -> None:
        if self.error_retry_attempts < 1:
            raise InvalidSetting(f"error_retry_attempts is at least 1, not {self.error_retry_attempts}")
        if self.timeout is not None and not self.timeout > 0:
            raise InvalidSetting(f"timeout is a positive number of seconds or None, not {self.timeout!r}")
        if not self.argv or not self.argv[0] or any("\0" in arg for arg in self.argv):
            raise InvalidSetting("argv is the command inside, such as ('python3', '-')")
        object.__setattr__(self, "languages", _languages(self.argv))
        self._policy()  # refuses what is no such setting

    def with_timeout(self, seconds: float | None) -> ContainerCodeExecutor:
        """A copy whose programs may take so long."""
        return replace(self, timeout=seconds)

    def with_argv(self, argv: Sequence[str]) -> ContainerCodeExecutor:
        """A copy that runs another command inside; it must read the program from stdin."""
        return replace(self, argv=tuple(argv))

    def with_memory(self, memory: str) -> ContainerCodeExecutor:
        """A copy with so much memory, such as `"1g"`; there is no swap beside it."""
        return replace(self, memory=memory)

    def with_cpus(self, cpus: str) -> ContainerCodeExecutor:
        """A copy that may use so many cores, such as `"0.5"`."""
        return replace(self, cpus=cpus)

    def with_pids_limit(self, pids_limit: int) -> ContainerCodeExecutor:
        """A copy with so many processes and threads at one time."""
        return replace(self, pids_limit=pids_limit)

    def with_user(self, user: str) -> ContainerCodeExecutor:
        """A copy whose programs run as `uid:gid`."""
        return replace(self, user=user)

    def with_runtime(self, runtime: str) -> ContainerCodeExecutor:
        """A copy with another OCI runtime, such as `"runsc"`."""
        return replace(self, runtime=runtime)

    def with_engine(self, engine: str) -> ContainerCodeExecutor:
        """A copy for another engine: `"docker"`, `"podman"`, `"nerdctl"`."""
        return replace(self, engine=engine)

    def with_extra_args(self, args: Sequence[str]) -> ContainerCodeExecutor:
        """A copy with these arguments of `run` before the image.

        Raises:
            InvalidSetting: They undo an always-on flag, are decided by a setting, or are no flags.
        """
        return replace(self, extra_args=tuple(args))

    def build_run_args(self, name: str) -> list[str]:
        """What the engine's client is started with for a container of this name."""
        stage = ("sh", "-c", STAGE, "hatchway") if self.collect_files else ()
        return self._policy().run_args(name, [*stage, *self.argv], labels=owner.labels())

    async def execute_code(self, ctx: InvocationContext, input: CodeExecutionInput) -> CodeExecutionResult:
        """As the contract says.

        Raises:
            InvalidSetting: A language that `argv` does not run, or files while `collect_files` is off.
            SandboxUnavailable: No client, engine down, no permission, or the image or the command is missing.
            SandboxCrashed: The engine failed or died.
        """
        self._check(input)
        engine = Engine(self.engine)
        await engine.sweep_once()
        await engine.check_image(self.image)
        name, mark = owner.fresh_name(), secrets.token_hex(16)
        stdout = StreamText("stdout", self.limits.output_bytes, ctx.on_output)
        stderr = StreamText("stderr", self.limits.output_bytes, ctx.on_output)
        split = MarkedStream(mark.encode(), stdout, TAR_BYTES)
        run = ContainerRun(engine, name, self.build_run_args(name))
        end = await run.to_end(self._stdin(mark, input), split, stderr, self.timeout)
        told = split.finish()
        if end.is_timeout:
            return self._timed_out(stdout.text(), stderr.text())
        if told is None:
            return self._untold(engine, end, stdout.text(), stderr.text())
        if told[0] == "missing":
            raise SandboxUnavailable(
                f"there is no {self.argv[0]} in the image {self.image}", hint="another image, or with_argv([...])"
            )
        staged = {file.name: file.content for file in input.input_files}
        found = await asyncio.to_thread(archive.unpacked, told[1], staged, self.limits, is_cut=split.is_cut)
        return CodeExecutionResult(
            stdout=stdout.text(),
            stderr=_with_notes(stderr.text(), found.notes),
            output_files=tuple(found.files),
            exit_code=int(told[0]) if told[0].isdigit() else None,
        )

    async def sweep(self) -> list[str]:
        """Remove the containers of processes of this machine that are dead; their names.

        Raises:
            SandboxUnavailable: There is no engine to ask.
        """
        return await Engine(self.engine).sweep()

    def _policy(self) -> ContainerPolicy:
        return ContainerPolicy(
            engine=self.engine,
            image=self.image,
            memory=self.memory,
            cpus=self.cpus,
            pids_limit=self.pids_limit,
            user=self.user,
            drop_capabilities=self.drop_capabilities,
            runtime=self.runtime,
            extra_args=self.extra_args,
        )

    def _check(self, input: CodeExecutionInput) -> None:
        if language_id(input.language) not in self.languages:
            raise unknown_language(input.language, self.languages)
        if input.input_files and not self.collect_files:
            raise InvalidSetting("files cannot be staged while collect_files is off")

    def _stdin(self, mark: str, input: CodeExecutionInput) -> bytes:
        program = input.code.encode("utf-8", "replace")
        if not self.collect_files:
            return program
        if not input.input_files:
            return f"{mark} 0\n".encode() + program
        return f"{mark} 1\n".encode() + archive.packed(input.input_files, program)

    def _timed_out(self, stdout: str, stderr: str) -> CodeExecutionResult:
        note = f"timed out after {self.timeout:g} s: killed, with everything it had started"
        return CodeExecutionResult(stdout=stdout, stderr=_with_notes(stderr, [note]), timed_out=True)

    def _untold(self, engine: Engine, end: ContainerEnd, stdout: str, stderr: str) -> CodeExecutionResult:
        """Nobody handed out an end: none was asked for, the kernel took the first process, or the engine failed."""
        if end.client_code in ENGINE_CODES and (self.collect_files or stderr.startswith(f"{engine.name}:")):
            raise engine.meaning(stderr, self.image)
        return CodeExecutionResult(stdout=stdout, stderr=stderr, exit_code=end.client_code)


def _languages(argv: Sequence[str]) -> tuple[str, ...]:
    """The languages a command runs, by its name; the name itself when it is none that is known."""
    program = argv[0].rpartition("/")[2]
    known = tuple(language for language, row in ARGV.items() if row[0] == program)
    return known or (ALIASES.get(program, program.rstrip("0123456789.")),)


def _with_notes(stderr: str, notes: Sequence[str]) -> str:
    """What the program said, then what the executor has to say, a line each."""
    if not notes:
        return stderr
    end = "" if not stderr or stderr.endswith("\n") else "\n"
    return stderr + end + "".join(f"{note}\n" for note in notes)
