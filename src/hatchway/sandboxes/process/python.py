"""The interpreters that run guests."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, field
from functools import cache

from hatchway.core.signing import default_hash_seed

START_SECONDS = 30.0
"""How long an interpreter may take to load what guests need."""


@dataclass(frozen=True, slots=True)
class Python:
    """An interpreter and how it is started."""

    executable: str
    has_site: bool
    """Its site-packages are importable."""
    has_guest: bool = True
    """It loads the guest; without, it only starts programs."""
    hash_seed: int = field(default_factory=default_hash_seed)
    """Of every guest, so that sets of text come in the same order when an action is run again."""

    @property
    def argv(self) -> list[str]:
        """The command that starts it. Not isolated (`-I`), which would not read the hash seed; there is no other
        variable to read, and the folder of the script is taken off the path by the script."""
        return [self.executable, "-s"] if self.has_site else [self.executable, "-s", "-S"]

    @property
    def version(self) -> str:
        """The version recordings depend on, as `"3.12"`: between patch versions they can change."""
        return "{}.{}".format(*sys.version_info[:2]) if self.executable == sys.executable else _asked(self.executable)


@cache
def _asked(executable: str) -> str:
    """The version of an interpreter; its path, where it does not say: it will be told that it does not start."""
    command = [executable, "-I", "-S", "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=START_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError):
        return executable
    return done.stdout.strip()


def this_python() -> Python:
    """The interpreter of the host, without its site-packages."""
    return Python(sys.executable, has_site=False)
