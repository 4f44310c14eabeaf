"""The source a guest needs to call tools over HTTP: our guest files as text, and a table of the tools.

A sandbox that runs plain programs gets `config.stub_code + "\\n" + code + "\\n_hatchway_complete(...)"`, or, better,
`program(config, code)`, with `config.env_vars` in its environment. An error in the code is told to the host as well.
"""

from __future__ import annotations

import functools
from pathlib import Path

from hatchway.core import codec
from hatchway.core.calls import as_signature
from hatchway.core.sandbox import Functions
from hatchway.core.transport import TransportConfig
from hatchway.transports import messages

GUEST = Path(__file__).parents[1] / "guest"
_LEFT_OUT = ("__main__", "bundle", "channel", "interpreter", "limits", "piped")


def stub_code(functions: Functions, *, value_bytes: int) -> str:
    """Python that defines the functions with their signatures, and what tells the host the end of the program."""
    specs = [messages.spec(as_signature(function)) for function in functions]
    return _STUB.format(loader=_source(GUEST / "bundle.py"), sources=_sources(), specs=specs, value_bytes=value_bytes)


def program(config: TransportConfig, code: str) -> str:
    """A whole program for a plain interpreter: the tools, the code, and the report of its last expression's value."""
    return f"{config.stub_code}\n_hatchway_run({code!r})\n"


@functools.cache
def _sources() -> dict[str, str]:
    files = [path for path in sorted(GUEST.glob("*.py")) if path.stem not in _LEFT_OUT]
    return {path.stem: _source(path) for path in [*files, Path(codec.__file__)]}


def _source(path: Path) -> str:
    return path.read_text(encoding="utf-8")


_STUB = """\
_hatchway = {{}}
exec({loader!r}, _hatchway)
_hatchway["load"]({sources!r})
from _hatchway_guest.http_tools import attach as _hatchway
_hatchway(globals(), {specs!r}, {value_bytes})"""
