"""The spawners of this host process: one per interpreter, started when first needed, ended with its last user."""

from __future__ import annotations

import atexit
import threading
from weakref import WeakSet

from hatchway.sandboxes.process.python import Python
from hatchway.sandboxes.process.spawner import Spawner


class Spawners:
    """What one sandbox uses of them. All sandboxes of an interpreter have one together.

    One that is dropped without `give_back` is no user any more: what only it used ends when another one is asked for
    or given back.
    """

    def running(self, python: Python) -> Spawner | None:
        """The spawner of an interpreter, if this sandbox uses one and it is alive. Never blocks."""
        known = _known.get(python)
        return known if known is not None and self in _users.get(python, ()) and known.is_alive else None

    def get(self, python: Python) -> Spawner:
        """The spawner of an interpreter; a new one if there is none or it died. Blocks for some milliseconds then.

        Raises:
            SandboxUnavailable: The interpreter cannot be started.
        """
        with _changing:
            known = _known.get(python)
            if known is None or not known.is_alive:
                if known is not None:
                    known.close()
                known = _known[python] = Spawner(python)
            _users.setdefault(python, WeakSet()).add(self)
            unused = _taken_unused()
        _close(unused)
        return known

    def give_back(self) -> None:
        """This sandbox needs none any more; those that nobody needs end. Blocks for some milliseconds. Legal twice."""
        with _changing:
            for users in _users.values():
                users.discard(self)
            unused = _taken_unused()
        _close(unused)


_known: dict[Python, Spawner] = {}
_users: dict[Python, WeakSet[Spawners]] = {}
_changing = threading.Lock()


def _taken_unused() -> list[Spawner]:
    """Those without a user, which nobody finds any more."""
    unused = [python for python in _known if not _users.get(python)]
    for python in unused:
        _users.pop(python, None)
    return [_known.pop(python) for python in unused]


def _close(spawners: list[Spawner]) -> None:
    for spawner in spawners:
        spawner.close()


@atexit.register
def _close_all() -> None:
    while _known:
        _known.popitem()[1].close()
