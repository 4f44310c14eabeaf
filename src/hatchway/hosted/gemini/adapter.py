"""GeminiAdapter: Gemini's models with their code execution."""

from __future__ import annotations

from typing import Any

from hatchway.hosted.adapter import HostedAdapter
from hatchway.hosted.gemini.vendor import GeminiVendor


class GeminiAdapter(HostedAdapter):
    """A model of Gemini; see `HostedAdapter` for the settings.

    Args:
        model: Its name.
        client: A `genai.Client` or its `aio`, which stays the caller's to close; without one, one of the environment.
        settings: As for `HostedAdapter`; `settings=` itself goes into `generationConfig`.
    """

    provider = "gemini"

    def __init__(self, model: str, *, client: Any = None, **settings: Any) -> None:
        super().__init__(GeminiVendor(client), model, **settings)
