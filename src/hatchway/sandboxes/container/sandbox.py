"""ContainerSandbox: the Python of an image, in a locked-down container per action, with tool calls."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import ClassVar

from hatchway.core.constraints import CodeConstraints
from hatchway.core.errors import HatchwayError, InvalidSetting
from hatchway.core.grants import INPUT_ROOT, AllowedDomainInput, FileMount, FileMountInput, as_file_mounts, as_workspace
from hatchway.core.limits import Limits
from hatchway.core.network import NetworkRules
from hatchway.core.results import Tier
from hatchway.core.sandbox import Availability
from hatchway.core.signing import default_hash_seed
from hatchway.sandboxes.container.engine import Engine
from hatchway.sandboxes.container.policy import DEFAULT_IMAGE, NOBODY, ContainerPolicy
from hatchway.sandboxes.container.pool import HASH_SEED, Pool
from hatchway.sandboxes.container.process import ContainerProcess
from hatchway.sandboxes.eviction import Sessions
from hatchway.sandboxes.guest_sandbox import GuestSandbox
from hatchway.sandboxes.probing import added, probed
from hatchway.sandboxes.quota import Quota
from hatchway.sandboxes.shown_files import PLACES, check_there

SPARES = 2
PROBE_SECONDS = 20.0
PACKAGES = "What the container image {} has installed can be imported."
_TAKEN = ("/dev", "/proc", "/sys", "/tmp", "/output")


class ContainerSandbox(GuestSandbox[ContainerProcess]):
    """The Python of an image behind a container engine. Each execution gets a fresh container; a session keeps one.

    No network, a read-only root, no capabilities, no new privileges, nobody's uid; the engine's seccomp filter and the
    jail's, which is narrower.
    Calls travel over the container's stdin and stdout, which the code never has. `/tmp` and, where files are granted,
    `/output` are held in memory, at most `Limits.disk_bytes` each. Nothing is pulled: the image must be there.

    Args:
        image: An image with Python 3.9 or later as `python3`; its packages can be imported.
        engine: `docker`, `podman` or `nerdctl`, or the path of its client.
        workspace_root: A directory of the engine's machine, shown read-only as `/input`; also turns `/output` on.
        file_mounts: Files and directories shown read-only; relative paths land under `/input`. Turns `/output` on.
            The container's user must be able to read them: to the kernel it is a stranger.
        env: Environment variables the code is given beside those of the image.
        user: `uid:gid` inside.
        cpus: How many cores a container may use.
        runtime: Another OCI runtime, such as `runsc`.
        session_idle_seconds: A session without an action for so long is evicted; None never does.
        max_sessions: Sessions open at one time; past it the one that was idle longest is evicted. None sets no limit.
        spares: Started containers kept ready; each takes some 30 MB.
        allowed_domains: What the code may reach by `fetch`; nothing by default. The container itself has no network.
        denied_domains: What it may not reach, whatever is allowed.

    Raises:
        InvalidSetting: A setting that is no such setting, a grant that does not exist.
    """

    name: ClassVar[str] = "container"

    def __init__(
        self,
        image: str = DEFAULT_IMAGE,
        *,
        engine: str = "docker",
        workspace_root: str | Path | None = None,
        file_mounts: Iterable[FileMountInput] = (),
        env: Mapping[str, str] | None = None,
        user: str = NOBODY,
        cpus: str = "1.0",
        runtime: str = "",
        session_idle_seconds: float | None = None,
        max_sessions: int | None = None,
        spares: int = SPARES,
        allowed_domains: Iterable[AllowedDomainInput] = (),
        denied_domains: Iterable[str] = (),
    ) -> None:
        super().__init__(Sessions(idle_seconds=session_idle_seconds, most=max_sessions))
        self.network = NetworkRules.of(allowed_domains, denied_domains)
        self._mounts = mounts = _mounts(workspace_root, file_mounts)
        self._image, self._hash_seed = image, str(default_hash_seed())
        environment = {"HOME": "/tmp", "TMPDIR": "/tmp", "LANG": "C.UTF-8", **(env or {}), HASH_SEED: self._hash_seed}
        policy = ContainerPolicy(
            engine=engine, image=image, cpus=cpus, user=user, runtime=runtime, mounts=mounts, environment=environment
        )
        self.tier: Tier = "container"
        told = f"{PACKAGES.format(image)}\n{PLACES}" if mounts else PACKAGES.format(image)
        self.constraints = CodeConstraints(displays=True, additional_instructions=told)
        self._pool = Pool(Engine(engine), policy, spares, has_output=bool(mounts))

    @property
    def facts(self) -> Mapping[str, str]:
        """As the contract says."""
        return {"image": self._image, "hash_seed": self._hash_seed}

    async def prestart(self, limits: Limits | None = None) -> None:
        """Have the spares started before the first action needs one.

        Raises:
            SandboxUnavailable, SandboxCrashed: As `execute`.
        """
        await self._pool.fill(Quota.of(limits or Limits()))

    async def aclose(self) -> None:
        """As the contract says. The sandbox can be used again afterwards."""
        await super().aclose()
        await self._pool.close()

    @classmethod
    def probe(cls) -> Availability:
        """Runs `1 + 1` in a container of the default image."""
        return probed(lambda: _probe(cls))

    async def _take(self, limits: Limits, facts: Mapping[str, str]) -> ContainerProcess:
        for mount in self._mounts:
            check_there(Path(mount.host_path))
        return await self._pool.take(Quota.of(limits), facts.get("hash_seed", ""))


def _mounts(workspace: str | Path | None, mounts: Iterable[FileMountInput]) -> tuple[FileMount, ...]:
    """What is granted, the workspace first so that the others are shown over it."""
    granted = as_file_mounts(mounts)
    if (folder := as_workspace(workspace)) is not None:
        granted = (FileMount(folder, str(INPUT_ROOT)), *granted)
    for mount in granted:
        if any(mount.mount_path == taken or mount.mount_path.startswith(taken + "/") for taken in _TAKEN):
            raise InvalidSetting(f"nothing can be mounted at {mount.mount_path}: the container has its own there")
    return granted


async def _probe(cls: type[ContainerSandbox]) -> Availability:
    try:
        async with asyncio.timeout(PROBE_SECONDS), cls(spares=0) as sandbox:
            await added(sandbox)
    except HatchwayError as e:
        state = "missing" if "there is no docker command" in e.message else "installed_but_unusable"
        return Availability(state=state, reason=e.message, hint=e.hint)
    except TimeoutError:
        return Availability(
            state="installed_but_unusable",
            reason=f"the engine has not run a container within {PROBE_SECONDS:g} s",
            hint="see what it does: docker info",
        )
    return Availability(state="usable", tier="container")
