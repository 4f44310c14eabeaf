"""The sandboxes by name. Adding a backend is one row in `ROWS`."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from typing import Any
from weakref import WeakKeyDictionary

from hatchway.core.errors import InvalidSetting, MissingExtra, SandboxUnavailable
from hatchway.core.results import Tier
from hatchway.core.sandbox import Availability, CodeSandbox
from hatchway.sandboxes.starting import to_the_end


@dataclass(frozen=True, slots=True)
class Row:
    """Where a backend lives, and what must be installed for it."""

    path: str
    """`"package.module:Class"`, imported when the backend is asked for."""
    extra: str = ""
    """The extra of Hatchway that brings its packages; empty when the base install has them."""
    best: Tier = "vm"
    """The strongest wall it can offer: `"auto"` does not try it once it has found a stronger one."""
    is_chosen: bool = True
    """Whether `"auto"` may take it."""


ROWS: Mapping[str, Row] = {
    "jail": Row("hatchway.sandboxes.jail:JailSandbox", best="namespaces"),
    "container": Row("hatchway.sandboxes.container:ContainerSandbox", best="container"),
    "hyperlight": Row(
        "hatchway.sandboxes.hyperlight:HyperlightSandbox", extra="hyperlight", best="vm", is_chosen=False
    ),
    "monty": Row("hatchway.sandboxes.monty:MontySandbox", best="language"),
    "process": Row("hatchway.sandboxes.process:ProcessSandbox", best="process"),
}
SEALED: tuple[Tier, ...] = ("vm", "namespaces", "container", "landlock", "language")
"""Walls `"auto"` may take, the first that works. Not `process`, which is none, nor `vendor`, which sends the code away.

`namespaces` before `container`: both are this kernel's, but the jail lets fewer system calls through, starts some
hundred times faster and needs neither an engine nor an image.
"""


def sandbox_class(name: str) -> type[CodeSandbox]:
    """The class behind a registered name or an import path `"package.module:Class"`.

    Raises:
        InvalidSetting: No such name, or no sandbox at that path.
        MissingExtra: The backend's package is not installed.
    """
    if ":" not in name and name not in ROWS:
        raise _unknown(name)
    row = ROWS.get(name) or Row(name)
    try:
        return _imported(row.path)
    except ImportError as e:
        if row.extra:
            raise MissingExtra(f"the sandbox {name!r}", row.extra) from e
        raise InvalidSetting(f"the sandbox {name!r} cannot be imported: {e}") from e


def make_sandbox(sandbox: str | CodeSandbox, **settings: Any) -> CodeSandbox:
    """A sandbox from a registered name, `"auto"`, an import path or a ready instance (given back as it is).

    Raises:
        InvalidSetting: No such name, settings it does not take, or settings for an instance that has its own.
        SandboxUnavailable: It cannot be offered here.
    """
    if isinstance(sandbox, CodeSandbox):
        if settings:
            raise InvalidSetting(f"a ready sandbox takes no more settings: {', '.join(settings)}")
        return sandbox
    name = choose_auto() if sandbox == "auto" else sandbox
    made = sandbox_class(name)
    if settings and (unknown := sorted(set(settings) - set(inspect.signature(made).parameters))):
        raise InvalidSetting(f"the sandbox {name!r} does not take {', '.join(unknown)}", hint=_takers(unknown[0]))
    return made(**settings)


def _takers(setting: str) -> str:
    """Which sandboxes take a setting, for a hint."""
    names = [name for name in ROWS if setting in inspect.signature(sandbox_class(name)).parameters]
    return f"sandboxes that do: {', '.join(names)}" if names else "no registered sandbox does"


def available() -> dict[str, Availability]:
    """What each registered backend's probe says, by name."""
    return {name: availability(name) for name in ROWS}


def availability(name: str) -> Availability:
    """What one backend's probe says; one that cannot be imported is `missing`, with the command that brings it."""
    try:
        return sandbox_class(name).probe()
    except (InvalidSetting, MissingExtra) as e:
        return Availability(state="missing", reason=e.message, hint=e.hint or "pip install --force-reinstall hatchway")


def strongest(found: Mapping[str, Availability]) -> str | None:
    """Of what the probes found, the usable sandbox with the strongest wall; None when none is sealed."""
    usable = {name: a.tier for name, a in found.items() if a.state == "usable" and _may_be_chosen(name)}
    sealed = {name: SEALED.index(tier) for name, tier in usable.items() if tier in SEALED}
    return min(sealed, key=lambda name: sealed[name], default=None)


def _may_be_chosen(name: str) -> bool:
    return name not in ROWS or ROWS[name].is_chosen


def _rank(name: str) -> int:
    return SEALED.index(ROWS[name].best)


@cache
def choose_auto() -> str:
    """The name of the strongest usable sandbox; never an unsealed one. Probed once per process.

    Raises:
        SandboxUnavailable: No sealed sandbox works here.
    """
    found: dict[str, Availability] = {}
    for name in sorted((name for name in ROWS if ROWS[name].best in SEALED and ROWS[name].is_chosen), key=_rank):
        if (taken := strongest(found)) is not None and SEALED.index(found[taken].tier or "language") <= _rank(name):
            return taken  # nothing that was not tried is stronger, and trying may wait for an engine
        found[name] = availability(name)
    if (taken := strongest(found)) is not None:
        return taken
    raise SandboxUnavailable(
        "no sealed sandbox works on this machine; an unsealed one is never chosen for you",
        hint="see what is missing with `hatchway doctor`, or name one: sandbox='process' runs code without a wall",
    )


@dataclass(slots=True)
class _Shared:
    sandbox: CodeSandbox
    users: int = 0
    opening: asyncio.Lock = field(default_factory=asyncio.Lock)
    opened: bool = False


_shared: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, _Shared]] = WeakKeyDictionary()


@asynccontextmanager
async def shared_sandbox(name: str) -> AsyncGenerator[CodeSandbox]:
    """The one instance all users of this name have together; it is closed when the last of them leaves.

    One per event loop: pools hold streams of the loop they were made in, and a later loop gets a fresh one.

    Raises:
        InvalidSetting, SandboxUnavailable: As `make_sandbox`.
    """
    name = await asyncio.to_thread(choose_auto) if name == "auto" else name
    await asyncio.to_thread(sandbox_class, name)  # the import takes longer than the loop may stand still
    here = _shared.setdefault(asyncio.get_running_loop(), {})
    entry = here.get(name) or here.setdefault(name, _Shared(make_sandbox(name)))
    entry.users += 1
    try:
        async with entry.opening:
            if not entry.opened:
                await entry.sandbox.__aenter__()
                entry.opened = True
        yield entry.sandbox
    finally:
        entry.users -= 1
        if not entry.users:
            del here[name]  # before the await: whoever comes meanwhile opens a new one
            await to_the_end(entry.sandbox.aclose())


def _imported(path: str) -> type[CodeSandbox]:
    module, _, attribute = path.partition(":")
    if not module or not attribute:
        raise InvalidSetting(f"{path!r} is not an import path", hint="write it as package.module:Class")
    found = getattr(import_module(module), attribute, None)
    if not (isinstance(found, type) and issubclass(found, CodeSandbox)):
        raise InvalidSetting(f"{path!r} is not a CodeSandbox class")
    return found


def _unknown(name: str) -> InvalidSetting:
    close = get_close_matches(name, ROWS, n=3, cutoff=0.6)
    if not close:
        return InvalidSetting(f"there is no sandbox {name!r}", hint=f"there are: auto, {', '.join(ROWS)}")
    offers = [f"{c!r}" + (f" (pip install 'hatchway[{ROWS[c].extra}]')" if ROWS[c].extra else "") for c in close]
    return InvalidSetting(f"there is no sandbox {name!r}", hint=f"did you mean {' or '.join(offers)}?")
