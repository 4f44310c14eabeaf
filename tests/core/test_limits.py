"""Limits: what may be said, and what is refused before anything runs."""

from typing import Any

import pytest

from hatchway import CodeMode, Limits
from hatchway.core.errors import InvalidSetting


def test_counts_may_be_written_as_floats() -> None:
    assert repr(Limits(memory_bytes=1e9, calls=5.0)) == repr(Limits(memory_bytes=10**9, calls=5))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"calls": 0}, "Limits.calls must be a positive number, not 0"),
        ({"calls": True}, "Limits.calls must be a positive number, not True"),
        ({"calls": "5"}, "Limits.calls must be a positive number, not '5'"),
        ({"wall_seconds": float("nan")}, "Limits.wall_seconds must be a positive number, not nan"),
        ({"calls": 1.5}, "Limits.calls must be a whole number, not 1.5"),
        ({"memory_bytes": float("inf")}, f"Limits.memory_bytes is at most {2**50}, not inf"),
        ({"disk_files": 10**30}, f"Limits.disk_files is at most {2**50}, not {10**30}"),
    ],
)
def test_what_no_sandbox_could_keep_is_refused(limits: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidSetting) as refused:
        Limits(**limits)
    assert str(refused.value) == message


@pytest.mark.anyio
@pytest.mark.parametrize("sandbox", ["monty", "process"])
async def test_code_may_have_all_the_time_there_is(sandbox: str) -> None:
    async with CodeMode(sandbox, limits=Limits(wall_seconds=float("inf"), cpu_seconds=float("inf"))) as mode:
        assert (await mode.run("1 + 1")).output == 2
