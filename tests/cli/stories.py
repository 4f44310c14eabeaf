"""Runs in a journal, written by hand: what the commands that read one are shown."""

import asyncio
from pathlib import Path
from typing import Any

from hatchway.core.errors import CodeRuntimeError, HatchwayError
from hatchway.core.results import ExecutionResult
from hatchway.journal.book import RunBook
from hatchway.journal.entries import RunHead
from hatchway.journal.store import Journal


class Stories:
    """Writes runs into the journal a command finds in its directory."""

    def __init__(self, cwd: Path) -> None:
        self.journal = Journal(cwd / ".hatchway" / "journal.db")

    def begin(self, run_id: str, code: str = "1") -> RunBook:
        """A run that is being driven until its book is given back."""
        return self.journal.begin(run_id, RunHead(code=code), sandbox="monty", tier="language")

    def paused(self, run_id: str, *texts: str, code: str = "1") -> None:
        """A run that stands at calls of `send`."""
        book = self.begin(run_id, code)
        for number, text in enumerate(texts, 1):
            book.note("pending", f"1.{number}", call("send", text=text))
        asyncio.run(book.paused("paused", None))
        book.give_back()

    def ended(self, run_id: str, end: ExecutionResult | HatchwayError | None = None, code: str = "1") -> None:
        """A run that printed, called and ended."""
        book = self.begin(run_id, code)
        book.note("output", "", {"stream": "stdout", "text": "hi\n"})
        asyncio.run(book.started("1.1", call("price", item="tea")))
        book.note("done", "1.1", {"value": 3.5, "seconds": 0.004})
        asyncio.run(book.ended(end or ExecutionResult(output=3.5, stdout="hi\n")))
        book.give_back()

    def failed(self, run_id: str) -> None:
        """A run whose code failed."""
        self.ended(run_id, CodeRuntimeError("ZeroDivisionError: division by zero", stdout="hi\n"))


def call(name: str, **kwargs: Any) -> dict[str, Any]:
    """A call as the body of an entry."""
    return {"name": name, "args": [], "kwargs": kwargs, "digest": "d"}
