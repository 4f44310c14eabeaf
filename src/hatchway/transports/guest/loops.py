"""Calls from event loops: collected during one turn of the loop and sent together when it turns to its selector.

Works in any selector loop, also those the action makes itself (`asyncio.run`), by wrapping the selector of a loop the
first time a tool is called in it. In other loops each call is sent at once and no standstill is ever claimed.
"""

import _thread
import asyncio

from .wakeup import Wakeup


class LoopCalls:
    """What one event loop has on the way."""

    def __init__(self, loop, exchange):
        self.loop = loop
        self._exchange = exchange
        self._buffer = []
        self._pending = 0
        self._is_watched = hasattr(loop, "_selector") and hasattr(loop, "_ready")
        if self._is_watched:
            loop._selector = _WatchedSelector(loop._selector, self)
        loop.add_reader(exchange.channel.fileno(), exchange.read_for_loop)

    async def call(self, head, arguments):
        """Make a call and wait for its answer without blocking the loop."""
        slot = _LoopSlot(self.loop)
        call_id = self._exchange.register(slot)
        self._pending += 1
        self._buffer.append(head % call_id + arguments)
        if not self._is_watched:
            self.send_buffered()
        try:
            await slot.wakeup
            return slot.reply
        finally:
            self._pending -= 1
            if slot.reply is None:
                self._exchange.forget(call_id)

    def is_blocked(self):
        """Whether the thread asleep in this loop's selector cannot go on."""
        return not self.loop._ready

    def send_buffered(self):
        """Send the collected calls."""
        if self._buffer:
            frames, self._buffer = b"".join(self._buffer), []
            self._exchange.flush()
            self._exchange.send(frames)

    def before_select(self, timeout):
        """Send what was collected, and say so if the loop is about to sleep with nothing but calls to wait for."""
        exchange = self._exchange
        if self._pending == 0:
            return False
        may_claim = timeout is None and not self.loop._ready and self._watches_nothing_else()
        if self._buffer:
            frames, self._buffer = b"".join(self._buffer), []
            exchange.flush()
            exchange.send(frames, waits_on=self if may_claim else None)
        elif may_claim:
            exchange.waiting[_thread.get_ident()] = self
        return may_claim

    def rest(self, select):
        """Sleep in short turns until the other threads have come to rest and the host was told so."""
        return self._exchange.wait_for_rest(select)

    def after_select(self):
        """The loop is awake."""
        self._exchange.waiting.pop(_thread.get_ident(), None)

    def _watches_nothing_else(self):
        return len(self.loop._selector.get_map()) <= 2  # its own wake-up pipe and our channel


class _LoopSlot:
    """As `Slot`, for a task of an event loop."""

    __slots__ = ("_loop", "reply", "wakeup")

    def __init__(self, loop):
        self._loop = loop
        self.reply = None
        self.wakeup = Wakeup(loop)

    def put(self, message):
        """Take the answer; True when the caller, in the loop's own thread, is to wake the task."""
        self.reply = message
        if asyncio._get_running_loop() is self._loop:
            return True
        try:
            self._loop.call_soon_threadsafe(self.wakeup.wake)
        except RuntimeError:
            pass  # the loop was closed: nobody waits any more
        return False


class _WatchedSelector:
    def __init__(self, selector, calls):
        self._selector = selector
        self._calls = calls

    def select(self, timeout=None):
        if not self._calls.before_select(timeout):
            return self._selector.select(timeout)
        try:
            return self._calls.rest(self._selector.select) or self._selector.select(timeout)
        finally:
            self._calls.after_select()

    def __getattr__(self, name):
        return getattr(self._selector, name)


def calls_of(loop, exchange):
    """The calls of a loop, made on first use and dropped with the loop."""
    calls = exchange.loops.get(id(loop))
    if calls is None or calls.loop is not loop:
        for key, known in tuple(exchange.loops.items()):
            if known.loop.is_closed():
                del exchange.loops[key]
        calls = exchange.loops[id(loop)] = LoopCalls(loop, exchange)
    return calls
