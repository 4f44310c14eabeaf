"""Randomness and time that can be had again: the one drawn from a seed, the other written down as it is read.

What was read since the last call rides on the next one; when the code is run again, it reads the same. A read that
is on no call has led to nothing yet, so it need not be known.
"""

import os
import random
import sys
import time

MOST_READS = 10_000  # per call; what is read past it is not written down, and may be told as diverged later

_real = {
    name: getattr(time, name)
    for name in ("time_ns", "monotonic_ns", "perf_counter_ns", "process_time_ns", "thread_time_ns")
    if hasattr(time, name)
}
_sleepers = ("asyncio.base_events", "selectors", "threading", "queue", "concurrent.futures._base")


class Clock:
    """Reads of the clocks, in the order of the code."""

    def __init__(self):
        self.is_on = False
        self.reads = []
        """Since the last call."""
        self._script = None
        self._segment = None
        self._last = {}
        self._ahead = {}

    def begin(self, script):
        """An action begins; `script` has what it read before, a list per call it then made."""
        self.is_on = True
        self.reads = []
        self._script = iter(script)
        self._segment = None
        self._last, self._ahead = {}, {}
        self.next_call()

    def next_call(self):
        """What was read until here belongs to a call; go on to the reads before the next one."""
        self.reads = []
        if self._script is None:
            return
        following = next(self._script, None)
        self._segment = None if following is None else iter(following)
        if following is None:
            self._script = None
            self._go_on()

    def read(self, name):
        """Nanoseconds of one of the clocks."""
        if not self.is_on:
            return _real[name]()
        value = None
        if self._segment is not None:
            value = next(self._segment, None)
            if value is None:
                self._segment = None
                self._go_on()
        if value is None:
            value = _real[name]() + self._ahead.get(name, 0)
        if len(self.reads) < MOST_READS:
            self.reads.append(value)
        if self._script is not None:
            self._last[name] = value
        return value

    def _go_on(self):
        """From reads of before to real ones: they may be of another machine, so only the date is taken as it is."""
        for name, last in self._last.items():
            if name != "time_ns":
                self._ahead[name] = last - _real[name]()


class Stream:
    """Bytes that nobody can tell from random ones without the seed."""

    def __init__(self):
        self._seed = None
        self._drawn = 0

    def begin(self, seed):
        """Draw from another seed."""
        self._seed, self._drawn = seed, 0

    def fork(self):
        """In a forked process: not what the parent draws."""
        if self._seed is not None:
            self._seed = self._block(b"fork", 32)

    def read(self, size):
        """Some bytes."""
        if self._seed is None:
            return _urandom(size)
        if size < 0:
            raise ValueError("negative argument not allowed")
        return self._block(b"read", size)

    def _block(self, purpose, size):
        from _sha3 import shake_256

        self._drawn += 1
        return shake_256(b"%s %s %d" % (purpose, self._seed, self._drawn)).digest(size)


CLOCK, STREAM = Clock(), Stream()
_urandom = os.urandom


def begin(seed, script):
    """An action begins: draw from this seed and read these times again. Without a seed nothing changes."""
    if seed is None:
        return
    STREAM.begin(bytes.fromhex(seed))
    CLOCK.begin(script or ())
    random.seed(int.from_bytes(STREAM.read(32), "big"))
    uuids = sys.modules.get("uuid")
    if uuids is not None:
        uuids._node = int.from_bytes(STREAM.read(6), "big") | (1 << 40)
        uuids._last_timestamp = None


def end():
    """Draw from the system and go by its clocks again."""
    STREAM.begin(None)
    CLOCK.is_on = False
    random.seed()


def install():
    """Put repeatable functions in the place of those that are not; they do as before until an action begins."""
    if getattr(os, "urandom", None) is not _urandom:
        return
    _keep_sleeping()
    os.urandom = STREAM.read
    if hasattr(os, "getrandom"):
        os.getrandom = lambda size, flags=0: STREAM.read(size)
    os.register_at_fork(after_in_child=STREAM.fork)
    random._urandom = STREAM.read
    _seeded(random.Random)
    _install_clocks()
    _install_dates()
    uuids = sys.modules.get("uuid")
    if uuids is not None:
        uuids._generate_time_safe = uuids._UuidCreate = None


def _keep_sleeping():
    """What waits goes by the real clock: how long it waited is nobody's to see."""
    real = _RealTime(time)
    for name in _sleepers:
        module = sys.modules.get(name)
        if module is not None and getattr(module, "time", None) is time:
            module.time = real


class _RealTime:
    """The time module as it was."""

    def __init__(self, module):
        self.__dict__.update(vars(module))


def _seeded(cls):
    seed = cls.seed

    def seed_from_stream(self, a=None, version=2):
        seed(self, int.from_bytes(STREAM.read(32), "big") if a is None else a, version)

    seed_from_stream.__name__, seed_from_stream.__doc__ = "seed", seed.__doc__
    cls.seed = seed_from_stream
    random.seed = random._inst.seed


def _install_clocks():
    read = CLOCK.read
    for name in _real:
        setattr(time, name, _named(name, lambda name=name: read(name)))
        short = name[:-3]
        setattr(time, short, _named(short, lambda name=name: read(name) / 1e9))
    for name in ("localtime", "gmtime", "ctime"):
        setattr(time, name, _with_now(name, getattr(time, name)))
    strftime, asctime = time.strftime, time.asctime
    time.strftime = _named("strftime", lambda form, t=None: strftime(form, time.localtime() if t is None else t))
    time.asctime = _named("asctime", lambda t=None: asctime(time.localtime() if t is None else t))


def _with_now(name, real):
    return _named(name, lambda seconds=None: real(time.time() if seconds is None else seconds))


def _named(name, function):
    function.__name__ = function.__qualname__ = name
    function.__module__ = "time"
    return function


def _install_dates():
    """`datetime` is written in C: its methods are exchanged in the dictionary behind the class."""
    import datetime as dates

    try:
        import ctypes
        import gc

        changed = ctypes.pythonapi.PyType_Modified
        changed.argtypes = [ctypes.py_object]
        changed.restype = None
    except (ImportError, AttributeError):
        return  # then dates of now cannot be had again, and a run that depends on them is told as diverged
    datetime, date = dates.datetime, dates.date

    def now(cls, tz=None):
        """Current local date and time; in `tz` if one is given."""
        seconds, nanoseconds = divmod(CLOCK.read("time_ns"), 10**9)
        return cls.fromtimestamp(seconds, tz).replace(microsecond=nanoseconds // 1000)

    def utcnow(cls):
        """Current UTC date and time."""
        return now(cls, dates.timezone.utc).replace(tzinfo=None)

    def today(cls):
        """Current date."""
        return cls.fromtimestamp(CLOCK.read("time_ns") // 10**9)

    for cls, methods in (
        (datetime, {"now": now, "utcnow": utcnow, "today": lambda cls: now(cls)}),
        (date, {"today": today}),
    ):
        for inner in gc.get_referents(cls.__dict__):
            if isinstance(inner, dict):
                inner.update({name: classmethod(method) for name, method in methods.items()})
        changed(cls)
