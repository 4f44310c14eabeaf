"""The stdio transport: JSON lines over a server's pipes, whoever started it and behind whatever wall."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Self

import anyio
from mcp.shared.message import SessionMessage

from hatchway.tools.mcp.mending import mend
from hatchway.tools.mcp.messages import message_of
from hatchway.tools.mcp.server_process import GRACE_SECONDS, ServerProcess, end

_CHUNK = 1 << 16
MAX_MESSAGE = 64 << 20
"""Bytes of one message; a server that never ends its line is cut off."""
_KEPT_ERRORS = 4000
"""Characters of the server's last words that are kept."""


class Pipes:
    """The pipes of one server, and what was heard on them that is no message."""

    def __init__(self, process: ServerProcess) -> None:
        self._process = process
        self._errors: deque[str] = deque()
        self._kept = 0
        self.garbage = ""
        """The first line of its output that was no message."""
        self.is_over = False
        """Whether it hung up."""
        self._is_sent_away = False
        """Whether it ends because it was told to: then how it ends says nothing about it."""

    def last_words(self) -> str:
        """The end of what it wrote to its standard error, and how it ended."""
        code = None if self._is_sent_away else self._process.returncode
        ended = "" if code is None else f"exit code {code}" if code >= 0 else f"killed by signal {-code}"
        said = "".join(self._errors)[-_KEPT_ERRORS:].strip()
        return "; ".join(part for part in (ended, self.noise(), said and f"its last words: {said}") if part)

    def noise(self) -> str:
        """What it wrote that is no message; empty where there was none."""
        return f"it wrote what is no MCP message: {self.garbage!r}" if self.garbage else ""

    @asynccontextmanager
    async def streams(self) -> AsyncGenerator[Any]:
        """What the SDK calls a transport: it reads and writes the pipes itself, with no task and no queue between."""
        listening = asyncio.create_task(self._listen())
        try:
            yield _Answers(self, self._process), _Requests(self, self._process)
        finally:
            await asyncio.shield(self._close(listening))

    async def _close(self, listening: asyncio.Task[None]) -> None:
        self._is_sent_away = not self.is_over and self._process.returncode is None
        await end(self._process)
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)

    async def _listen(self) -> None:
        """Read its standard error to the end, so that it never stands still, and keep a little of it."""
        reader = self._process.stderr
        while reader is not None and (chunk := await reader.read(_CHUNK)):
            text = chunk.decode(errors="replace")
            self._errors.append(text)
            self._kept += len(text)
            while self._kept - len(self._errors[0]) > _KEPT_ERRORS:
                self._kept -= len(self._errors.popleft())


class _Stream:
    """The part of both directions that the SDK asks for and pipes do not need: the process ends with its `Pipes`."""

    def __init__(self, pipes: Pipes, process: ServerProcess) -> None:
        self._pipes, self._process = pipes, process

    async def aclose(self) -> None:
        pass

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass


class _Answers(_Stream):
    """What the server writes, message by message."""

    def __init__(self, pipes: Pipes, process: ServerProcess) -> None:
        super().__init__(pipes, process)
        assert process.stdout is not None
        self._reader = process.stdout
        self._lines: deque[bytes] = deque()
        self._rest = bytearray()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def receive(self) -> SessionMessage:
        """The next message; lines that are none are noted and passed over."""
        while True:
            while self._lines:
                if (message := self._message(self._lines.popleft())) is not None:
                    return message
            await self._read()

    def _message(self, line: bytes) -> SessionMessage | None:
        if not line.strip():
            return None
        found = message_of(line)
        if found is None:
            self._pipes.garbage = self._pipes.garbage or line[:120].decode(errors="replace")
            return None
        message = SessionMessage(found)
        mend(message)
        return message

    async def _read(self) -> None:
        try:
            chunk = await self._reader.read(_CHUNK)
        except ConnectionError:
            chunk = b""
        if not chunk:
            self._pipes.is_over = True
            raise anyio.EndOfStream
        self._rest += chunk
        if b"\n" in chunk:
            *lines, self._rest = self._rest.split(b"\n")
            self._lines.extend(map(bytes, lines))
        if len(self._rest) > MAX_MESSAGE:
            self._pipes.garbage = self._pipes.garbage or f"a line of more than {MAX_MESSAGE} bytes"
            self._pipes.is_over = True
            self._process.kill()
            raise anyio.EndOfStream


class _Requests(_Stream):
    """What is written to the server."""

    async def send(self, item: SessionMessage) -> None:
        writer, text = self._process.stdin, item.message.model_dump_json(by_alias=True, exclude_unset=True)
        assert writer is not None
        try:
            writer.write(text.encode() + b"\n")
            await writer.drain()
        except (OSError, RuntimeError):
            # it does not listen any more: it may say why, and then its open requests end
            asyncio.get_running_loop().call_later(GRACE_SECONDS, self._kill)
            raise anyio.BrokenResourceError from None

    def _kill(self) -> None:
        if self._process.returncode is None:
            self._process.kill()
