"""A vendor's own client for another address, and a request made either way."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from hatchway.core.errors import InvalidSetting, MissingExtra
from hatchway.core.events import CodeExecutionOutput, RunFailed
from hatchway.hosted.code import Provider
from hatchway.hosted.reply import HostedReply

if TYPE_CHECKING:
    from hatchway.hosted.adapter import HostedAdapter


async def asked(adapter: HostedAdapter, prompt: str = "go", *, streams: bool, **options: Any) -> HostedReply:
    """The reply to a request, made whole or streamed.

    Raises:
        HatchwayError: As `HostedAdapter.run`, streamed or not.
    """
    if not streams:
        return await adapter.run(prompt, **options)
    async with aclosing(adapter.stream(prompt, **options)) as events:
        async for event in events:
            if isinstance(event, CodeExecutionOutput) and isinstance(event.result, HostedReply):
                return event.result
            if isinstance(event, RunFailed):
                raise event.error
    raise AssertionError("a stream that ends well has a reply")


def sdk_client(provider: Provider, base_url: str, *, http_client: Any = None, **settings: Any) -> Any:
    """A vendor's async client that speaks with another address.

    Raises:
        MissingExtra: The SDK is not installed.
    """
    try:
        match provider:
            case "openai":
                from openai import AsyncOpenAI

                return AsyncOpenAI(api_key="test", base_url=f"{base_url}/v1", http_client=http_client, **settings)
            case "anthropic":
                from anthropic import AsyncAnthropic

                return AsyncAnthropic(api_key="test", base_url=base_url, http_client=http_client, **settings)
            case "gemini":
                from google import genai
                from google.genai import types

                options = types.HttpOptions(base_url=base_url, httpx_async_client=http_client, **settings)
                return genai.Client(api_key="test", http_options=options)
            case _:
                raise InvalidSetting(f"a vendor is 'openai', 'anthropic' or 'gemini', not {provider!r}")
    except ImportError as e:
        raise MissingExtra(f"the SDK of {provider}", provider) from e
