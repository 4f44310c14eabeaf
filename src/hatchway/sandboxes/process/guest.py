"""A guest below its supervisor: the process of a guest, with its channel, its pipes and the files it leaves."""

from __future__ import annotations

import os

from hatchway.core.errors import SandboxUnavailable
from hatchway.sandboxes.output_folder import OutputFolder
from hatchway.sandboxes.process.spawner import Spawner
from hatchway.sandboxes.process.supervised import DEAF_SECONDS, Supervised, no_pipes
from hatchway.transports.stdio import StdinStdoutTransport

BUSY_SECONDS = 5.0
"""How long a supervisor may take to kill where files are at stake: on a busy machine it may wait for its turn."""


class SupervisedProcess(Supervised):
    """A guest's process.

    Args:
        spawner: Who forks it.

    Raises:
        SandboxUnavailable: There are no descriptors left.
    """

    def __init__(self, spawner: Spawner) -> None:
        self.output: OutputFolder | None = None
        (read_fd, write_fd, self.stdout_fd, self.stderr_fd), theirs = _descriptors()
        self.transport = StdinStdoutTransport()
        self.transport.adopt(read_fd, write_fd)
        try:
            super().__init__(spawner, theirs)
        except SandboxUnavailable:
            self.transport.close()
            for fd in (self.stdout_fd, self.stderr_fd):
                os.close(fd)
            raise

    def keep_output(self, folder: str) -> None:
        """Let the files in this folder below its own be read when it is dead; start it with `keeps_folder`."""
        self.output = OutputFolder(os.open(folder, os.O_RDONLY | os.O_DIRECTORY), on_close=self._release)

    def retire(self) -> None:
        """As `GuestProcess` says: the files would be gone with a supervisor that the spawner has to kill."""
        self._kill(BUSY_SECONDS if self.output is not None and self.output.fd >= 0 else DEAF_SECONDS)

    async def wait_gone(self) -> None:
        """Until everything of it is dead and, once its files were taken, its folder is removed."""
        if self.output is not None and self.output.fd >= 0:
            await self.wait_dead()
        else:
            await super().wait_gone()

    async def discard(self) -> None:
        """Kill it and leave nothing of it, files that nobody took included."""
        self.kill()
        await self.wait_gone()
        if self.output is not None:
            self.output.close()
            await self.wait_gone()

    def close(self) -> None:
        """As `Supervised.close`."""
        if not self._is_closed:
            self.transport.close()
            for fd in (self.stdout_fd, self.stderr_fd):
                os.close(fd)
        super().close()
        if self.output is not None:
            self.output.close()

    def _release(self) -> None:
        if not self.is_closed:
            self._order(b"remove\n")


def _descriptors() -> tuple[list[int], list[int]]:
    """Channel in and out, stdout and stderr, ours and the guest's."""
    opened: list[int] = []
    try:
        for _ in range(4):
            opened += os.pipe()
    except OSError as e:
        for fd in opened:
            os.close(fd)
        raise no_pipes(e) from None
    in_read, in_write, out_read, out_write, *printed = opened
    return [in_read, out_write, printed[0], printed[2]], [out_read, in_write, printed[1], printed[3]]
