"""The stdio transport: JSON lines over a server's pipes, whoever started it and behind whatever wall."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio
from mcp.shared.message import SessionMessage
from mcp.types import jsonrpc_message_adapter

from hatchway.tools.mcp.server_process import ServerProcess, end

_CHUNK = 1 << 16
MAX_MESSAGE = 64 << 20
"""Bytes of one message; a server that never ends its line is cut off."""
_KEPT_ERRORS = 4000
"""Characters of the server's last words that are kept."""
_log = logging.getLogger("hatchway")


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

    def last_words(self) -> str:
        """The end of what it wrote to its standard error, and how it ended."""
        code = self._process.returncode
        ended = "" if code is None else f"exit code {code}" if code >= 0 else f"killed by signal {-code}"
        said = "".join(self._errors)[-_KEPT_ERRORS:].strip()
        spoke = f"it wrote what is no MCP message: {self.garbage!r}" if self.garbage else ""
        return "; ".join(part for part in (ended, spoke, said and f"its last words: {said}") if part)

    @asynccontextmanager
    async def streams(self) -> AsyncGenerator[Any]:
        """What the SDK calls a transport."""
        into, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        write, out_of = anyio.create_memory_object_stream[SessionMessage](0)
        tasks = [
            asyncio.create_task(self._read(into)),
            asyncio.create_task(self._write(out_of, into)),
            asyncio.create_task(self._listen()),
        ]
        try:
            async with read, write:
                yield read, write
        finally:
            await asyncio.shield(self._close(tasks))

    async def _close(self, tasks: list[asyncio.Task[None]]) -> None:
        await end(self._process)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _read(self, into: Any) -> None:
        reader, buffer = self._process.stdout, bytearray()
        assert reader is not None
        async with into:
            with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, ConnectionError):
                while chunk := await reader.read(_CHUNK):
                    buffer += chunk
                    *lines, rest = buffer.split(b"\n") if b"\n" in chunk else [buffer]
                    for line in lines:
                        await self._take(bytes(line), into)
                    buffer = bytearray(rest)
                    if len(buffer) > MAX_MESSAGE:
                        self.garbage = self.garbage or f"a line of more than {MAX_MESSAGE} bytes"
                        self._process.kill()
                        break
            self.is_over = True

    async def _take(self, line: bytes, into: Any) -> None:
        if not line.strip():
            return
        try:
            message = jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValueError:
            self.garbage = self.garbage or line[:120].decode(errors="replace")
            return
        await into.send(SessionMessage(message))

    async def _write(self, out_of: Any, into: Any) -> None:
        writer = self._process.stdin
        assert writer is not None
        try:
            async with out_of:
                async for each in out_of:
                    text = each.message.model_dump_json(by_alias=True, exclude_unset=True)
                    writer.write(text.encode() + b"\n")
                    await writer.drain()
        except (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
            await into.aclose()  # it does not listen any more: its open requests end here

    async def _listen(self) -> None:
        """Read its standard error to the end, so that it never stands still, and keep a little of it."""
        reader = self._process.stderr
        while reader is not None and (chunk := await reader.read(_CHUNK)):
            text = chunk.decode(errors="replace")
            self._errors.append(text)
            self._kept += len(text)
            while self._kept - len(self._errors[0]) > _KEPT_ERRORS:
                self._kept -= len(self._errors.popleft())
