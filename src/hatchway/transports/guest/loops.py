"""Calls from event loops: collected during one turn of the loop and sent together when it turns to its selector.

Works in any selector loop, also those the action makes itself (`asyncio.run`), by wrapping the selector of a loop the
first time a tool is called in it. In other loops each call is sent at once and no standstill is ever claimed.
"""

import _thread
import asyncio

from .wakeup import Wakeup

OWN_DESCRIPTORS = 2  # a loop's own, which wakes it, and our channel

_LOOKED_AT = ("_ready", "_scheduled", "_selector", "_signal_handlers")
"""What tells whether a loop has anything to do; every loop of asyncio's own has it."""


class LoopCalls:
    """What one event loop has on the way."""

    def __init__(self, loop, exchange):
        self.loop = loop
        self.buffer = []
        self.pending = 0
        self._exchange = exchange
        self._is_watched = all(hasattr(loop, name) for name in _LOOKED_AT)
        if self._is_watched:
            loop._selector = _WatchedSelector(loop._selector, self, exchange)
        loop.add_reader(exchange.channel.fileno(), exchange.read_for_loop)

    async def call(self, head, arguments):
        """Make a call and wait for its answer without blocking the loop."""
        slot = _LoopSlot(self.loop)
        call_id = self._exchange.register(slot)
        self.pending += 1
        exchange = self._exchange
        told = exchange.trail.told(exchange.answers, _task_name(self.loop))
        self.buffer.append(b"%s%s%s}\n" % (head % call_id, arguments[:-2], told))
        if not self._is_watched:
            self.send_buffered()
        try:
            await slot.wakeup
            return slot.reply
        finally:
            self.pending -= 1
            if slot.reply is None:
                exchange.forget(call_id)
                exchange.trail.dropped.append(call_id.decode("ascii"))

    def is_all_there_is(self):
        """Whether nothing can happen in this interpreter until the running task goes on: then it may as well block."""
        loop = self.loop
        return self._is_watched and not (
            self.pending
            or loop._ready
            or loop._scheduled
            or loop._signal_handlers
            or len(loop._selector.get_map()) > OWN_DESCRIPTORS
            or self._exchange.is_shared()
        )

    def is_blocked(self):
        """Whether the thread asleep in this loop's selector cannot go on."""
        return not self.loop._ready

    def send_buffered(self, waits_on=None):
        """Send the collected calls; with `waits_on` the thread then sleeps."""
        if self.buffer:
            frames, self.buffer = b"".join(self.buffer), []
            self._exchange.flush()
            self._exchange.send(frames, waits_on)


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
    """A loop's selector that sends what was collected before the loop sleeps, and claims that it stands still if so."""

    def __init__(self, selector, calls, exchange):
        self._selector = selector
        self._calls = calls
        self._exchange = exchange
        self.get_map = selector.get_map  # asked for at every call

    def select(self, timeout=None):
        calls = self._calls
        if not calls.pending:
            return self._selector.select(timeout)
        if timeout is not None or calls.loop._ready or len(self._selector.get_map()) > OWN_DESCRIPTORS:
            calls.send_buffered()  # a timer or other descriptors than the loop's own and our channel may wake it
            return self._selector.select(timeout)
        exchange, me = self._exchange, _thread.get_ident()
        calls.send_buffered(waits_on=calls)
        exchange.waiting[me] = calls
        try:
            return exchange.wait_for_rest(self._selector.select) or self._selector.select(None)
        finally:
            exchange.waiting.pop(me, None)

    def __getattr__(self, name):
        return getattr(self._selector, name)


def _task_name(loop):
    task = asyncio.current_task(loop)
    return None if task is None else task.get_name()


def calls_here(exchange):
    """The calls of the running loop, made on first use and dropped with the loop; None where no loop runs."""
    loop = asyncio._get_running_loop()
    if loop is None:
        return None  # an action that awaits nothing but tools, see `awaiting.py`
    calls = exchange.loops.get(id(loop))
    if calls is None or calls.loop is not loop:
        for key, known in tuple(exchange.loops.items()):
            if known.loop.is_closed():
                del exchange.loops[key]
        calls = exchange.loops[id(loop)] = LoopCalls(loop, exchange)
    return calls
