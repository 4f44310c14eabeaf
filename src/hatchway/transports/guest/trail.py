"""What a call tells about the way to it, so that the code can be led there again.

How many answers the code had; which of them it took in at once; which it did not wait for any more; what it read from
the clocks; which task of several it is. All of it rides on the call, and all of it is left out where it goes without
saying.
"""

import sys

from . import codec
from .repeatable import CLOCK


class Trail:
    """The trail since the last call."""

    __slots__ = ("dropped", "is_shown", "together")

    def __init__(self):
        self.begin(False)

    def begin(self, is_shown):
        """An action begins; `is_shown` tells the line of each call as well."""
        self.is_shown = is_shown
        self.together = []
        self.dropped = []

    def told(self, answers=None, task=None):
        """The trail as the end of a message, without its closing brace."""
        told = b"" if answers is None else b',"answers":%d' % answers
        if task is not None:
            told += b',"task":' + codec.dumps(task)
        if CLOCK.is_on:
            if CLOCK.reads:
                told += b',"clock":' + codec.dumps(CLOCK.reads)
            CLOCK.next_call()
        if self.together:
            told += b',"together":' + codec.dumps(self.together)
            self.together = []
        if self.dropped:
            told += b',"dropped":' + codec.dumps(self.dropped)
            self.dropped = []
        return told + b',"line":%d' % _line() if self.is_shown else told


def _line():
    frame = sys._getframe(2)
    while frame is not None and not frame.f_code.co_filename.startswith("<action"):
        frame = frame.f_back
    return frame.f_lineno if frame is not None else 0
