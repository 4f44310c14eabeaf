"""How tools are searched: the `PYTOOLS_*` variables."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

from hatchway.core.errors import InvalidSetting

OFFLINE = "wordllama"
"""The embedder whose weights come inside a package."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchSettings:
    """What hybrid search goes by."""

    directory: Path = Path(".")
    """Where `mcptools/` and `gentools/` lie."""
    database: Path | None = Path(".hatchway/search.db")
    """The index; None keeps it in memory."""
    embedder: str = OFFLINE
    """`wordllama`, `test`, or a model of Pydantic AI such as `openai:text-embedding-3-small`."""
    dimensions: int = 256
    """Numbers of one embedding."""
    sync: bool = True
    """Whether the index is brought up to date when it is opened."""
    watch: bool = True
    """Whether changes of the folders are seen by the next search."""
    bm25_weight: float = 1.0
    """How much words count."""
    vector_weight: float = 1.0
    """How much meaning counts."""
    wish_weight: float = 1.0
    """How much the table of common wishes counts for meaning; of the offline embedder only."""


def search_settings(environment: Mapping[str, str] | None = None) -> SearchSettings:
    """The settings the environment tells.

    Raises:
        InvalidSetting: A variable is not what it should be; the message names it.
    """
    told = os.environ if environment is None else environment
    usual = SearchSettings()
    return SearchSettings(
        directory=Path(told.get("PYTOOLS_DIR", usual.directory)),
        database=Path(told.get("PYTOOLS_DB_PATH", str(usual.database))),
        embedder=told.get("PYTOOLS_EMBEDDING_MODEL", usual.embedder),
        dimensions=int(_number(told, "PYTOOLS_EMBEDDING_DIM", usual.dimensions, at_least=1)),
        sync=_flag(told, "PYTOOLS_SYNC"),
        watch=_flag(told, "PYTOOLS_WATCH"),
        bm25_weight=_number(told, "PYTOOLS_BM25_WEIGHT", usual.bm25_weight),
        vector_weight=_number(told, "PYTOOLS_VEC_WEIGHT", usual.vector_weight),
    )


def usable_settings(environment: Mapping[str, str] | None = None) -> SearchSettings:
    """As `search_settings`; without the packages of the offline embedder, words alone count."""
    settings = search_settings(environment)
    if settings.embedder == OFFLINE and not all(map(find_spec, ("numpy", "safetensors", "tokenizers", OFFLINE))):
        return replace(settings, vector_weight=0.0)
    return settings


def _flag(told: Mapping[str, str], name: str) -> bool:
    word = told.get(name, "true").strip().lower()
    if word not in ("true", "false", "1", "0", "yes", "no"):
        raise InvalidSetting(f"{name} is true or false, not {word!r}")
    return word in ("true", "1", "yes")


def _number(told: Mapping[str, str], name: str, usual: float, at_least: float = 0) -> float:
    try:
        value = float(told.get(name, usual))
    except ValueError:
        value = math.nan
    if not at_least <= value < math.inf:
        raise InvalidSetting(f"{name} is a number of at least {at_least:g}, not {told[name]!r}")
    return value
