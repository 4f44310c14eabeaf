"""Hatchway inside Google's Agent Development Kit: any sandbox as its code executor."""

from hatchway.core.errors import MissingExtra

try:
    import google.adk  # noqa: F401  # pyright: ignore[reportUnusedImport]
except ImportError as e:
    raise MissingExtra("Google's Agent Development Kit", "google-adk") from e

from hatchway.adapters.google_adk.all_blocks import AllCodeBlocksPlugin
from hatchway.adapters.google_adk.executor import HatchwayCodeExecutor
from hatchway.adapters.google_adk.places import code_executor

__all__ = ["AllCodeBlocksPlugin", "HatchwayCodeExecutor", "code_executor"]
