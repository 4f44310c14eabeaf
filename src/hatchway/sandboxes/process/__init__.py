"""Full CPython in a child process. It is UNSEALED: the code can do whatever this user can do."""

from hatchway.sandboxes.process.sandbox import ProcessSandbox

__all__ = ["ProcessSandbox"]
