"""Whether Monty works here, found out by starting a worker and running code in it."""

from __future__ import annotations

from collections.abc import Sequence

from hatchway.core.errors import SandboxUnavailable
from hatchway.core.sandbox import Availability

INSTALL = "pip install 'hatchway'"
_REINSTALL = "pip install --force-reinstall hatchway"


def probe() -> Availability:
    """Start a worker the way the pool does, run `1 + 1`, and tell what holds around it. Never raises."""
    try:
        from hatchway.sandboxes.monty import worker
    except ImportError as e:
        return Availability(state="missing", reason=f"{e.name or e} cannot be imported", hint=INSTALL)
    try:
        walls = worker.walls()
        fault = worker.trial(is_sealed=bool(walls))
    except SandboxUnavailable as e:
        return Availability(state="installed_but_unusable", reason=e.message, hint=e.hint)
    except Exception as e:
        return Availability(state="installed_but_unusable", reason=f"{type(e).__name__}: {e}", hint=_REINSTALL)
    if fault:
        return Availability(state="installed_but_unusable", reason=fault, hint=_REINSTALL)
    return Availability(state="usable", tier="language", reason=_reason(walls))


def _reason(walls: Sequence[str]) -> str:
    if not walls:
        return "language-level only: the interpreter is the only wall, the kernel adds none here"
    return f"the interpreter is the wall; its worker is sealed by {' + '.join(walls)}"
