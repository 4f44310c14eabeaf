"""The end of a saved tool's interface: its code calls the tools of whichever action calls it."""

from __future__ import annotations

_NAMES: tuple[str, ...] = ()


def lend() -> None:
    """Give the code the tools of the action that calls it."""
    import sys

    here, code = sys.modules["__main__"], sys.modules[f"{__package__}.impl"]
    for name in _NAMES:
        if hasattr(here, name):
            setattr(code, name, getattr(here, name))
