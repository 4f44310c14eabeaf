"""HyperlightSandbox: code in a micro-VM of Hyperlight's, on the `hyperlight-sandbox` package."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar

from hatchway.core.calls import as_signature
from hatchway.core.constraints import CodeConstraints
from hatchway.core.errors import InvalidSetting, MissingExtra, SandboxUnavailable
from hatchway.core.grants import (
    INPUT_ROOT,
    AllowedDomainInput,
    FileMount,
    FileMountInput,
    as_allowed_domains,
    as_file_mounts,
)
from hatchway.core.limits import DEFAULT_LIMITS, Limits
from hatchway.core.results import Tier
from hatchway.core.sandbox import Availability, CodeExecution, CodeSandbox, CodeSession, Functions, OnOutput
from hatchway.core.values import to_wire
from hatchway.sandboxes.hyperlight import hypervisor
from hatchway.sandboxes.hyperlight.execution import HyperlightExecution
from hatchway.sandboxes.hyperlight.kept import KeptVm

SPARES = 2
"""Micro-VMs kept for the next actions."""


class HyperlightSandbox(CodeSandbox):
    """Each action runs in a micro-VM that is put back to its first snapshot before the next; actions share nothing.

    No state is kept between actions. Where the guest's Python has no event loop, calls are made one at a time.

    Args:
        backend: As the package has them: `"wasm"`.
        module: The guest's module.
        module_path: A compiled guest, in place of the module.
        heap_size: Memory of the guest, such as `"64Mi"`; None is the package's default. It is the memory limit.
        file_mounts: Shown below `/input`; one folder at `/input` itself is shown in place, others are copied once.
        allowed_domains: What the guest's own network may reach, with methods.

    Raises:
        MissingExtra: The package is not installed.
        SandboxUnavailable: No hypervisor here can be used.
        InvalidSetting: A mount does not exist, or is not below `/input`.
    """

    name: ClassVar[str] = "hyperlight"

    def __init__(
        self,
        *,
        backend: str = "wasm",
        module: str | None = "python_guest.path",
        module_path: str | None = None,
        heap_size: str | None = None,
        file_mounts: Iterable[FileMountInput] = (),
        allowed_domains: Iterable[AllowedDomainInput] = (),
    ) -> None:
        found = self.probe()
        if found.state == "missing":
            raise MissingExtra("hyperlight-sandbox", "hyperlight")
        if found.state != "usable":
            raise SandboxUnavailable(found.reason, hint=found.hint)
        self.tier: Tier = "vm"
        self.constraints = CodeConstraints(stateful=False, network=False, supports_threads=False)
        self._mounts = as_file_mounts(file_mounts)
        if outside := [mount for mount in self._mounts if not _is_below_input(mount)]:
            raise InvalidSetting(f"Hyperlight shows files below /input only, not at {outside[0].mount_path}")
        make = {"backend": backend, "module": module, "module_path": module_path, "heap_size": heap_size}
        self._make = {name: value for name, value in make.items() if value is not None}
        granted = as_allowed_domains(allowed_domains)
        self._domains = [(each.target, list(each.methods) if each.methods else None) for each in granted]
        self._staged: tempfile.TemporaryDirectory[str] | None = None
        self._spares: list[KeptVm] = []
        self._used: set[KeptVm] = set()

    async def execute(
        self,
        code: str,
        functions: Functions = (),
        *,
        inputs: Mapping[str, Any] | None = None,
        limits: Limits | None = None,
        on_output: OnOutput | None = None,
    ) -> CodeExecution:
        """As the contract says."""
        offered = [as_signature(function) for function in functions]
        specs = [{"name": each.name, "is_async": each.is_async} for each in offered]
        order = to_wire({"code": code, "functions": specs, "inputs": dict(inputs or {})}, root="inputs")
        kept = self._spares.pop() if self._spares else await KeptVm.start(self._settings(), self._domains)
        self._used.add(kept)
        return HyperlightExecution(kept, order, limits or DEFAULT_LIMITS, on_output, self._give_back)

    @asynccontextmanager
    async def session(self, *, limits: Limits | None = None) -> AsyncGenerator[CodeSession]:
        """Not offered: `constraints.stateful` says so.

        Raises:
            SandboxUnavailable: Always.
        """
        raise SandboxUnavailable("Hyperlight keeps no state between actions", hint="use sandbox='jail'")
        yield  # pyright: ignore[reportUnreachable]

    @classmethod
    def probe(cls) -> Availability:
        """A look at the packages, the CPU and the devices; no launch."""
        return hypervisor.look()

    async def aclose(self) -> None:
        """As the contract says. The sandbox can be used again afterwards."""
        while self._spares:
            await self._spares.pop().close()
        while self._used:
            await self._used.pop().close()
        if self._staged is not None:
            self._staged.cleanup()
            self._staged = None

    async def _give_back(self, kept: KeptVm, is_whole: bool) -> None:
        if kept not in self._used:
            return
        self._used.discard(kept)
        if is_whole and len(self._spares) < SPARES:
            kept.clear_output()
            self._spares.append(kept)
        else:
            await kept.close()

    def _settings(self) -> dict[str, Any]:
        if not self._mounts:
            return self._make
        if len(self._mounts) == 1 and self._mounts[0].mount_path == str(INPUT_ROOT):
            return {**self._make, "input_dir": str(self._mounts[0].host_path)}
        if self._staged is None:
            self._staged = tempfile.TemporaryDirectory(prefix="hatchway-hyperlight-input-")
            for mount in self._mounts:
                _copy(mount, Path(self._staged.name))
        return {**self._make, "input_dir": self._staged.name}


def _is_below_input(mount: FileMount) -> bool:
    return PurePosixPath(mount.mount_path).is_relative_to(INPUT_ROOT)


def _copy(mount: FileMount, folder: Path) -> None:
    target = folder / PurePosixPath(mount.mount_path).relative_to(INPUT_ROOT)
    target.parent.mkdir(parents=True, exist_ok=True)
    host = Path(mount.host_path)
    if host.is_dir():
        shutil.copytree(host, target, symlinks=True, dirs_exist_ok=True)
    else:
        shutil.copyfile(host, target)
