"""AnthropicAdapter: Anthropic's models with their code execution."""

from __future__ import annotations

from typing import Any

from hatchway.hosted.adapter import HostedAdapter
from hatchway.hosted.anthropic.vendor import AnthropicVendor


class AnthropicAdapter(HostedAdapter):
    """A model at Anthropic; see `HostedAdapter` for the settings.

    Args:
        model: Its name.
        client: An `anthropic.AsyncAnthropic`, which stays the caller's to close; without one, one of the environment.
        settings: As for `HostedAdapter`.
    """

    provider = "anthropic"

    def __init__(self, model: str, *, client: Any = None, **settings: Any) -> None:
        super().__init__(AnthropicVendor(client), model, **settings)
