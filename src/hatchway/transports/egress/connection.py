"""One connection from a guest to the proxy: requests are read, checked and served, one after the other."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import h11

from hatchway.core.errors import ToolDenied, ToolError
from hatchway.core.network import Target
from hatchway.transports.egress import forms, replies
from hatchway.transports.egress.authority import CertificateAuthority
from hatchway.transports.egress.fetch import join_headers
from hatchway.transports.egress.replies import Answer

Serve = Callable[[Mapping[str, Any]], Awaitable[Any]]
"""Makes one request, given the arguments of `fetch`; gives what `fetch` gives."""
HEAD_BYTES = 64 * 1024
BODY_BYTES = 16 * 1024 * 1024
READ_BYTES = 64 * 1024
IDLE_SECONDS = 5.0
"""How long a kept connection may stand between two requests."""
REQUEST_SECONDS = 30.0
"""How long a guest may take to send a request, or to read an answer."""
LINGER_SECONDS = 0.5
"""How long what a guest still sends is thrown away, so that it reads the answer before the end."""


class Room:
    """How many bytes of bodies all connections of one proxy may hold together."""

    def __init__(self, size: int) -> None:
        self.left = size

    def take(self, size: int) -> None:
        """Reserve.

        Raises:
            TooLarge: There is no room.
        """
        if size > self.left:
            raise TooLarge
        self.left -= size


class TooLarge(Exception):
    """A body is larger than the proxy takes."""


class GuestConnection:
    """A connection that a guest opened.

    Args:
        reader: What the guest sends.
        writer: What it is sent.
        authority: Signs for the hosts it speaks with.
        check_tunnel: Raises ToolDenied for a host that may not be spoken with at all.
        serve: Makes the requests.
        room: Where bodies are held.
    """

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        *,
        authority: CertificateAuthority,
        check_tunnel: Callable[[Target], Awaitable[None]],
        serve: Serve,
        room: Room,
    ) -> None:
        self._reader, self._writer = reader, writer
        self._authority = authority
        self._check_tunnel = check_tunnel
        self._serve_one = serve
        self._room = room
        self._held = 0
        self._http = _new_http()
        self._tunnel: Target | None = None
        self._server_name: str | None = None
        self._method = b""
        self.served = 0
        """Requests that were handed on."""

    async def run(self) -> None:
        """Serve until either side is done."""
        try:
            while await self._next_request():
                self._free()
        except (ConnectionError, ssl.SSLError, TimeoutError, h11.LocalProtocolError):
            pass  # the guest is gone, slow or not speaking TLS: there is nobody to answer
        finally:
            self._free()
            self._writer.close()

    async def _next_request(self) -> bool:
        """Serve one request; whether another one may follow."""
        try:
            async with asyncio.timeout(IDLE_SECONDS + REQUEST_SECONDS):
                request = await self._event(first_seconds=IDLE_SECONDS)
                if not isinstance(request, h11.Request):
                    return False
                self._method = request.method
                body = await self._body()
        except h11.RemoteProtocolError as e:
            return await self._refuse(replies.error(e.error_status_hint, f"the request is not valid HTTP: {e}"))
        except TooLarge:
            return await self._refuse(replies.error(413, f"the body is larger than {BODY_BYTES} bytes"))
        try:
            if request.method == b"CONNECT":
                return await self._open_tunnel(request)
            answer = await self._answered(request, body)
        except forms.BadRequest as e:
            return await self._refuse(replies.error(400, str(e)))
        except ToolDenied as e:
            return await self._refuse(replies.error(403, e.message, replies.REFUSED))
        return await self._write(answer)

    async def _answered(self, request: h11.Request, body: bytes) -> Answer:
        url = forms.url_of(request, self._tunnel)
        if self._tunnel is not None and self._server_name not in (None, self._tunnel.host):
            raise ToolDenied(f"{self._tunnel} is refused: the TLS server name is {self._server_name!r}")
        arguments = {
            "url": url,
            "method": request.method.decode("ascii"),
            "headers": join_headers(forms.end_to_end(request)),
            "body": body or None,
            "follow_redirects": False,  # the guest's client does, and each step is a request of its own
        }
        self.served += 1
        try:
            answer = replies.answer(await self._serve_one(arguments))
        except ToolDenied as e:
            return replies.error(403, e.message, replies.REFUSED)
        except (ToolError, ValueError) as e:
            return replies.error(502, str(e))
        try:
            self._hold(len(answer.body))
        except TooLarge:
            return replies.error(502, "the replies not read yet are too large together")
        return answer

    async def _open_tunnel(self, request: h11.Request) -> bool:
        target = forms.connect_target(request)
        if self._tunnel is not None:
            raise forms.BadRequest("there is no tunnel inside a tunnel")
        await self._check_tunnel(target)
        self._writer.write(self._http.send(h11.Response(status_code=200, headers=[], reason=b"Connected")) or b"")
        if self._http.trailing_data[0]:
            return False  # it did not wait for the answer: what it sent is lost to TLS
        self._tunnel, self._http = target, _new_http()
        context = self._authority.context(target.host, self._on_server_name)
        await self._writer.start_tls(context, ssl_handshake_timeout=REQUEST_SECONDS)
        return True

    def _on_server_name(self, name: str | None) -> None:
        self._server_name = None if name is None else name.lower().rstrip(".")

    async def _body(self) -> bytes:
        got = bytearray()
        while not isinstance(event := await self._event(), h11.EndOfMessage):
            if not isinstance(event, h11.Data):
                raise h11.RemoteProtocolError("the request ends in its middle")
            self._hold(len(event.data))
            got += event.data
            if len(got) > BODY_BYTES:
                raise TooLarge
        return bytes(got)

    async def _event(self, first_seconds: float = REQUEST_SECONDS) -> Any:
        while (event := self._http.next_event()) is h11.NEED_DATA:
            if self._http.they_are_waiting_for_100_continue:
                self._writer.write(self._http.send(h11.InformationalResponse(status_code=100, headers=[])) or b"")
            async with asyncio.timeout(first_seconds):
                self._http.receive_data(await self._reader.read(READ_BYTES))
            first_seconds = REQUEST_SECONDS
        return event

    async def _refuse(self, answer: Answer) -> bool:
        """Answer and close: what no call counts must cost a connection."""
        await self._write(answer, is_last=True)
        try:
            async with asyncio.timeout(LINGER_SECONDS):
                while await self._reader.read(READ_BYTES):
                    pass
        except TimeoutError:
            pass
        return False

    async def _write(self, answer: Answer, *, is_last: bool = False) -> bool:
        """Send an answer; whether the connection can be used again."""
        http = self._http
        if http.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            return False
        has_body = self._method != b"HEAD" and answer.status not in (204, 304)
        length = str(len(answer.body)) if has_body else answer.length if self._method == b"HEAD" else None
        framing = [("content-length", length)] if length is not None else []
        if is_last or http.their_state is not h11.DONE:
            framing.append(("connection", "close"))
        headers = [(n.encode("ascii"), v.encode("latin-1", "replace")) for n, v in (*answer.headers, *framing)]
        response = h11.Response(status_code=answer.status, headers=headers, reason=answer.reason.encode("ascii"))
        events = [response, *([h11.Data(data=answer.body)] if has_body else []), h11.EndOfMessage()]
        self._writer.write(b"".join(http.send(event) or b"" for event in events))
        async with asyncio.timeout(REQUEST_SECONDS):
            await self._writer.drain()
        if {*http.states.values()} != {h11.DONE}:
            return False
        http.start_next_cycle()
        return True

    def _hold(self, size: int) -> None:
        self._room.take(size)
        self._held += size

    def _free(self) -> None:
        self._room.left += self._held
        self._held = 0


def _new_http() -> h11.Connection:
    return h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_BYTES)
