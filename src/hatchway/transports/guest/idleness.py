"""Whether every thread has come to rest: blocked on the host, or on a thread that is.

Told from the frames: a thread inside `Condition.wait`, `Thread.join` or an idle pool worker cannot go on by itself.
What is not recognised counts as running, so that a claim is late rather than wrong.
"""

import _thread
import sys
import threading


def other_threads():
    """The ids of all threads but the calling one."""
    me = _thread.get_ident()
    return [ident for ident in sys._current_frames() if ident != me]


def all_blocked(waiting):
    """Whether no thread can go on until the host answers; `waiting` maps thread ids to what they wait for."""
    if not _thread._count() and len(waiting) == 1:
        return True
    if threading._limbo:
        return False  # a thread is about to start and has no frame yet
    me = _thread.get_ident()
    for ident, frame in sys._current_frames().items():
        if ident == me:
            continue
        on = waiting.get(ident)
        if not (on.is_blocked() if on is not None else _is_blocked(frame)):
            return False
    return True


def _is_blocked(frame):
    look = _LOOKS.get((frame.f_code.co_name, _module_of(frame)))
    return look is not None and look(frame.f_locals)


def _module_of(frame):
    return frame.f_globals.get("__name__")


def _in_condition(local):
    waiter = local.get("waiter")
    return local.get("timeout") is None and waiter is not None and waiter.locked()


def _in_join(local):
    lock = local.get("lock")
    return local.get("block") is True and local.get("timeout") == -1 and lock is not None and lock.locked()


def _in_handle_join(local):
    handle = getattr(local.get("self"), "_handle", None)
    return local.get("timeout") is None and handle is not None and not handle.is_done()


def _in_worker(local):
    queue = local.get("work_queue")
    return queue is not None and local.get("work_item") is None and queue.empty()


_LOOKS = {
    ("wait", "threading"): _in_condition,
    ("_wait_for_tstate_lock", "threading"): _in_join,
    ("join", "threading"): _in_handle_join,
    ("_worker", "concurrent.futures.thread"): _in_worker,
}
