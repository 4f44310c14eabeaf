"""Texts as vectors: offline by static token embeddings that come inside a package, or by a remote model."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hatchway.core.errors import InvalidSetting, MissingExtra
from hatchway.tools.search.settings import OFFLINE, SearchSettings

Vectors = Any
"""A numpy array of float32, one row per text, each of length 1."""
Embedder = Callable[[Sequence[str]], Vectors]
_MAX_TEXT = 4000
"""Characters that are read of a text."""


def embedder(settings: SearchSettings) -> Embedder:
    """What makes vectors of texts.

    Raises:
        MissingExtra: Its package is not installed.
        InvalidSetting: The dimensions are not those of the model.
    """
    if find_spec("numpy") is None:
        raise MissingExtra("numpy, which hybrid search needs,", "search")
    if settings.embedder == "test":
        return lambda texts: _normal([_drawn(text, settings.dimensions) for text in texts])
    if settings.embedder != OFFLINE:
        return _remote(settings.embedder, settings.dimensions)
    tokenizer, table = _static()
    if table.shape[1] != settings.dimensions:
        raise InvalidSetting(
            f"PYTOOLS_EMBEDDING_DIM is {settings.dimensions}, and the vectors of {OFFLINE} have {table.shape[1]}"
        )

    def embed(texts: Sequence[str]) -> Vectors:
        import numpy as np

        found = tokenizer.encode_batch([text[:_MAX_TEXT] for text in texts], add_special_tokens=False)
        empty = np.zeros(table.shape[1], dtype=np.float32)
        return _normal([table[each.ids].mean(axis=0) if each.ids else empty for each in found])

    return embed


@lru_cache(maxsize=1)
def _static() -> tuple[Any, Any]:
    """The tokenizer, and one vector per token; read from the package's files, because its own loader goes online."""
    spec = find_spec(OFFLINE)
    if spec is None or not spec.submodule_search_locations or find_spec("tokenizers") is None:
        raise MissingExtra("the offline embedder", "search")
    import safetensors.numpy
    from tokenizers import Tokenizer

    home = Path(next(iter(spec.submodule_search_locations)))
    tokenizer: Any = Tokenizer.from_file(str(home / "tokenizers" / "l2_supercat_tokenizer_config.json"))
    tokenizer.no_padding()
    read: Any = safetensors.numpy
    weights: dict[str, Any] = read.load_file(str(home / "weights" / "l2_supercat_256.safetensors"))
    return tokenizer, next(iter(weights.values())).astype("float32")


def _remote(model: str, dimensions: int) -> Embedder:
    try:
        from pydantic_ai import Embedder as RemoteEmbedder
    except ImportError:
        raise MissingExtra("the client of remote embedders", "pydantic-ai") from None
    remote = RemoteEmbedder(model, settings={"dimensions": dimensions})

    def embed(texts: Sequence[str]) -> Vectors:
        return _normal(remote.embed_sync(list(texts), input_type="document").embeddings)

    return embed


def _drawn(text: str, dimensions: int) -> list[float]:
    """Numbers that depend on the text alone and mean nothing."""
    drawn = hashlib.shake_128(text.encode(errors="replace")).digest(dimensions)
    return [byte / 127.5 - 1 for byte in drawn]


def _normal(rows: Any) -> Vectors:
    import numpy as np

    vectors = np.asarray(rows, dtype=np.float32)
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return vectors / np.where(lengths == 0, 1, lengths)
