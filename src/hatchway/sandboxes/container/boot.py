"""What is sent into a fresh container: the guest's files as text, and who starts them."""

from __future__ import annotations

import functools
from pathlib import Path

from hatchway.core import codec

GUEST = Path(__file__).parents[2] / "transports" / "guest"
INSIDE = Path(__file__).parent / "inside"
JAIL, WALL = Path(__file__).parents[1] / "jail" / "inside", Path(__file__).parents[1] / "wall"
LEFT_OUT = (
    "__main__",
    "__init__",
    "bundle",
    "piped",
    "program",
    "http",
    "http_client",
    "http_connection",
    "http_tools",
)
ARGV = (
    "python3", "-s", "-c",
    "import os; f = os.fdopen(0, 'rb', 0, closefd=False); n = int(f.readline()); d = bytearray()\n"
    "while len(d) < n: d += f.read(n - len(d)) or os._exit(70)\n"
    "exec(compile(d, '<hatchway>', 'exec'))",
)  # fmt: skip
"""Reads a program from stdin, no byte more, and becomes it. Not isolated: the hash seed comes by the environment."""
_PROGRAM = """\
{loader}
load({guest!r})
load({wall!r}, "_hatchway_wall")
load({jail!r}, "_hatchway_jail")
load({inside!r}, "_hatchway_container")
from _hatchway_container.guest import start
start()
"""


@functools.cache
def program() -> bytes:
    """The program as `ARGV` reads it."""
    guest = {**_sources(GUEST), "codec": _text(Path(codec.__file__))}
    text = _PROGRAM.format(
        loader=_text(GUEST / "bundle.py"),
        guest=guest,
        inside=_sources(INSIDE),
        wall={name: _text(WALL / f"{name}.py") for name in ("landlock", "seccomp", "syscalls")},
        jail={name: _text(JAIL / f"{name}.py") for name in ("kernel", "policy")},
    ).encode()
    return b"%d\n%s" % (len(text), text)


def _sources(folder: Path) -> dict[str, str]:
    files = [path for path in sorted(folder.glob("*.py")) if path.stem not in LEFT_OUT]
    return {path.stem: _text(path) for path in files}


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")
