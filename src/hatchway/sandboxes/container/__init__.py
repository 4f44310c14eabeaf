"""Full CPython in a locked-down container: Docker, podman or nerdctl."""

from hatchway.sandboxes.container.sandbox import ContainerSandbox

__all__ = ["ContainerSandbox"]
