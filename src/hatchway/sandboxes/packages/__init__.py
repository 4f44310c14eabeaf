"""Third-party packages for code: built once into a cache, or those of an existing environment; always read-only."""

from hatchway.sandboxes.packages.requirements import Packages

__all__ = ["Packages"]
