"""Full CPython and any command, sealed by the Linux kernel."""

from hatchway.sandboxes.jail.command import JailedCommand
from hatchway.sandboxes.jail.command_jail import COMMAND_LIMITS, CommandJail, CommandResult, run_command
from hatchway.sandboxes.jail.sandbox import JailSandbox

__all__ = ["COMMAND_LIMITS", "CommandJail", "CommandResult", "JailSandbox", "JailedCommand", "run_command"]
