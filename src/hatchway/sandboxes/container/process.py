"""A container with a guest in it, for one action or for the actions of one session."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Callable
from typing import Any

from hatchway.core.errors import SandboxCrashed
from hatchway.core.limits import Limits
from hatchway.sandboxes.container import boot, owner
from hatchway.sandboxes.container.engine import Engine
from hatchway.sandboxes.container.files import ReceivedFiles
from hatchway.sandboxes.container.link import Link
from hatchway.sandboxes.container.policy import ContainerPolicy
from hatchway.sandboxes.guest_process import Death
from hatchway.sandboxes.quota import Quota

START_SECONDS = 60.0
"""A container whose guest is not there after this never will be."""
GRACE_SECONDS = 0.25
"""A relay that has not ended its container after this is helped by the engine."""
SENDING_SECONDS = 30.0
"""The same, where it has files to send first."""
STUCK_SECONDS = 4.0
"""A client that has not ended after this is killed; its container is removed by name."""


class ContainerProcess:
    """A container, as an execution sees it. Bound to the loop it was made on.

    Args:
        engine: Who runs it.
        policy: What it may do.
        quota: The limits it is born with.
    """

    def __init__(self, engine: Engine, policy: ContainerPolicy, quota: Quota, *, has_output: bool) -> None:
        self.quota = quota
        self.name = owner.fresh_name()
        self._files = ReceivedFiles(self._ask_for_files)
        self.output = self._files if has_output else None
        self._engine, self._policy = engine, policy
        self._loop = asyncio.get_running_loop()
        self._link = Link(self._on_frame, self.kill)
        self.transport = self._link.transport
        self.stdout_fd, self.stderr_fd = self._link.stdout_fd, self._link.stderr_fd
        self._client: asyncio.subprocess.Process | None = None
        self._ready: asyncio.Future[None] = self._loop.create_future()
        self._gone: asyncio.Future[None] = self._loop.create_future()
        self._tasks: set[asyncio.Task[None]] = set()
        self._helper: asyncio.TimerHandle | None = None
        self._told: dict[str, Any] = {}
        self._limits = Limits()
        self._death: Death | None = None
        self._on_death: Callable[[Death], None] | None = None
        self._cpu, self._peak = 0.0, 0
        self._is_killed = False

    def __del__(self) -> None:
        if self._death is None:
            self._link.close()  # its loop is gone and nobody closed the sandbox; without a host the relay ends

    async def start(self) -> None:
        """Run the container until its guest is there. A caller that is cancelled leaves nothing behind.

        Raises:
            SandboxUnavailable: There is no client, no engine, no permission or no image.
            SandboxCrashed: The container ended, or did not begin.
        """
        try:
            await self._start_client()
            async with asyncio.timeout(START_SECONDS):
                await asyncio.wait({self._ready, self._gone}, return_when=asyncio.FIRST_COMPLETED)
            if not self._ready.done():
                raise self._engine.meaning(self._link.complaint.decode("utf-8", "replace"), self._policy.image)
        except BaseException as e:
            await asyncio.shield(self._give_up())
            if isinstance(e, TimeoutError):
                raise SandboxCrashed(f"no guest after {START_SECONDS:g} s in {self._policy.image}") from None
            raise

    @property
    def is_dead(self) -> bool:
        """Whether it takes no more actions."""
        return self._death is not None or self._is_killed

    @property
    def is_gone(self) -> bool:
        """Whether the container is removed."""
        return self._death is not None

    @property
    def is_stranded(self) -> bool:
        """Whether it belongs to a loop that was closed."""
        return self._loop.is_closed()

    def watch(self, limits: Limits, on_death: Callable[[Death], None]) -> None:
        """As `GuestProcess` says. The kernel holds the container to its limits from birth."""
        self._limits, self._on_death = limits, on_death
        if self._death is not None:
            self._loop.call_soon(on_death, self._death)

    def kill(self) -> None:
        """As `GuestProcess` says: the relay does it at once, and if it does not, the engine."""
        self._kill(GRACE_SECONDS)

    def _kill(self, patience: float) -> None:
        if self.is_dead:
            return
        self._is_killed = True
        self._link.send(b"K", b"" if self.output is None else json.dumps(self._files.wanted(self._limits)).encode())
        self._helper = self._loop.call_later(patience, self._do, self._kill_by_engine)

    def retire(self) -> None:
        """As `GuestProcess` says: the engine would take the files away that the relay is sending."""
        self._kill(GRACE_SECONDS if self.output is None else SENDING_SECONDS)

    def has_ended(self) -> bool:
        """As `GuestProcess` says: who runs the container tells its end."""
        return False

    async def wait_gone(self) -> None:
        """Until the container is removed."""
        if not self.is_stranded:
            await asyncio.shield(self._gone)

    def cpu_seconds(self) -> float:
        """As `GuestProcess` says; as of the last look, which is at most a second ago while the code burns."""
        return self._cpu

    def peak_memory(self) -> int:
        """As `GuestProcess` says."""
        return self._peak

    async def _start_client(self) -> None:
        args = self._policy.run_args(self.name, boot.ARGV, labels=owner.labels())
        link = self._link
        self._client = await asyncio.create_subprocess_exec(
            self._engine.client(), *args,
            stdin=link.client_stdin, stdout=link.client_stdout, stderr=link.client_stderr, start_new_session=True,
        )  # fmt: skip
        link.open()
        link.send_raw(boot.program())
        self._do(self._await_end)

    async def _await_end(self) -> None:
        assert self._client is not None
        try:
            await self._client.wait()
            await self._link.finish()
        finally:
            self._die(self._death_of())  # also when the loop ends: others wait for this

    async def _kill_by_engine(self) -> None:
        await self._engine.kill(self.name)
        await asyncio.sleep(STUCK_SECONDS)
        if self._death is None and self._client is not None and self._client.returncode is None:
            self._client.kill()
            await self._engine.remove(self.name, may_come=not self._ready.done())

    async def _give_up(self) -> None:
        """The start failed or was cancelled: end the client, and the container should there be one."""
        if self._client is None:
            self._die(Death(is_crash=True))
            return
        if self._client.returncode is None:
            self._client.kill()
            await self._engine.remove(self.name, may_come=not self._ready.done())
        await self._gone

    def _ask_for_files(self) -> bool:
        if not self.is_dead:
            self._link.send(b"F", json.dumps(self._files.wanted(self._limits)).encode())
        return not self.is_dead

    def _on_frame(self, kind: bytes, body: bytes) -> None:
        match kind:
            case b"R":
                if not self._ready.done():
                    self._ready.set_result(None)
            case b"U":
                self._take_usage(json.loads(body))
            case b"X":
                self._told = json.loads(body)
                self._take_usage(self._told)
            case b"F" | b"D" | b"Z":
                self._files.take(kind, body)
            case _:
                raise ValueError("no such frame")

    def _take_usage(self, told: dict[str, Any]) -> None:
        self._cpu = max(self._cpu, float(told["cpu"]))
        self._peak = max(self._peak, int(told["peak"]))

    def _death_of(self) -> Death:
        status = self._told.get("status")
        if self._told.get("oom") or (
            not self._told and self._client_code == 128 + signal.SIGKILL and self._is_at_limit
        ):
            return Death(limit="memory_bytes")
        if not isinstance(status, int):
            return Death() if self._is_killed else Death(is_crash=True)
        if status >= 0:
            return Death(exit_code=status)
        if -status == signal.SIGXCPU or (-status == signal.SIGKILL and self._cpu > self.quota.cpu_seconds):
            return Death(limit="cpu_seconds")
        names = {s.value: s.name for s in signal.Signals}
        return Death(signal=names.get(-status, f"number {-status}"))

    @property
    def _client_code(self) -> int | None:
        return self._client.returncode if self._client is not None else None

    @property
    def _is_at_limit(self) -> bool:
        """Nobody told how it ended, but it had all the memory it may have: the kernel took the relay too."""
        return not self._is_killed and self._peak >= self.quota.memory_bytes

    def _die(self, death: Death) -> None:
        if self._death is not None:
            return
        self._death = death
        if self._helper is not None:
            self._helper.cancel()
        if self._on_death is not None:
            self._on_death(death)
        self._files.end()
        self._link.close()
        if not self._gone.done():
            self._gone.set_result(None)

    def _do(self, work: Callable[[], Any]) -> None:
        task = self._loop.create_task(work())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
