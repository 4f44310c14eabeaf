"""Texts as vectors: offline by static token embeddings that come inside a package, or by a remote model."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from importlib.util import find_spec
from typing import Any, Literal, Protocol

from hatchway.core.errors import MissingExtra, ToolError
from hatchway.tools.search.settings import OFFLINE, SearchSettings
from hatchway.tools.search.static import StaticEmbedder

Vectors = Any
"""A numpy array of float32, one row per text, each of length 1."""
Use = Literal["document", "query"]
"""What a text is: some remote models tell them apart."""
_REMOTE_SECONDS = 60.0


class Embedder(Protocol):
    """What makes vectors of texts."""

    def __call__(self, texts: Sequence[str], use: Use = "document") -> Vectors:
        """The vectors, one row per text, each of length 1.

        Raises:
            ToolError: A remote model gave none.
        """
        ...


def embedder(settings: SearchSettings) -> Embedder:
    """What makes vectors of texts.

    Raises:
        MissingExtra: Its package is not installed.
        InvalidSetting: The dimensions are not those of the model.
    """
    if find_spec("numpy") is None:
        raise MissingExtra("numpy, which hybrid search needs,", "search")
    if settings.embedder == "test":
        return lambda texts, use="document": normal([_drawn(text, settings.dimensions) for text in texts])
    if settings.embedder != OFFLINE:
        return _remote(settings.embedder, settings.dimensions)
    static = StaticEmbedder(settings.dimensions)
    return lambda texts, use="document": normal(static(texts))


def _remote(model: str, dimensions: int) -> Embedder:
    try:
        import pydantic_ai.embeddings  # noqa: F401  # pyright: ignore[reportUnusedImport]
    except ImportError:
        raise MissingExtra("the client of remote embedders", "pydantic-ai") from None

    def embed(texts: Sequence[str], use: Use = "document") -> Vectors:
        # a thread of its own: a search may be made where a loop runs already
        with ThreadPoolExecutor(1, "hatchway embedder") as thread:
            try:
                return normal(thread.submit(asyncio.run, _asked(model, texts, use, dimensions)).result())
            except Exception as e:  # an unknown name, a missing key, no connection: each vendor has its own
                told = f"the embedder {model!r} gave nothing: {str(e) or type(e).__name__}"
                raise ToolError(told, hint=f"or set PYTOOLS_EMBEDDING_MODEL={OFFLINE}") from None

    return embed


async def _asked(model: str, texts: Sequence[str], use: Use, dimensions: int) -> Sequence[Sequence[float]]:
    """The vectors a remote model gives; its connections are closed again, for they end with their loop."""
    from pydantic_ai import Embedder as RemoteEmbedder
    from pydantic_ai.embeddings import infer_embedding_model
    from pydantic_ai.providers import Provider, infer_provider

    providers: list[Provider[Any]] = []

    def provided(name: str) -> Provider[Any]:
        providers.append(infer_provider(name))
        return providers[-1]

    remote = RemoteEmbedder(infer_embedding_model(model, provider_factory=provided))
    async with AsyncExitStack() as stack, asyncio.timeout(_REMOTE_SECONDS):
        for each in providers:
            await stack.enter_async_context(each)
        return (await remote.embed(list(texts), input_type=use, settings={"dimensions": dimensions})).embeddings


def _drawn(text: str, dimensions: int) -> list[float]:
    """Numbers that depend on the text alone and mean nothing."""
    drawn = hashlib.shake_128(text.encode(errors="replace")).digest(dimensions)
    return [byte / 127.5 - 1 for byte in drawn]


def normal(rows: Any) -> Vectors:
    """The rows at length 1."""
    import numpy as np

    vectors = np.asarray(rows, dtype=np.float32)
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return vectors / np.where(lengths == 0, 1, lengths)
