"""MontySandbox: the embedded sandbox. Nothing to set up, a fresh interpreter in a fraction of a millisecond."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar
from weakref import WeakSet

from hatchway.core.calls import as_signature
from hatchway.core.errors import InvalidSetting, MissingExtra, SandboxCrashed
from hatchway.core.grants import INPUT_ROOT, FileMount, FileMountInput, as_file_mounts
from hatchway.core.limits import Limits
from hatchway.core.results import Tier
from hatchway.core.sandbox import Availability, CodeSandbox, Functions, OnOutput
from hatchway.sandboxes.monty.constraints import MONTY

if TYPE_CHECKING:
    from hatchway.sandboxes.monty.runtime import Runtime
    from hatchway.sandboxes.monty.execution import MontyExecution
    from hatchway.sandboxes.monty.session import MontySession
