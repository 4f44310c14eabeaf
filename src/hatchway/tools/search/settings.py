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
_RENAMED = {"google-gla": "google", "google-vertex": "google-cloud"}
"""Vendors whose older names are still in people's settings."""
_MOST_DIMENSIONS = 65_536
_MOST_WEIGHT = 1000


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
    """The settings the environment tells; a variable that is set to nothing is not set.

    Raises:
        InvalidSetting: A variable is not what it should be; the message names it.
    """
    given = os.environ if environment is None else environment
    told = {name: value for name, value in given.items() if name.startswith("PYTOOLS_") and value.strip()}
    usual = SearchSettings()
    settings = SearchSettings(
        directory=Path(told.get("PYTOOLS_DIR", usual.directory)).expanduser(),
        database=Path(told.get("PYTOOLS_DB_PATH", str(usual.database))).expanduser(),
        embedder=_named(told.get("PYTOOLS_EMBEDDING_MODEL", usual.embedder).strip()),
        dimensions=_whole(told, "PYTOOLS_EMBEDDING_DIM", usual.dimensions),
        sync=_flag(told, "PYTOOLS_SYNC"),
        watch=_flag(told, "PYTOOLS_WATCH"),
        bm25_weight=_weight(told, "PYTOOLS_BM25_WEIGHT", usual.bm25_weight),
        vector_weight=_weight(told, "PYTOOLS_VEC_WEIGHT", usual.vector_weight),
    )
    if not settings.bm25_weight and not settings.vector_weight:
        raise InvalidSetting("PYTOOLS_BM25_WEIGHT and PYTOOLS_VEC_WEIGHT are both 0: no search would find anything")
    if settings.vector_weight and settings.embedder == OFFLINE and settings.dimensions != usual.dimensions:
        raise InvalidSetting(
            f"PYTOOLS_EMBEDDING_DIM is {settings.dimensions}, and the vectors of {OFFLINE} have {usual.dimensions}",
            hint="leave it out, or name another embedder with PYTOOLS_EMBEDDING_MODEL",
        )
    return settings


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


def _named(model: str) -> str:
    """The model as Pydantic AI calls it today."""
    vendor, colon, name = model.partition(":")
    return f"{_RENAMED.get(vendor, vendor)}{colon}{name}"


def _whole(told: Mapping[str, str], name: str, usual: int) -> int:
    try:
        value = int(told.get(name, usual))
    except ValueError:
        value = 0
    if not 1 <= value <= _MOST_DIMENSIONS:
        raise InvalidSetting(f"{name} is a whole number of 1 to {_MOST_DIMENSIONS}, not {told[name]!r}")
    return value


def _weight(told: Mapping[str, str], name: str, usual: float) -> float:
    try:
        value = float(told.get(name, usual))
    except ValueError:
        value = math.nan
    if not 0 <= value <= _MOST_WEIGHT:
        raise InvalidSetting(f"{name} is a number of 0 to {_MOST_WEIGHT}, not {told[name]!r}")
    return value
