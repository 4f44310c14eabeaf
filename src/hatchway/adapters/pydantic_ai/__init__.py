"""Hatchway inside Pydantic AI: an agent's tools as functions of code that runs in any sandbox."""

from hatchway.core.errors import MissingExtra

try:
    import pydantic_ai  # noqa: F401  # pyright: ignore[reportUnusedImport]
except ImportError as e:
    raise MissingExtra("Pydantic AI", "pydantic-ai") from e

from hatchway.adapters.pydantic_ai.capability import CodeModeCapability
from hatchway.adapters.pydantic_ai.deciding import decided
from hatchway.adapters.pydantic_ai.places import code_capability
from hatchway.adapters.pydantic_ai.toolset import CodeModeToolset
from hatchway.mode.prompt import build_code_mode_prompt

__all__ = ["CodeModeCapability", "CodeModeToolset", "build_code_mode_prompt", "code_capability", "decided"]
