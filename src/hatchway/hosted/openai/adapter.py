"""OpenAIAdapter: OpenAI's models with their code interpreter."""

from __future__ import annotations

from typing import Any

from hatchway.hosted.adapter import HostedAdapter
from hatchway.hosted.openai.vendor import OpenAIVendor


class OpenAIAdapter(HostedAdapter):
    """A model at OpenAI; see `HostedAdapter` for the settings.

    Args:
        model: Its name.
        client: An `openai.AsyncOpenAI`, which stays the caller's to close; without one, one of the environment.
        settings: As for `HostedAdapter`.
    """

    provider = "openai"

    def __init__(self, model: str, *, client: Any = None, **settings: Any) -> None:
        super().__init__(OpenAIVendor(client), model, **settings)
