"""The embedded sandbox: Monty, a Python interpreter written in Rust, in the workers of one warm pool."""

from hatchway.sandboxes.monty.sandbox import MontySandbox

__all__ = ["MontySandbox"]
