"""Full CPython and any command, sealed by the Linux kernel. Each name is imported when it is used."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hatchway.sandboxes.jail.command import JailedCommand
    from hatchway.sandboxes.jail.command_jail import COMMAND_LIMITS, CommandJail, CommandResult, run_command
    from hatchway.sandboxes.jail.sandbox import JailSandbox

__all__ = ["COMMAND_LIMITS", "CommandJail", "CommandResult", "JailSandbox", "JailedCommand", "run_command"]
_WHERE = {"JailSandbox": "sandbox", "JailedCommand": "command"}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_WHERE.get(name, 'command_jail')}"), name)
