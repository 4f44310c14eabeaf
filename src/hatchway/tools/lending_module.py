"""The end of a saved tool's interface: its code calls the tools of whichever action calls it."""

from __future__ import annotations

from typing import Any

_NAMES: tuple[str, ...] = ()
_code: Any = None
"""The module of that code; by `sys.modules` a tool that was saved anew would lend to its other version."""


def lend() -> None:
    """Give the code the tools of the action that calls it."""
    import sys

    here = sys.modules["__main__"]
    for name in _NAMES:
        if hasattr(here, name):
            setattr(_code, name, getattr(here, name))
