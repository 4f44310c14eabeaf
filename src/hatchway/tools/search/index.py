"""The search index: words by SQLite's FTS5, meaning by vectors, merged by how much each tells a tool apart.

Merging by ranks would let a tool that shares one common word with the query push aside what is meant: the best of a bad
list ranks first as well. So words count by how much of the query they cover, meaning by how far a tool stands out.
"""

from __future__ import annotations

import hashlib
import math
import re
import sqlite3
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hatchway.core.errors import InvalidSetting
from hatchway.tools.search.catalog import Entry, spelled
from hatchway.tools.search.embedding import Embedder, embedder
from hatchway.tools.search.settings import OFFLINE, SearchSettings
from hatchway.tools.search.static import StaticEmbedder, common_words
from hatchway.tools.search.wishes import Wishes

_DEPTH = 40
"""How far down each list is read."""
_MAX_TOKENS = 60
"""Of a tool's meaning, that are looked at one by one."""
_WORDS_WORTH = 3.0
"""What covering all of a query by rare words is worth, in standard deviations of meaning."""
_SATURATION = 2.2
"""The most BM25 gives a word, as a multiple of the word's rarity."""
_MATCH_WORTH = 0.3
"""What matching words count beside the whole text, where the embedder tells both."""
_WISH_WORTH = 1.0
"""What a common wish counts beside the whole text."""
_MAX_QUERY = 1000
_MAX_TERMS = 50
_NO_VECTOR = memoryview(b"")
"""Where words alone count."""
_HINT = "remove it where it is damaged: it is made anew; or set PYTOOLS_DB_PATH"
_VERSION = 3
_SCHEMA = """
CREATE TABLE IF NOT EXISTS tools (
    name TEXT PRIMARY KEY, digest TEXT NOT NULL, text TEXT NOT NULL, meaning TEXT NOT NULL,
    embedder TEXT NOT NULL, vector BLOB NOT NULL
);
"""
# of this connection alone: another process brings the file in line with its own tools, and must not take ours away
_WORDS = "CREATE VIRTUAL TABLE temp.words USING fts5(name UNINDEXED, text, tokenize = 'porter unicode61');"


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
        is_static = self._embed is not None and settings.embedder == OFFLINE
        self._static = StaticEmbedder(settings.dimensions) if is_static else None
        self._tokens: list[Any] = []
        self._wishes: Wishes | None = None
        self._maker = f"{settings.embedder} ({settings.dimensions})" if self._embed else ""
        self._place = place = ":memory:" if settings.database is None else str(settings.database)
        try:
            if settings.database is not None:
                Path(settings.database).parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(place, check_same_thread=False, isolation_level=None)
            self._prepare()
        except (OSError, sqlite3.Error) as e:
            raise InvalidSetting(f"the search index {place} cannot be opened: {e}", hint=_HINT) from None
        self._names: list[str] = []
        self._vectors: Any = None

    def _prepare(self) -> None:
        """Make the tables; those of another version are only an index, and are made anew."""
        (version,) = self._db.execute("PRAGMA user_version").fetchone()
        if version != _VERSION:
            self._db.executescript("DROP TABLE IF EXISTS main.tools; DROP TABLE IF EXISTS main.words;")
        self._db.executescript(f"{_SCHEMA} PRAGMA user_version = {_VERSION}; {_WORDS}")

    def sync(self, entries: Iterable[Entry]) -> int:
        """Bring the index in line with these tools; how many had to be read anew.

        Raises:
            ToolError: A remote embedder gave nothing.
            InvalidSetting: The database cannot be read or written.
        """
        wanted = {each.name: each for each in entries}
        digests = {name: self._digest(each) for name, each in wanted.items()}
        with self._reading():
            known: dict[str, str] = dict(self._db.execute("SELECT name, digest FROM tools"))
        changed = [name for name, digest in digests.items() if known.get(name) != digest]
        gone = [name for name in known if name not in wanted]
        # before the transaction: others wait for it, and a remote embedder takes its time
        rows = self._rows([wanted[name] for name in changed], digests)
        with self._reading():
            self._db.execute("BEGIN IMMEDIATE")
            self._db.executemany("DELETE FROM tools WHERE name = ?", [(name,) for name in (*gone, *changed)])
            self._db.executemany("INSERT OR REPLACE INTO tools VALUES (?, ?, ?, ?, ?, ?)", rows)
            self._load()
            self._db.execute("COMMIT")
        return len(changed)

    def load(self) -> int:
        """Search what the database holds, as it is; how many tools that are.

        Raises:
            InvalidSetting: It cannot be read, or was made by another embedder.
        """
        with self._reading():
            made_by = [maker for (maker,) in self._db.execute("SELECT DISTINCT embedder FROM tools")]
        if self._embed is not None and (others := [maker for maker in made_by if maker != self._maker]):
            raise InvalidSetting(
                f"the search index {self._place} was made by {others[0] or 'no embedder'}, not by {self._maker}",
                hint="set PYTOOLS_SYNC=true: it is brought up to date",
            )
        with self._reading():
            self._db.execute("BEGIN")
            self._load()
            self._db.execute("COMMIT")
        return len(self._names)

    @contextmanager
    def _reading(self) -> Generator[None]:
        try:
            yield
        except sqlite3.Error as e:
            raise InvalidSetting(f"the search index {self._place} cannot be used: {e}", hint=_HINT) from None
        finally:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")

    def _load(self) -> None:
        rows = self._db.execute("SELECT name, text, meaning, vector FROM tools ORDER BY name").fetchall()
        self._names = [name for name, _, _, _ in rows]
        self._db.execute("DELETE FROM words")
        self._db.executemany("INSERT INTO words VALUES (?, ?)", [(name, text) for name, text, _, _ in rows])
        if self._embed is None:
            return
        import numpy as np

        blobs = [np.frombuffer(vector, dtype=np.float32) for _, _, _, vector in rows]
        self._vectors = np.stack(blobs) if blobs else None
        self._wishes = None
        if self._static is not None and blobs:
            self._tokens = self._static.tokens([meaning for _, _, meaning, _ in rows])
        if self._static is not None and blobs and self._settings.wish_weight:
            self._wishes = Wishes([spelled(name) for name in self._names], self._vectors)

    def search(self, query: str, limit: int = 8) -> list[str]:
        """The names of the tools that fit best, best first."""
        query, weights = query[:_MAX_QUERY], self._settings
        scores: dict[str, float] = {}
        for weight, found in ((weights.bm25_weight, self._by_words), (weights.vector_weight, self._by_meaning)):
            for name, score in (found(query) if weight else {}).items():
                scores[name] = scores.get(name, 0.0) + weight * score
        return sorted(scores, key=lambda name: (-scores[name], name))[: max(0, limit)]

    def close(self) -> None:
        """Close the database. Legal twice."""
        self._db.close()

    def _digest(self, entry: Entry) -> str:
        told = f"{self._maker}\0{entry.text}\0{entry.meaning}"
        return hashlib.sha256(told.encode(errors="replace")).hexdigest()[:32]

    def _rows(self, entries: list[Entry], digests: Mapping[str, str]) -> list[tuple[object, ...]]:
        if not entries:
            return []
        vectors = self._embed([each.meaning for each in entries]) if self._embed else [_NO_VECTOR] * len(entries)
        return [
            (each.name, digests[each.name], each.text, each.meaning, self._maker, vector.tobytes())
            for each, vector in zip(entries, vectors, strict=True)
        ]

    def _by_words(self, query: str) -> dict[str, float]:
        """Tools that share words with the query, by how much of it they cover."""
        found = dict.fromkeys(re.findall(r"\w+", query.lower()))
        common = common_words()
        terms = ([term for term in found if term not in common] or list(found))[:_MAX_TERMS]
        if not terms:
            return {}
        asked = " OR ".join(f'"{term}"' for term in terms)
        sql = "SELECT name, -rank FROM words WHERE words MATCH ? ORDER BY rank LIMIT ?"  # rank is FTS5's bm25
        most = len(terms) * _SATURATION * math.log(len(self._names) + 2)
        return {name: _WORDS_WORTH * score / most for name, score in self._db.execute(sql, (asked, _DEPTH))}

    def _by_meaning(self, query: str) -> dict[str, float]:
        """The nearest tools, by how far each stands out from all."""
        if self._vectors is None or self._embed is None or not query.strip():
            return {}
        import numpy as np

        asked = self._embed([query], "query")[0]
        near = np.einsum("ij,j->i", self._vectors, asked)  # `@` would wake the threads of the BLAS
        apart = (near - near.mean()) / (spread := near.std() or 1.0)
        if self._wishes is not None:
            apart += self._settings.wish_weight * _WISH_WORTH * self._wishes.heard(asked)
        best = (-apart).argsort(kind="stable")[:_DEPTH]
        apart = apart[best]
        if self._static is not None:
            matches = self._static.matches(query, [self._tokens[number][:_MAX_TOKENS] for number in best])
            apart += _MATCH_WORTH * (matches - matches.mean()) / spread
        return {self._names[number]: float(score) for number, score in zip(best, apart, strict=True)}
