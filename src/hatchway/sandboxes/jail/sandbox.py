"""JailSandbox: full CPython at native speed, sealed by the Linux kernel, a fresh warm process per action."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, Literal

from hatchway.core.constraints import CodeConstraints
from hatchway.core.errors import HatchwayError, SandboxUnavailable
from hatchway.core.grants import AllowedDomainInput, FileMountInput, as_environment, as_file_mounts, as_workspace
from hatchway.core.limits import Limits
from hatchway.core.network import NetworkRules
from hatchway.core.paths import PathRules
from hatchway.core.results import Tier
from hatchway.core.sandbox import Availability
from hatchway.sandboxes.eviction import Sessions
from hatchway.sandboxes.guest_execution import GuestExecution
from hatchway.sandboxes.guest_sandbox import GuestSandbox
from hatchway.sandboxes.ipython import MODULE, is_wanted
from hatchway.sandboxes.jail.egress import PROXIED, Egress
from hatchway.sandboxes.jail.interpreter import COMMANDS, interpreter_files, with_commands
from hatchway.sandboxes.jail.jailed_process import JailedProcess
from hatchway.sandboxes.jail.landlock_checks import check_path_rules
from hatchway.sandboxes.jail.launch import Launch
from hatchway.sandboxes.jail.pool import Pool
from hatchway.sandboxes.jail.walls import Walls, last_decided
from hatchway.sandboxes.packages.environment import environment_of
from hatchway.sandboxes.packages.existing import site_packages
from hatchway.sandboxes.packages.requirements import Packages
from hatchway.sandboxes.probing import added, probed
from hatchway.sandboxes.quota import Quota
from hatchway.sandboxes.shown_files import PLACES
from hatchway.sandboxes.starting import to_the_end

SPARES = 4
OTHERS = 4
"""Pools of other hash seeds kept at a time: recordings of other users come with theirs."""


class JailSandbox(GuestSandbox[JailedProcess]):
    """Full CPython behind the kernel's walls. Each execution gets a fresh process; a session keeps one.

    Args:
        tier: `"namespaces"` or `"landlock"` forces that wall; None takes the stronger one that works here.
        workspace_root: A directory shown read-only as `/input`; also turns `/output` on.
        file_mounts: Files and directories shown read-only; relative paths land under `/input`. Turns `/output` on.
        paths: Places of the host shown at their own paths, to read or to change, and what in them (and in the
            workspace and the mounts) is denied by name.
        python: Another interpreter (at least 3.9); default is this one. Of a virtual or conda environment the packages
            are seen as well, of a bare interpreter only the standard library.
        packages: What the code may import beside the standard library, such as `["pandas==2.*"]`, or a `Packages`;
            built once by uv before the first action, then cached.
        env: Environment variables the code is given; default none.
        ipython: True runs the actions of sessions IPython's way (`!cmd`, `%magics`, `_`), False never does; None does
            so where the packages or the environment have IPython. The system's commands are in sight of the code then.
        session_idle_seconds: A session without an action for so long is evicted; None never does.
        max_sessions: Sessions open at one time; past it the one that was idle longest is evicted. None sets no limit.
        spares: Warm children kept ready.
        allowed_domains: What the code may reach, by `fetch` and, behind namespaces, by any HTTP client through a proxy.
        denied_domains: What it may not reach, whatever is allowed.

    Raises:
        InvalidSetting: A grant cannot be given as it is: no such file, no such domain.
        MissingExtra: Domains were allowed and the extra `network` is not installed.
    """

    name: ClassVar[str] = "jail"

    def __init__(
        self,
        *,
        tier: Literal["namespaces", "landlock"] | None = None,
        workspace_root: str | Path | None = None,
        file_mounts: Iterable[FileMountInput] = (),
        paths: PathRules | None = None,
        python: str | Path | None = None,
        packages: Packages | Iterable[str] = (),
        env: Mapping[str, str] | None = None,
        ipython: bool | None = None,
        session_idle_seconds: float | None = None,
        max_sessions: int | None = None,
        spares: int = SPARES,
        allowed_domains: Iterable[AllowedDomainInput] = (),
        denied_domains: Iterable[str] = (),
    ) -> None:
        super().__init__(Sessions(idle_seconds=session_idle_seconds, most=max_sessions))
        self.network = NetworkRules.of(allowed_domains, denied_domains)
        interpreter = interpreter_files(None if python is None else os.fspath(python))
        self._environment = environment_of(
            packages,
            executable=interpreter.executable,
            site_folders=() if python is None else site_packages(os.fspath(python)),
        )
        self._ipython = ipython
        has_commands = ipython is not False and (ipython or self._environment.may_have("ipython", MODULE))
        self._launch = Launch(
            interpreter=with_commands(interpreter) if has_commands else interpreter,
            packages=self._environment.folders,
            workspace=as_workspace(workspace_root),
            mounts=as_file_mounts(file_mounts),
            paths=paths or PathRules(),
            environment={**({"PATH": COMMANDS} if has_commands else {}), **as_environment(env)},
            egress=Egress(self.network) if self.network.allowed and tier != "landlock" else None,
        )
        self._walls = Walls(self._launch, tier)
        self._pool = Pool(self._walls, spares)
        self._others: dict[str, Pool] = {}

    @property
    def tier(self) -> Tier:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The wall that holds; before the first action the one that was forced, or that other jails here get."""
        return self._walls.tier or last_decided() or self.probe().tier or "landlock"

    @property
    def constraints(self) -> CodeConstraints:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Which Python it runs; the landlock tier has no sockets, whatever was granted."""
        has_sockets = self._launch.egress is not None and self._walls.tier != "landlock"
        return CodeConstraints(
            network=has_sockets,
            packages=self._environment.names,
            displays=True,
            additional_instructions="\n".join(
                [*([PROXIED] if has_sockets else []), *([PLACES] if self._launch.has_files else [])]
            ),
        )

    @property
    def hash_seed(self) -> int:
        """`PYTHONHASHSEED` of every interpreter behind namespaces."""
        return self._launch.hash_seed

    @property
    def weaker_because(self) -> str:
        """Why the wall is not the strongest one; empty when it is, or when it was forced."""
        return self._walls.weaker_because

    @property
    def facts(self) -> Mapping[str, str]:
        """As the contract says."""
        return {
            "python": self._launch.interpreter.version,
            "hash_seed": str(self._launch.hash_seed),
            "packages": ", ".join(self._environment.names),
            "ipython": str(self._ipython),
        }

    async def aclose(self) -> None:
        """As the contract says, also for a caller that is cancelled. The sandbox can be used again afterwards."""
        await to_the_end(self._closed())

    async def _closed(self) -> None:
        await super().aclose()
        await self._pool.close()
        while self._others:
            await self._others.popitem()[1].close()

    @classmethod
    def probe(cls) -> Availability:
        """Runs `1 + 1` in a jail."""
        if sys.platform != "linux":
            return Availability(
                state="installed_but_unusable", reason="the jail needs Linux", hint="use sandbox='monty'"
            )
        return probed(lambda: _probe(cls))

    async def _take(self, limits: Limits, facts: Mapping[str, str]) -> JailedProcess:
        if not self._environment.is_ready:
            await self._environment.ensure()
        return await (await self._pool_of(facts.get("hash_seed", ""))).take(Quota.of(limits))

    async def _pool_of(self, hash_seed: str) -> Pool:
        """The pool, or one whose interpreters have the hash seed of a recording made elsewhere."""
        if not hash_seed.isdigit() or int(hash_seed) == self._launch.hash_seed:
            return self._pool
        if hash_seed not in self._others:
            while len(self._others) >= OTHERS:
                await self._others.pop(next(iter(self._others))).close()
            walls = Walls(replace(self._launch, hash_seed=int(hash_seed)), self._walls.tier)
            self._others[hash_seed] = Pool(walls, 0)
        return self._others[hash_seed]

    def _wants_ipython(self) -> bool:
        return is_wanted(self._ipython, is_there=self._environment.has_module(MODULE))

    def _connect(self, process: JailedProcess, execution: GuestExecution) -> None:
        if process.gateway is not None:
            process.gateway.serve_for(execution)


async def _probe(cls: type[JailSandbox]) -> Availability:
    try:
        async with cls(spares=0) as sandbox:
            result = await added(sandbox)
    except HatchwayError as e:
        return Availability(state="installed_but_unusable", reason=e.message, hint=e.hint)
    return Availability(
        state="usable",
        tier=result.tier,
        reason="; ".join(filter(None, (sandbox.weaker_because, _ruleless(result.tier)))),
    )


def _ruleless(tier: Tier | None) -> str:
    """Why nothing can be denied by name here, which an agent's jail must; empty where it can."""
    try:
        if tier == "landlock":
            check_path_rules()
    except SandboxUnavailable as e:
        return f"{e.message}; {e.hint}"
    return ""
