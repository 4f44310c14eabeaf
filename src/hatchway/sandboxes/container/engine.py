"""The engine: its client's command line, what its complaints mean, and how containers are ended."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import PurePath

from hatchway.core.errors import HatchwayError, SandboxCrashed, SandboxUnavailable
from hatchway.sandboxes.container.engines import flavor_of
from hatchway.sandboxes.container.owner import OWNER_LABEL, is_orphan

ANSWER_SECONDS = 30.0
"""An engine that has not answered a question after this is as good as down."""
KILL_SECONDS = 5.0
CREATE_SECONDS = 2.0
"""So long after its client was killed an engine may still create the container it was asked for."""

_seen_images: set[tuple[str, ...]] = set()
_swept: set[tuple[str, ...]] = set()


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command of the client gave."""

    code: int
    stdout: str
    stderr: str


class Engine:
    """A container engine, spoken to by its command line.

    Args:
        name: `docker`, `podman` or `nerdctl`, or the path of its client.

    Raises:
        InvalidSetting: No such engine is known.
    """

    def __init__(self, name: str = "docker") -> None:
        self.name = name
        self._flavor = flavor_of(name)

    def client(self) -> str:
        """The path of its client.

        Raises:
            SandboxUnavailable: There is none.
        """
        found = shutil.which(self.name)
        if found is None:
            raise SandboxUnavailable(
                f"there is no {self.name} command on this machine",
                hint=f"install {PurePath(self.name).name}, or name another engine: docker, podman, nerdctl",
            )
        return found

    async def ask(self, *args: str, seconds: float = ANSWER_SECONDS) -> Answer:
        """Run a command of the client to its end.

        Raises:
            SandboxUnavailable: There is no client, or the engine does not answer.
        """
        process = await asyncio.create_subprocess_exec(
            self.client(), *args,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        try:
            async with asyncio.timeout(seconds):
                out, err = await process.communicate()
        except TimeoutError:
            raise self._down(f"it has not answered for {seconds:g} s") from None
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        return Answer(process.returncode or 0, out.decode("utf-8", "replace"), err.decode("utf-8", "replace"))

    async def check_image(self, image: str) -> None:
        """Whether the image is there; asked once, a later absence is told by the run.

        Raises:
            SandboxUnavailable: It is not, or there is no engine to ask.
        """
        key = (*self._key(), image)
        if key in _seen_images:
            return
        answer = await self.ask("image", "inspect", "--format={{.Id}}", image)
        if answer.code:
            raise self.meaning(answer.stderr, image)
        _seen_images.add(key)

    async def sweep_once(self) -> None:
        """Sweep, if this process has not yet; what an earlier one left is gone before we add to it."""
        if self._key() not in _swept:
            _swept.add(self._key())
            await self.sweep()

    async def sweep(self) -> list[str]:
        """Remove the containers whose owner is dead; their names.

        Raises:
            SandboxUnavailable: There is no engine to ask.
        """
        shown = '{{.Names}} {{.Label "' + OWNER_LABEL + '"}}'
        answer = await self.ask("ps", "--all", f"--filter=label={OWNER_LABEL}", f"--format={shown}")
        if answer.code:
            raise self.meaning(answer.stderr)
        rows = [line.split() for line in answer.stdout.splitlines()]
        orphans = [row[0] for row in rows if len(row) == 2 and is_orphan(row[1])]
        if orphans:
            await self.ask("rm", "--force", "--volumes", *orphans)
        return orphans

    async def kill(self, name: str) -> bool:
        """Kill a container; whether there was one. With the engine gone nobody can, and the sweep finds it later."""
        try:
            return (await self.ask("kill", name, seconds=KILL_SECONDS)).code == 0
        except SandboxUnavailable:
            return False

    async def remove(self, name: str, *, may_come: bool) -> None:
        """Remove a container whose client is dead.

        Args:
            name: Its name.
            may_come: The client died so early that the engine may only be about to create it.
        """
        until = asyncio.get_running_loop().time() + (CREATE_SECONDS if may_come else 0.0)
        while True:
            try:
                answer = await self.ask("rm", "--force", "--volumes", name, seconds=KILL_SECONDS)
            except SandboxUnavailable:
                return
            found = answer.code == 0 and "No such" not in answer.stderr and name in answer.stdout
            if found or asyncio.get_running_loop().time() >= until:
                return
            await asyncio.sleep(0.2)

    def meaning(self, complaint: str, image: str = "") -> HatchwayError:
        """The error behind what the client wrote to stderr."""
        said = complaint.lower()
        if "permission denied" in said and ("socket" in said or "connect" in said):
            return SandboxUnavailable(
                f"this user may not use {self.name}", hint='sudo usermod -aG docker "$USER", then log in again'
            )
        if any(word in said for word in ("cannot connect", "is the docker daemon running", "connection refused")):
            return self._down("it is not running")
        if image and any(word in said for word in ("no such image", "unable to find image", "image not known")):
            _seen_images.discard((*self._key(), image))
            return SandboxUnavailable(f"the image {image} is not on this machine", hint=f"{self.name} pull {image}")
        if image and "executable file not found" in said:
            return SandboxUnavailable(
                f"the image {image} has not the command it is started with", hint="use one that has, or another command"
            )
        if "unexpected eof" in said or "error waiting for container" in said or "connection reset" in said:
            return SandboxCrashed(f"{self.name} died while the code ran", hint=self._flavor.start)
        lines = [line.strip() for line in complaint.splitlines() if line.strip() and "--help" not in line]
        told = lines[0][:500] if lines else "it says nothing"
        return SandboxCrashed(f"{self.name} did not run the container: {told}", hint="hatchway doctor")

    def _down(self, why: str) -> SandboxUnavailable:
        return SandboxUnavailable(f"{self.name} cannot be used: {why}", hint=self._flavor.start)

    def _key(self) -> tuple[str, ...]:
        """Which engine the client speaks to."""
        return (self.name, *(os.environ.get(name, "") for name in ("DOCKER_HOST", "DOCKER_CONTEXT", "CONTAINER_HOST")))
