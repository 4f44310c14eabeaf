"""The one pool of Monty workers in this process: started when first used, shared by all, closed with the last user.

It serves any number of event loops, one after another or in several threads: Monty's own threads do its work.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import sys
import threading
import time
from weakref import WeakSet

import pydantic_monty as pm

from hatchway.core.errors import SandboxCrashed, SandboxUnavailable
from hatchway.sandboxes.monty import system
from hatchway.sandboxes.monty.lease import Lease
from hatchway.sandboxes.monty.pilot import Pilot
from hatchway.sandboxes.monty.typecheck import CHECK_SECONDS, TypeChecks
from hatchway.sandboxes.monty.worker import WorkerCommand

MOST_WORKERS = 128
"""Executions alive at one time; more of them wait for a worker."""
PRINT_SECONDS = 0.001
"""Seconds a worker may keep what was printed; it is lost if the worker is killed in the meantime."""
LANDING_SECONDS = 0.3
"""How long the end of the pool waits for flights; of those of a closed event loop nobody hears that they landed."""
DEADLINE_GRACE = 0.02
"""Seconds past its limit after which a worker that does not stop by itself is killed."""


class Pool:
    """Warm workers, and the leases on them.

    Args:
        is_sealed: Build the kernel's walls around each worker, where there are any.
    """

    def __init__(self, *, is_sealed: bool) -> None:
        self._command = WorkerCommand(is_sealed=is_sealed)
        self._leases: set[Lease] = set()
        self.checks = TypeChecks(self.lease)
        """The workers kept for type checks."""
        self._pilots: list[Pilot] = []  # those that have nothing to do
        self._away: set[Pilot] = set()
        self._is_closed = False
        self._monty = pm.Monty(
            binary_path=self._command.path,
            min_processes=1,
            max_processes=MOST_WORKERS,
            feed_duration_limit_grace=DEADLINE_GRACE,
            turn_duration_limit_grace=CHECK_SECONDS,
        )

    def open(self) -> None:
        """Start the first worker, and see that it answers."""
        first = Pilot()
        try:
            first.blocking(self._begin)
        except BaseException:
            first.dismiss()
            raise
        self._pilots.append(first)

    def _begin(self) -> None:
        self._monty.__enter__()
        try:
            with self._monty.checkout():
                pass
        except BaseException:
            self._monty.__exit__(None, None, None)
            raise

    async def lease(
        self, limits: pm.ResourceLimits, *, stubs: str | None = None, policy: pm.OSPolicy = system.POLICY
    ) -> Lease:
        """A worker with a fresh interpreter under these limits; with stubs, one that checks types.

        Raises:
            SandboxCrashed: No worker could be started.
        """
        session = self._monty.checkout(
            script_name="action",
            limits=limits,
            print_flush_interval=PRINT_SECONDS,
            os_policy=policy,
            type_check=stubs is not None,
            type_check_stubs=stubs,
        )
        pilot = self._pilots.pop() if self._pilots else Pilot()
        self._away.add(pilot)
        try:
            await pilot.flown(session.__enter__)
        except asyncio.CancelledError:
            pilot.fly(lambda _value, _error: self._is_back(pilot), session.__exit__, None, None, None)
            raise
        except Exception as e:
            self._is_back(pilot)
            raise SandboxCrashed(f"no Monty worker could be started: {e}", hint="hatchway doctor") from e
        lease = Lease(session, pilot, self._returned)
        self._leases.add(lease)
        return lease

    def _returned(self, lease: Lease) -> None:
        self._leases.discard(lease)
        self._is_back(lease.pilot)

    def _is_back(self, pilot: Pilot) -> None:
        self._away.discard(pilot)
        self._pilots.append(pilot)
        if self._is_closed:
            pilot.dismiss()

    def close(self) -> None:
        """End every worker, and every thread that flew one."""
        for lease in tuple(self._leases):
            lease.kill()
        deadline = time.monotonic() + LANDING_SECONDS
        while any(pilot.is_flying for pilot in tuple(self._away)) and time.monotonic() < deadline:
            time.sleep(0.001)  # whoever was cancelled while a worker was fetched left it to its pilot to give back
        self._is_closed = True
        self._monty.__exit__(None, None, None)
        for pilot in (*self._pilots, *tuple(self._away)):
            pilot.dismiss()
        self.discard()

    def keep_forever(self) -> None:
        """Never let go of Monty's objects: they kill their workers when they are freed, also in a forked child."""
        import ctypes  # only a forked child needs it

        for held in (self._monty, *[lease.session for lease in self._leases]):
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(held))

    def discard(self) -> None:
        """Delete what was written to start workers."""
        self._command.remove()


_lock = threading.Lock()
_users: WeakSet[object] = WeakSet()
_pool: Pool | None = None
_has_started = False
_is_forked = False


async def join(user: object) -> Pool:
    """The pool, running; it stays until this user and all others have left.

    Raises:
        SandboxUnavailable: No worker can be started here.
    """
    if (pool := _pool) is not None and user in _users:
        return pool
    return await asyncio.to_thread(_open, user)


async def leave(user: object) -> None:
    """The user needs the pool no more; the last one closes it."""
    if user in _users:
        await asyncio.shield(asyncio.to_thread(_close, user))


def _open(user: object) -> Pool:
    global _pool, _has_started
    if _is_forked:
        raise SandboxUnavailable(
            "Monty was started before this process was forked, and does not work in the child",
            hint="start processes with multiprocessing's 'spawn' or 'forkserver'",
        )
    with _lock:
        if _pool is None:
            _pool = _opened(is_sealed=True)
            _has_started = True
            atexit.unregister(_at_exit)
            atexit.register(_at_exit)
        _users.add(user)
        return _pool


def _opened(*, is_sealed: bool) -> Pool:
    pool = Pool(is_sealed=is_sealed)
    try:
        pool.open()
    except Exception as e:
        pool.discard()
        if is_sealed:  # an interpreter that cannot start without its environment, a container that forbids walls
            return _opened(is_sealed=False)
        raise SandboxUnavailable(f"Monty's workers do not start: {e}", hint="hatchway doctor") from e
    return pool


def _close(user: object) -> None:
    global _pool
    with _lock:
        _users.discard(user)
        if _pool is not None and not _users:
            _pool.close()
            _pool = None


def _at_exit() -> None:
    global _pool
    if _pool is not None:
        _pool.close()
        _pool = None
    _let_threads_finish()


def _let_threads_finish() -> None:
    """Wait until Monty's threads are idle: one that still holds Python objects aborts the process as Python ends."""
    deadline = time.monotonic() + 1.0
    idle = 0
    while idle < 3 and time.monotonic() < deadline:
        time.sleep(0.001 if sys.platform == "linux" else 0.02)
        idle = 0 if _is_any_thread_running() else idle + 1


def _is_any_thread_running() -> bool:
    if sys.platform != "linux":
        return False
    own = str(threading.get_native_id())
    for thread in os.listdir("/proc/self/task"):
        try:
            with open(f"/proc/self/task/{thread}/stat") as f:
                state = f.read().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if thread != own and state != "S":
            return True
    return False


def _forget() -> None:
    """In a forked child: Monty's threads are not there, and the pool is the parent's."""
    global _pool, _lock, _is_forked
    _is_forked = _has_started
    if _pool is not None:
        _pool.keep_forever()
    _pool, _lock = None, threading.Lock()
    _users.clear()
    atexit.unregister(_at_exit)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
