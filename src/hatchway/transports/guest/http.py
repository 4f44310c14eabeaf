"""The channel over HTTP, for a guest that reaches its host in no other way.

A lone call is posted to `/call`, and the response is the answer. Calls made while others are on the way are posted to
`/messages` together, and one request to `/answers` waits for whatever is answered first: any number of calls takes
three connections and no thread.
"""

import re
import selectors
import threading

from . import codec
from .http_client import HostRefused

_CALL = b'{"type":"function_call","call_id":"'
_LONE_CALL = re.compile(rb'\{"type":"function_call","call_id":"([^"]+)"[^\n]*,"idle":[0-9]+\}\n')


class HttpChannel:
    """A channel as `channel.py` has one. Any thread may send; one thread at a time may receive."""

    def __init__(self, client):
        self._client = client
        self._selector = selectors.DefaultSelector()
        self._lock = threading.Lock()
        self._is_asking = False
        self._posted = self._answered = 0
        self._received = 0

    def fileno(self):
        """Readable when `receive` has something to read."""
        return self._selector.fileno()

    def is_readable(self, seconds=0.0):
        """Whether something is there, waiting up to so many seconds for it."""
        return bool(self._selector.select(seconds))

    def send(self, data):
        """Post whole messages; the caller makes sure that no other thread does at the same time."""
        lone = None if self._selector.get_map() or self._posted > self._answered else _LONE_CALL.fullmatch(data)
        if lone is not None:
            self._begin("/call", data, lone.group(1).decode("ascii"))
            return
        self._client.post("/messages", data)
        with self._lock:
            self._posted += data.startswith(_CALL) + data.count(b"\n" + _CALL)
        self._ask()

    def receive(self):
        """What has come, decoded; maybe nothing. Raises EOFError when the host has ended the execution."""
        self._ask()
        for key, _ in self._selector.select():
            if key.fileobj.has_response():
                self._selector.unregister(key.fileobj)
                return self._settle(key.fileobj, *key.data)
        return []

    def close(self):
        """Give every descriptor back. Legal twice."""
        for key in tuple((self._selector.get_map() or {}).values()):
            key.fileobj.close()
        self._selector.close()
        self._client.close()

    def _ask(self):
        """Have one request wait for answers, if any are due that way."""
        with self._lock:
            if self._is_asking or self._posted <= self._answered:
                return
            self._is_asking = True
        try:
            self._begin("/answers", b'{"received":%d}' % self._received, None)
        except BaseException:
            self._is_asking = False
            raise

    def _begin(self, path, body, call_id):
        connection = self._client.send(path, body)
        self._selector.register(connection, selectors.EVENT_READ, (body, call_id))

    def _settle(self, connection, body, call_id):
        """The messages in a response; a request that got no answer is sent again."""
        if call_id is None:
            return self._answers(connection)
        try:
            answer = self._client.answer(connection)
        except HostRefused as e:
            return [_error(call_id, "RuntimeError", str(e))]
        if answer is None:
            self._begin("/call", body, call_id)
            return []
        return [_message(call_id, codec.loads(answer))]

    def _answers(self, connection):
        batch = {"received": self._received, "answers": []}
        try:
            answer = self._client.answer(connection)
            if answer is not None:
                batch = codec.loads(answer)
        finally:
            with self._lock:
                self._is_asking = False
                self._received = batch["received"]
                self._answered += len(batch["answers"])
        self._ask()
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
