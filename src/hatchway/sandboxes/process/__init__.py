"""Full CPython in a child process. It is UNSEALED: the code can do whatever this user can do."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hatchway.sandboxes.process.sandbox import ProcessSandbox

__all__ = ["ProcessSandbox"]


def __getattr__(name: str) -> Any:
    """The sandbox, once somebody wants it: the jail uses single files of this folder, and starts in a moment."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from hatchway.sandboxes.process import sandbox

    return getattr(sandbox, name)
