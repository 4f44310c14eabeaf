"""The search index: words by SQLite's FTS5, meaning by vectors, both lists merged by their ranks."""

from __future__ import annotations

import hashlib
import re
import sqlite3
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from hatchway.core.errors import InvalidSetting
from hatchway.tools.search.catalog import Entry
from hatchway.tools.search.embedding import Embedder, embedder
from hatchway.tools.search.settings import SearchSettings

_DEPTH = 60
"""How far down each list is read; also the constant of reciprocal rank fusion."""
_MAX_QUERY = 1000
_NO_VECTOR = memoryview(b"")
"""Where words alone count."""
_SCHEMA = """
CREATE TABLE IF NOT EXISTS tools (name TEXT PRIMARY KEY, digest TEXT NOT NULL, vector BLOB NOT NULL);
CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5(name UNINDEXED, text, tokenize = 'porter unicode61');
"""


class Index:
    """Finds tools by what somebody wants to do.

    Args:
        settings: Where it is kept and how it weighs.

    Raises:
        MissingExtra: The embedder's package is not installed.
        InvalidSetting: The database cannot be opened.
    """

    def __init__(self, settings: SearchSettings) -> None:
        self._settings = settings
        self._embed: Embedder | None = embedder(settings) if settings.vector_weight else None
        place = ":memory:" if settings.database is None else str(settings.database)
        try:
            if settings.database is not None:
                Path(settings.database).parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(place, check_same_thread=False, isolation_level=None)
            self._db.executescript(_SCHEMA)
        except (OSError, sqlite3.Error) as e:
            raise InvalidSetting(
                f"the search index {place} cannot be opened: {e}", hint="set PYTOOLS_DB_PATH"
            ) from None
        self._names: list[str] = []
        self._vectors: Any = None

    def sync(self, entries: Iterable[Entry]) -> int:
        """Bring the index in line with these tools; how many had to be read anew."""
        wanted = {each.name: each for each in entries}
        digests = {name: self._digest(each) for name, each in wanted.items()}
        known: dict[str, str] = dict(self._db.execute("SELECT name, digest FROM tools"))
        changed = [name for name, digest in digests.items() if known.get(name) != digest]
        gone = [name for name in known if name not in wanted]
        self._db.execute("BEGIN IMMEDIATE")
        try:
            for name in (*gone, *changed):
                self._db.execute("DELETE FROM tools WHERE name = ?", (name,))
                self._db.execute("DELETE FROM words WHERE name = ?", (name,))
            if changed:
                self._add([wanted[name] for name in changed], digests)
            self._db.execute("COMMIT")
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self.load()
        return len(changed)

    def load(self) -> None:
        """Search what the database holds, as it is."""
        rows = self._db.execute("SELECT name, vector FROM tools ORDER BY name").fetchall()
        self._names = [name for name, _ in rows]
        if self._embed is None:
            return
        import numpy as np

        blobs = [np.frombuffer(vector, dtype=np.float32) for _, vector in rows]
        self._vectors = np.stack(blobs) if blobs else None

    def search(self, query: str, limit: int = 8) -> list[str]:
        """The names of the tools that fit best, best first."""
        query, weights = query[:_MAX_QUERY], self._settings
        scores: dict[str, float] = {}
        for weight, found in ((weights.bm25_weight, self._by_words), (weights.vector_weight, self._by_meaning)):
            for rank, name in enumerate(found(query) if weight else ()):
                scores[name] = scores.get(name, 0.0) + weight / (_DEPTH + rank + 1)
        return sorted(scores, key=lambda name: (-scores[name], name))[: max(0, limit)]

    def close(self) -> None:
        """Close the database. Legal twice."""
        self._db.close()

    def _digest(self, entry: Entry) -> str:
        told = f"{self._settings.embedder if self._embed else ''}\0{self._settings.dimensions}\0{entry.text}"
        return hashlib.sha256(told.encode(errors="replace")).hexdigest()[:32]

    def _add(self, entries: list[Entry], digests: Mapping[str, str]) -> None:
        vectors = self._embed([each.meaning for each in entries]) if self._embed else [_NO_VECTOR] * len(entries)
        rows = [
            (each.name, digests[each.name], vector.tobytes()) for each, vector in zip(entries, vectors, strict=True)
        ]
        self._db.executemany("INSERT INTO tools VALUES (?, ?, ?)", rows)
        self._db.executemany("INSERT INTO words VALUES (?, ?)", [(each.name, each.text) for each in entries])

    def _by_words(self, query: str) -> list[str]:
        terms = re.findall(r"\w+", query)[:50]
        if not terms:
            return []
        asked = " OR ".join(f'"{term}"' for term in dict.fromkeys(terms))
        sql = "SELECT name FROM words WHERE words MATCH ? ORDER BY bm25(words) LIMIT ?"
        return [name for (name,) in self._db.execute(sql, (asked, _DEPTH))]

    def _by_meaning(self, query: str) -> list[str]:
        if self._vectors is None or self._embed is None or not query.strip():
            return []
        near = self._vectors @ self._embed([query])[0]
        return [self._names[number] for number in (-near).argsort(kind="stable")[:_DEPTH]]
