"""Code in a Hyperlight micro-VM: `HyperlightSandbox`, where the machine has a hypervisor."""

from hatchway.sandboxes.hyperlight.sandbox import HyperlightSandbox

__all__ = ["HyperlightSandbox"]
