"""Executions in Monty that hand back the files they left."""

from __future__ import annotations

from hatchway.core.limits import Limits
from hatchway.sandboxes.files_execution import FilesExecution
from hatchway.sandboxes.monty.execution import MontyExecution
from hatchway.sandboxes.monty.output import MontyOutput
from hatchway.sandboxes.repeatable import Repeatable


def with_output(
    execution: MontyExecution, output: MontyOutput | None, limits: Limits, *, is_session: bool
) -> Repeatable:
    """The execution, which hands back what it leaves in `/output` where there is one."""
    if output is None:
        return execution
    return _MontyFiles(execution, execution, output, limits, is_session=is_session)


class _MontyFiles(FilesExecution):
    """As `FilesExecution`; what Monty is dumped as holds its files."""

    is_dump_exact = True
