"""The jail: full CPython, sealed by the kernel, warm."""

from hatchway.sandboxes.jail.sandbox import JailSandbox

__all__ = ["JailSandbox"]
