"""Limits: every execution has all of them, by default."""

from __future__ import annotations

from dataclasses import dataclass, fields

from hatchway.core.errors import InvalidSetting

MIB = 1024 * 1024
MOST = 2**50
"""What a limit may be at most, but for seconds: larger numbers fit into no setting of the system."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one execution may take. Past a limit the code is dead, and the error names the field."""

    wall_seconds: float = 30.0
    """Seconds the code may run; the clock stands while it waits on the host, but CPU burnt meanwhile counts."""
    memory_bytes: int = 512 * MIB
    """Bytes of memory for the code and its descendants."""
    output_bytes: int = 1 * MIB
    """Bytes kept of stdout, and of stderr; more is cut in the middle."""
    value_bytes: int = 64 * MIB
    """Bytes one call's arguments, one result or the output may take on the wire."""
    calls: int = 10_000
    """Tool calls in one execution."""
    pending_calls: int = 1_000
    """Calls unanswered at one time."""
    processes: int = 64
    """Processes and threads of the code alive at one time."""
    open_files: int = 256
    """File descriptors one process may hold; past 512 in a session only if its first action has as many."""
    file_bytes: int = 64 * MIB
    """Bytes of one file the code writes."""
    cpu_seconds: float = 120.0
    """CPU seconds of one process of the code."""
    disk_bytes: int = 128 * MIB
    """Bytes of scratch files, and of files in `/output`."""
    disk_files: int = 10_000
    """Scratch files, and files in `/output`."""
    output_files: int = 100
    """Files in `/output` that are handed back."""
    displays: int = 100
    """Pictures, tables and the like that the code shows."""
    display_bytes: int = 32 * MIB
    """Bytes of all of them together; a single one must also fit into `value_bytes` as base64."""

    def __post_init__(self) -> None:
        for f in fields(self):
            value = getattr(self, f.name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
                raise InvalidSetting(f"Limits.{f.name} must be a positive number, not {value!r}")
            if not f.name.endswith("_seconds"):
                object.__setattr__(self, f.name, _whole(f.name, value))


def _whole(name: str, value: float) -> int:
    """A count, perhaps written as a float such as `1e9`."""
    if value > MOST:
        raise InvalidSetting(f"Limits.{name} is at most {MOST}, not {value!r}")
    if value != int(value):
        raise InvalidSetting(f"Limits.{name} must be a whole number, not {value!r}")
    return int(value)


DEFAULT_LIMITS = Limits()
"""What holds where nobody says otherwise; made once, for making it checks every field."""
