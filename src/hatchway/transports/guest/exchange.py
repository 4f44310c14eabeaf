"""Calls out, answers in, from any thread. There is no reader thread: whoever needs an answer reads.

The first thread that waits is the leader: it reads the channel and hands every answer to its slot. The others
follow: they sleep until their answer is there or until they are made the leader. An event loop takes part by its
selector (`loops.py`): it reads only while no thread leads.
"""

import _thread

from . import codec, idleness
from .trail import Trail

_ELECT = -1  # in place of a thread's id: handed on but not awake yet, and its old holder may call again meanwhile
FIRST_LOOK, LAST_LOOK = 0.002, 0.1  # seconds between looks at whether all other threads have come to rest


class Closed(RuntimeError):
    """A tool was called where no call can be made: after its action, or in a forked process."""


class Slot:
    """Where one answer is put. `wake` is held while its thread sleeps."""

    __slots__ = ("is_leader", "reply", "wake")

    def __init__(self):
        self.reply = None
        self.is_leader = False
        self.wake = None

    def put(self, message):
        """Take the answer and wake whoever waits for it."""
        self.reply = message
        self.rouse()
        return False

    def rouse(self):
        """Let the sleeping thread look."""
        wake = self.wake
        if wake is not None and wake.locked():
            wake.release()

    def is_blocked(self):
        """Whether the thread that waits here cannot go on."""
        return self.reply is None


class Exchange:
    """The guest's end of the channel, shared by all threads and event loops of one interpreter."""

    def __init__(self, channel, flush):
        self.channel = channel
        self.flush = flush
        self.action = 0
        self.answers = 0
        self.value_bytes = 0
        self.waiting = {}
        """Who is blocked on the host: thread id -> its slot, or the loop whose selector it sleeps in."""
        self.loops = {}
        self.trail = Trail()
        self._lock = _thread.allocate_lock()
        self._sending = _thread.allocate_lock()
        self._slots = {}
        self._followers = []
        self._leader = 0
        self._made = 0
        self._closed = "no action is running"
        self._strangers = frozenset()
        self._claimed = -1
        self._request = Slot()

    def open(self, action, value_bytes):
        """Let the action's calls through; threads left over from earlier ones stay shut out."""
        self.action, self.value_bytes = action, value_bytes
        self.answers, self._claimed, self._made = 0, -1, 0
        self._strangers = frozenset(idleness.other_threads())
        self._closed = None

    def close(self, reason):
        """Refuse further calls and fail those that wait."""
        with self._lock:
            self._closed = reason
            slots, self._slots = self._slots, {}
        for slot in slots.values():
            if slot.put({"type": "error", "error_type": "RuntimeError", "message": reason}):
                slot.wakeup.wake()

    def after_fork_in_child(self):
        """A forked process must not speak on its parent's channel."""
        self._lock, self._sending = _thread.allocate_lock(), _thread.allocate_lock()
        self._slots, self._followers = {}, []
        self._closed = "tools can be called only in the process the action started in"
        self.channel.close()

    def call(self, head, arguments):
        """Make a call and wait for its answer, in the calling thread."""
        if self.loops or _thread._count() or self._leader or self._closed is not None:  # as `is_shared`
            self.flush()
            return self._call_among_others(head, arguments)
        return self.call_alone(head, arguments)

    def is_shared(self):
        """Whether a call must mind others: threads, a call that a signal interrupted, or that none can be made."""
        return _thread._count() or self._leader or self._closed is not None

    def call_alone(self, head, arguments):
        """As above, for the one thread there is: no lock, no look at others, the claim rides on the call."""
        self.flush()
        self._made += 1
        call_id = b"%d.%d" % (self.action, self._made)
        self._leader = _thread.get_ident()
        try:
            told = self.trail.told()
            self.channel.send(b'%s%s%s,"idle":%d}\n' % (head % call_id, arguments[:-2], told, self.answers))
            lines = self.channel.receive()  # not decoded: the answer can be told from its first bytes
            expected = b'{"type":"result","call_id":"%s","value":' % call_id
            if len(lines) == 1 and type(lines[0]) is bytes and lines[0].startswith(expected):
                self.answers += 1
                return {"type": "result", "value": codec.loads(lines[0][len(expected) : -2])}
            return self._answer_among(lines, call_id)
        finally:
            self._leader = 0

    def _answer_among(self, lines, call_id):
        """The answer when something else came as well: an error, half a message, an answer nobody waits for."""
        slot = self._slots[call_id.decode("ascii")] = Slot()
        try:
            self._hand_out(lines)
            while slot.reply is None:
                self._claim_alone(slot)
                self._hand_out(self.channel.receive())
        finally:
            self.forget(call_id)
        return slot.reply

    def _claim_alone(self, slot):
        self.waiting[self._leader] = slot
        self.claim()
        del self.waiting[self._leader]

    def _call_among_others(self, head, arguments):
        slot, me = Slot(), _thread.get_ident()
        if self._leader == me:
            raise Closed("a tool cannot be called by a signal handler that interrupted another call")
        if self.loops:
            self.send_buffered()
        call_id = self.register(slot)
        leads = self._enter(slot)
        try:
            told = self.trail.told(self.answers, _thread_name())
            self.send(b"%s%s%s}\n" % (head % call_id, arguments[:-2], told), waits_on=slot)
            if leads:
                self._lead(slot)
            else:
                self._follow(slot)
        finally:
            self.waiting.pop(me, None)
            self._leave(slot, call_id)
        return slot.reply

    def tell(self, message):
        """Send the host a message that nobody answers. Raises Closed."""
        if self._closed is not None:
            raise Closed(self._closed)
        if self._strangers and _thread.get_ident() in self._strangers:
            raise Closed("the action that started this thread is over")
        if self._leader == _thread.get_ident():
            raise Closed("nothing can be shown by a signal handler that interrupted a call")
        self.flush()
        if self.loops:
            self.send_buffered()
        self.send(message)

    def next_request(self):
        """The host's next order, waited for in the main thread."""
        slot = self._request
        if self._enter(slot):
            self._lead(slot)
        else:
            self._follow(slot)
        self._leave(slot, None)
        self._request = Slot()
        return slot.reply

    def register(self, slot):
        """An id for a new call whose answer goes to `slot`. Raises Closed."""
        with self._lock:
            if self._closed is not None:
                raise Closed(self._closed)
            if self._strangers and _thread.get_ident() in self._strangers:
                raise Closed("the action that started this thread is over")
            self._made += 1
            call_id = b"%d.%d" % (self.action, self._made)
            self._slots[call_id.decode("ascii")] = slot
        return call_id

    def forget(self, call_id):
        """Nobody waits for this answer any more."""
        with self._lock:
            self._slots.pop(call_id.decode("ascii"), None)

    def send(self, frames, waits_on=None):
        """Send messages, each ended by `}` and a newline. A thread that then waits says on what, and on the last
        message that everything stands still, if it does: not before its own message is out, or others would."""
        with self._sending:
            self._claimed = -1
            if waits_on is not None:
                self.waiting[_thread.get_ident()] = waits_on
                if idleness.all_blocked(self.waiting):
                    self._claimed = self.answers
                    frames = b'%s,"idle":%d}\n' % (frames[:-2], self.answers)
            self.channel.send(frames)

    def claim(self):
        """Tell the host that nothing can go on, once per standstill."""
        with self._sending:
            if self._claimed != self.answers and idleness.all_blocked(self.waiting):
                self._claimed = self.answers
                self.channel.send(b'{"type":"idle","answers":%d}\n' % self.answers)

    def send_buffered(self):
        """Send what this thread's event loop has collected, before a plain call blocks it."""
        me = _thread.get_ident()
        for calls in tuple(self.loops.values()):
            if getattr(calls.loop, "_thread_id", None) == me:
                calls.send_buffered()

    def read_for_loop(self):
        """Hand out what has arrived, from an event loop's reader. A no-op while a thread leads."""
        with self._lock:
            if self._leader:
                return
            self._leader = _thread.get_ident()
        lines = ()
        try:
            if not _thread._count() or self.channel.is_readable():  # another thread may have read it meanwhile
                lines = self.channel.receive()
        finally:
            self._pass_lead()
        self._hand_out(lines)  # leading no more: a task that goes on here may make a plain call

    def _enter(self, slot):
        with self._lock:
            if not self._leader:
                self._leader, slot.is_leader = _thread.get_ident(), True
                return True
            slot.wake = _thread.allocate_lock()
            slot.wake.acquire()
            self._followers.append(slot)
            return False

    def _leave(self, slot, call_id):
        """Give leadership on and forget the call, also when an exception of a signal handler broke the wait."""
        if call_id is not None and slot.reply is None:
            self.forget(call_id)
        with self._lock:
            if slot in self._followers:
                self._followers.remove(slot)
        if slot.is_leader:
            slot.is_leader = False
            self._pass_lead()

    def _pass_lead(self):
        with self._lock:
            while self._followers:
                follower = self._followers.pop(0)
                if follower.reply is None:
                    follower.is_leader = True
                    self._leader = _ELECT
                    follower.rouse()
                    return
            self._leader = 0

    def _follow(self, slot):
        slot.wake.acquire()
        if slot.reply is None:
            slot.wake = None
            self._leader = _thread.get_ident()
            self._lead(slot)

    def _lead(self, slot):
        while slot.reply is None:
            if self._claimed != self.answers and slot is not self._request:
                self.wait_for_rest(self.channel.is_readable)
            self._hand_out(self.channel.receive())

    def wait_for_rest(self, has_come):
        """Look now and then whether the other threads have come to rest too, until `has_come(seconds)`."""
        if self._claimed == self.answers:
            return None
        pause = FIRST_LOOK
        self.claim()
        while self._claimed != self.answers and self._closed is None:
            arrived = has_come(pause)
            if arrived:
                return arrived
            pause = min(2 * pause, LAST_LOOK)
            self.claim()
        return None

    def _hand_out(self, lines):
        """Put each message into the slot of whoever waits for it; then let tasks of this thread's loop go on."""
        wakeups, before = [], self.answers
        for message in _unfolded(lines):
            if message["type"] == "execute":
                self._request.put(message)
                continue
            with self._lock:
                self.answers += 1
                slot = self._slots.pop(message["call_id"], None)
            if slot is not None and slot.put(message):
                wakeups.append(slot.wakeup)
        if self.answers > before + 1:
            self.trail.together.append([before + 1, self.answers - before])
        for wakeup in wakeups:
            wakeup.wake()


def _unfolded(lines):
    """The messages of some lines; a line may hold several answers that are to be taken in at once."""
    for line in lines:
        message = codec.loads(line) if type(line) is bytes else line
        if message["type"] == "answers":
            yield from message["answers"]
        else:
            yield message


def _thread_name():
    """Which of several threads calls; the main one is nobody in particular."""
    import threading

    me = threading.current_thread()
    return None if me is threading.main_thread() else me.name
