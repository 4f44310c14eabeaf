"""Texts as vectors: offline by static token embeddings that come inside a package, or by a remote model."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any

from hatchway.core.errors import MissingExtra
from hatchway.tools.search.settings import OFFLINE, SearchSettings
from hatchway.tools.search.static import StaticEmbedder

Vectors = Any
"""A numpy array of float32, one row per text, each of length 1."""
Embedder = Callable[[Sequence[str]], Vectors]


def embedder(settings: SearchSettings) -> Embedder:
    """What makes vectors of texts.

    Raises:
        MissingExtra: Its package is not installed.
        InvalidSetting: The dimensions are not those of the model.
    """
    if find_spec("numpy") is None:
        raise MissingExtra("numpy, which hybrid search needs,", "search")
    if settings.embedder == "test":
        return lambda texts: normal([_drawn(text, settings.dimensions) for text in texts])
    if settings.embedder != OFFLINE:
        return _remote(settings.embedder, settings.dimensions)
    static = StaticEmbedder(settings.dimensions)
    return lambda texts: normal(static(texts))


def _remote(model: str, dimensions: int) -> Embedder:
    try:
        from pydantic_ai import Embedder as RemoteEmbedder
    except ImportError:
        raise MissingExtra("the client of remote embedders", "pydantic-ai") from None
    remote = RemoteEmbedder(model, settings={"dimensions": dimensions})

    def embed(texts: Sequence[str]) -> Vectors:
        return normal(remote.embed_sync(list(texts), input_type="document").embeddings)

    return embed


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
