"""What is sent into a fresh container: the guest's files as text, and who starts them."""

from __future__ import annotations

import functools
from pathlib import Path

from hatchway.core import codec

GUEST = Path(__file__).parents[2] / "transports" / "guest"
INSIDE = Path(__file__).parent / "inside"
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
load({inside!r}, "_hatchway_container")
from _hatchway_container.guest import start
start()
"""


@functools.cache
def program() -> bytes:
    """The program as `ARGV` reads it."""
    guest = {**_sources(GUEST), "codec": Path(codec.__file__).read_text(encoding="utf-8")}
    text = _PROGRAM.format(
        loader=(GUEST / "bundle.py").read_text(encoding="utf-8"), guest=guest, inside=_sources(INSIDE)
    ).encode()
    return b"%d\n%s" % (len(text), text)


def _sources(folder: Path) -> dict[str, str]:
    files = [path for path in sorted(folder.glob("*.py")) if path.stem not in LEFT_OUT]
    return {path.stem: path.read_text(encoding="utf-8") for path in files}
