"""Whether the machine has a hypervisor that Hyperlight can use. A look, no launch: it takes a millisecond.

`/dev/kvm` alone says nothing: where the CPU has no virtualisation of its own it may be served by a module that
emulates the guest's kernel mode, in which Hyperlight's guests run altogether and fail at their first instruction.
"""

from __future__ import annotations

import os
import platform
from importlib.util import find_spec
from pathlib import Path

from hatchway.core.sandbox import Availability

FLAGS = frozenset(["svm", "vmx"])
PACKAGES = ("hyperlight_sandbox", "hyperlight_sandbox_backend_wasm", "python_guest")
INSTALL = "pip install 'hatchway[hyperlight]'"
ELSEWHERE = "use sandbox='jail' or 'monty', or a machine with virtualisation"


def look(root: Path = Path("/"), machine: str = "") -> Availability:
    """What there is. Never raises.

    Args:
        root: Where `/proc`, `/sys` and `/dev` are.
        machine: The architecture; empty asks the system.
    """
    if missing := [name for name in PACKAGES if find_spec(name) is None]:
        return Availability(state="missing", reason=f"{missing[0]} is not installed", hint=INSTALL)
    if reason := _obstacle(root, machine or platform.machine()):
        return Availability(state="installed_but_unusable", reason=reason, hint=ELSEWHERE)
    return Availability(state="usable", tier="vm", reason="a micro-VM per sandbox")


def _obstacle(root: Path, machine: str) -> str:
    if machine not in ("x86_64", "AMD64"):
        return f"Hyperlight needs x86-64, this is {machine}"
    if _is_usable(root / "dev/mshv"):
        return ""
    if not (root / "dev/kvm").exists():
        return "no hypervisor: there is neither /dev/kvm nor /dev/mshv"
    if not _is_usable(root / "dev/kvm"):
        return "/dev/kvm is there and closed to this user"
    if not FLAGS & _cpu_flags(root):
        return "no usable hypervisor: the CPU shows neither svm nor vmx, so /dev/kvm only emulates"
    if (root / "sys/module/kvm_pvm").exists():
        return "no usable hypervisor: /dev/kvm is served by kvm_pvm, which emulates kernel mode"
    return ""


def _is_usable(device: Path) -> bool:
    return os.access(device, os.R_OK | os.W_OK)


def _cpu_flags(root: Path) -> frozenset[str]:
    try:
        lines = (root / "proc/cpuinfo").read_text().splitlines()
    except OSError:
        return frozenset()
    line = next((line for line in lines if line.startswith("flags")), "")
    return frozenset(line.partition(":")[2].split())
