"""The vendors themselves; only where a key is in the environment. These cost money."""

import os
from typing import Any

import pytest

from hatchway import tool
from hatchway.hosted import AnthropicAdapter, GeminiAdapter, OpenAIAdapter, code_tool

pytestmark = [pytest.mark.anyio, pytest.mark.live, pytest.mark.slow]
VENDORS: dict[str, tuple[Any, str, str]] = {
    "openai": (OpenAIAdapter, "OPENAI_API_KEY", "gpt-5"),
    "anthropic": (AnthropicAdapter, "ANTHROPIC_API_KEY", "claude-sonnet-5"),
    "gemini": (GeminiAdapter, "GEMINI_API_KEY", "gemini-2.5-flash"),
}


def live(provider: str, **settings: Any) -> Any:
    kind, key, model = VENDORS[provider]
    if not os.environ.get(key):
        pytest.skip(f"{key} is not set")
    return kind(os.environ.get(f"HATCHWAY_LIVE_{provider.upper()}_MODEL", model), **settings)


@pytest.mark.parametrize("provider", list(VENDORS))
async def test_code_runs_there(provider: str) -> None:
    async with live(provider, tools=[code_tool(provider)]) as adapter:
        reply = await adapter.run("Run Python that prints 123457 * 7654321 and tell me the number it printed.")
    assert reply.codes
    assert "944979507697" in (reply.text + reply.stdout).replace(",", "")


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
async def test_its_code_calls_our_tool(provider: str) -> None:
    asked: list[str] = []

    @tool
    async def secret_price(item: str) -> int:
        """The price of an item in euro; nobody else knows it."""
        asked.append(item)
        return 8731

    async with live(provider, tools=[code_tool(provider, tools=[secret_price])]) as adapter:
        reply = await adapter.run("Use code that calls secret_price for 'cake' and tell me the price.")
    assert asked
    assert "8731" in reply.text.replace(",", "")
