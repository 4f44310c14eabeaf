"""What the agent uses of Pydantic AI; without the package an error that names the agent's extra, which has more."""

from __future__ import annotations

from hatchway.core.errors import MissingExtra

try:
    from hatchway.mode.models import *  # noqa: F403
except MissingExtra as e:
    raise MissingExtra("Pydantic AI, which speaks with models,", "agent") from e
