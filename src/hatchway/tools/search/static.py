"""Static token embeddings that come inside a package: texts as vectors, and how well the words of two texts match."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hatchway.core.errors import InvalidSetting, MissingExtra
from hatchway.tools.search.settings import OFFLINE

_MAX_TEXT = 4000
"""Characters that are read of a text."""
_COMMON_WEIGHT = 0.2
"""What a word counts that is in every query."""
Tokens = Any
"""The tokens of a text, as a numpy array of numbers."""


@cache
def common_words() -> frozenset[str]:
    """Words a query has that say nothing about what is wanted."""
    return frozenset(files("hatchway.tools.search").joinpath("common_words.txt").read_text(encoding="utf-8").split())


class StaticEmbedder:
    """One vector per token; a text is their mean.

    Args:
        dimensions: Numbers of one vector.

    Raises:
        MissingExtra: The package of the weights is not installed.
        InvalidSetting: The dimensions are not those of the weights.
    """

    def __init__(self, dimensions: int) -> None:
        self._tokenizer, self._table, self._lengths = _weights()
        if self._table.shape[1] != dimensions:
            raise InvalidSetting(
                f"PYTOOLS_EMBEDDING_DIM is {dimensions}, and the vectors of {OFFLINE} have {self._table.shape[1]}"
            )

    def __call__(self, texts: Sequence[str]) -> Any:
        """The vectors of texts, not of length 1 yet."""
        import numpy as np

        empty = np.zeros(self._table.shape[1], dtype=np.float32)
        return [self._table[ids].mean(axis=0) if len(ids) else empty for ids in self.tokens(texts)]

    def tokens(self, texts: Sequence[str]) -> list[Tokens]:
        """The tokens of each text."""
        import numpy as np

        found = self._tokenizer.encode_batch([text[:_MAX_TEXT] for text in texts], add_special_tokens=False)
        return [np.asarray(each.ids, dtype=np.int32) for each in found]

    def matches(self, query: str, texts: Sequence[Tokens]) -> Any:
        """For each text, how near on average its nearest token comes to each token of the query; common words count
        little. A mean hides a word that is exactly right among others; this does not."""
        import numpy as np

        (asked,) = self.tokens([query])
        wanted = self._table[asked] / self._lengths[asked, None]
        weights = np.array([self._weight(int(token)) for token in asked], dtype=np.float32)
        shares = weights / (weights.sum() or 1.0)
        # one product per text: a large one would wake the threads of the BLAS, which cost more than they save
        return np.array([shares @ self._nearest(wanted, text) for text in texts], dtype=np.float32)

    def _nearest(self, wanted: Any, text: Tokens) -> Any:
        if not len(text):
            return wanted[:, 0] * 0
        return (wanted @ self._table[text].T / self._lengths[text]).max(axis=1)

    def _weight(self, token: int) -> float:
        return _COMMON_WEIGHT if self._tokenizer.id_to_token(token).strip("▁").lower() in common_words() else 1.0


@lru_cache(maxsize=1)
def _weights() -> tuple[Any, Any, Any]:
    """The tokenizer, the table, the lengths of its rows; from the package's files, as its own loader goes online."""
    spec = find_spec(OFFLINE)
    if spec is None or not spec.submodule_search_locations or find_spec("tokenizers") is None:
        raise MissingExtra("the offline embedder", "search")
    import numpy as np
    import safetensors.numpy
    from tokenizers import Tokenizer

    home = Path(next(iter(spec.submodule_search_locations)))
    tokenizer: Any = Tokenizer.from_file(str(home / "tokenizers" / "l2_supercat_tokenizer_config.json"))
    tokenizer.no_padding()
    read: Any = safetensors.numpy
    weights: dict[str, Any] = read.load_file(str(home / "weights" / "l2_supercat_256.safetensors"))
    table = next(iter(weights.values())).astype("float32")
    return tokenizer, table, np.maximum(np.linalg.norm(table, axis=1), 1e-9)
