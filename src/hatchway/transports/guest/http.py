"""The channel over HTTP, for a guest that reaches its host in no other way.

A lone call is posted to `/call`, and the response is the answer. Calls made while others are on the way are posted to
`/messages` together, and one request to `/answers` waits for whatever is answered first: any number of calls takes
three connections and no thread.
"""

import re
import selectors
import threading

from . import codec
from .http_client import HostRefused, Request

OVER = 410

_CALL = b'{"type":"function_call","call_id":"'
_LONE_CALL = re.compile(rb'\{"type":"function_call","call_id":"([^"]+)"[^\n]*,"idle":[0-9]+\}\n')


class HttpChannel:
    """A channel as `channel.py` has one. With `orders`, a pipe, a local host says through it what to execute."""

    def __init__(self, client, orders=None):
        self._client = client
        self._orders = orders
        self._received = 0
        self._posted = 0
        self._answered = 0
        self._is_polling = False
        self._counting = threading.Lock()
        self._waiting = set()
        self._selector = selectors.DefaultSelector()
        if orders is not None:
            self._selector.register(orders, selectors.EVENT_READ)

    def fileno(self):
        """Readable when `receive` has something to read."""
        return self._selector.fileno()

    def is_readable(self, seconds=0.0):
        """Whether something is there, waiting up to so many seconds for it."""
        return bool(self._selector.select(seconds))

    def send(self, data):
        """Post whole messages; the caller makes sure that no other thread does at the same time."""
        if data.startswith(b'{"type":"execution_'):
            self._client.post("/complete", data)
        elif data.startswith(b'{"type":"ready"'):
            self._orders.send(data)
        else:
            self._send_calls(data)

    def receive(self):
        """What has come, decoded; maybe nothing. Raises EOFError when the host has ended the execution."""
        for key, _ in self._selector.select():
            if key.data is None:
                return self._orders.receive()
            try:
                return self._settle(key.data)
            except HostRefused as e:
                if e.status == OVER:
                    raise EOFError("the host has ended this execution") from None
                raise
        return []

    def close(self):
        """Give every descriptor back."""
        for request in self._waiting:
            request.connection.close()
        self._waiting.clear()
        self._selector.close()
        self._client.close()
        if self._orders is not None:
            self._orders.close()

    def _send_calls(self, data):
        lone = _LONE_CALL.fullmatch(data) if self._posted == self._answered and not self._waiting else None
        if lone is not None:
            self._begin(Request(self._client, "/call", data, lone.group(1).decode("ascii")))
            return
        self._client.post("/messages", data)
        with self._counting:
            self._posted += data.count(b"\n" + _CALL) + data.startswith(_CALL)
        self._poll()

    def _poll(self):
        """Ask for answers, unless none is due or somebody asks already."""
        with self._counting:
            if self._is_polling or self._posted <= self._answered:
                return
            self._is_polling = True
        self._begin(Request(self._client, "/answers", b'{"received":%d}' % self._received))

    def _begin(self, request):
        request.send()
        self._waiting.add(request)
        self._selector.register(request.connection.sock, selectors.EVENT_READ, request)

    def _settle(self, request):
        """The messages in a request's response; a request without an answer is sent again."""
        self._selector.unregister(request.connection.sock)
        self._waiting.discard(request)
        if request.call_id is None:
            return self._answers(request)
        try:
            answer = request.answer()
        except HostRefused as e:
            if e.status == OVER:
                raise
            return [_error(request.call_id, "RuntimeError", str(e))]
        if answer is None:
            self._begin(request)
            return []
        return [_message(request.call_id, codec.loads(answer))]

    def _answers(self, request):
        answer = request.answer()
        if answer is None:
            self._begin(request)
            return []
        batch = codec.loads(answer)
        self._received = batch["received"]
        with self._counting:
            self._answered += len(batch["answers"])
            self._is_polling = False
        self._poll()
        return batch["answers"]


def _message(call_id, answer):
    """The response to a lone call as the message other channels get."""
    error = answer.get("error")
    if error is None:
        return {"type": "result", "call_id": call_id, "value": answer["result"]}
    if isinstance(error, str):
        return _error(call_id, "RuntimeError", error)
    return _error(call_id, error["type"], error["message"])


def _error(call_id, kind, message):
    return {"type": "error", "call_id": call_id, "error_type": kind, "message": message}
