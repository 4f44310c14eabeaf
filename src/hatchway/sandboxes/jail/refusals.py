"""What a system's refusal means, and the command that lifts it."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

from hatchway.core.errors import HatchwayError, InvalidSetting, SandboxUnavailable
from hatchway.sandboxes.shortage import is_shortage, no_process

_APPARMOR = Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")
_CLONE = Path("/proc/sys/kernel/unprivileged_userns_clone")
_MAXIMUM = Path("/proc/sys/user/max_user_namespaces")


def refusal(told: dict[str, Any]) -> HatchwayError:
    """The error for namespaces that could not be built, from what the zygote said."""
    reason, number = told["failed"], told["errno"]
    if told["is_grant"]:
        return InvalidSetting(f"cannot show {reason}", hint="give a workspace_root and file_mounts that can be read")
    if is_shortage(number):
        return no_process(OSError(number, reason))
    return SandboxUnavailable(f"the namespaces tier is refused here: {reason}", hint=_hint(number))


def _hint(number: int) -> str:
    if _says(_APPARMOR, "1"):
        return "sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0"
    if _says(_CLONE, "0"):
        return "sudo sysctl kernel.unprivileged_userns_clone=1"
    if _says(_MAXIMUM, "0"):
        return "sudo sysctl user.max_user_namespaces=15000"
    if number in (errno.EPERM, errno.EACCES):
        return "in a container: docker run --security-opt seccomp=unconfined --security-opt apparmor=unconfined …"
    if number in (errno.ENOSPC, errno.EUSERS):
        return "sudo sysctl user.max_user_namespaces=15000"
    return "see what is missing with `hatchway doctor`"


def _says(path: Path, value: str) -> bool:
    try:
        return path.read_text().strip() == value
    except OSError:
        return False
