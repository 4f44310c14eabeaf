"""An event loop in a thread of its own, for callers that wait: ADK calls executors without `await`."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")
NAME = "hatchway-google-adk"


class LoopThread:
    """Runs coroutines for threads that wait for them; started when first used."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of a coroutine; its error is raised here."""
        with self._starting:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=_serve, args=(self._loop,), name=NAME, daemon=True)
                self._thread.start()
            loop = self._loop
        return asyncio.run_coroutine_threadsafe(work, loop).result()

    @property
    def is_running(self) -> bool:
        """Whether anything was run, and it was not stopped since."""
        return self._loop is not None

    def stop(self) -> None:
        """End the loop and its thread. Legal twice."""
        with self._starting:
            loop, self._loop = self._loop, None
            thread, self._thread = self._thread, None
        if loop is not None and thread is not None:
            loop.call_soon_threadsafe(loop.stop)
            if thread is not threading.current_thread():  # a garbage collection may come to stand there
                thread.join()


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    with asyncio.Runner(loop_factory=lambda: loop) as runner:  # ends what is still under way, as `asyncio.run` does
        runner.get_loop().run_forever()
