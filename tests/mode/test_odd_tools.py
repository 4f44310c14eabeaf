"""Tools that fail or answer in odd ways: whatever they do is told at the call, and the run goes on."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from hatchway import CodeMode, CodeTimeoutError, Limits, Rule, ToolError
from hatchway.core.output import MOST_ERROR_CHARACTERS

pytestmark = pytest.mark.anyio

ALONE = "try:\n    {call}\nexcept RuntimeError as e:\n    print(e)\n7"
BESIDE_OTHERS = (
    "import asyncio\ntry:\n    await asyncio.gather(wait(), {call}, wait())\nexcept RuntimeError as e:\n    print(e)\n7"
)


class Unusual(BaseException):
    """An error that is no `Exception`."""


class Unreadable(Exception):
    """An error whose text cannot be had."""

    def __str__(self) -> str:
        raise Unusual("no text")


def raising(error: BaseException) -> tuple[Callable[[], None], Any]:
    def plain() -> None:
        """Fail, in a thread."""
        raise error

    async def awaited() -> None:
        """Fail, on the loop."""
        raise error

    return plain, awaited


async def wait() -> None:
    """Take a while."""
    await asyncio.sleep(0.05)


async def told(sandbox: str, code: str, error: BaseException) -> str:
    async with CodeMode(sandbox, tools=[*raising(error), wait], limits=Limits(wall_seconds=10)) as mode:
        result = await mode.run(code)
        assert result.output == 7
        assert (await mode.run("1 + 1")).output == 2
    return result.stdout.removeprefix("ToolError: ")  # Monty has no such class


GROUP = BaseExceptionGroup("several", [ValueError("one"), ExceptionGroup("inner", [KeyError("two")]), Unusual("three")])


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (Unusual("odd"), "Unusual: odd\n"),
        (Unreadable(), "Unreadable: (its message could not be read)\n"),
        (GROUP, "BaseExceptionGroup: several (3 sub-exceptions): ValueError: one; KeyError: 'two'; Unusual: three\n"),
    ],
)
async def test_whatever_a_tool_raises_is_told_at_the_call(sandbox: str, error: BaseException, message: str) -> None:
    assert await told(sandbox, ALONE.format(call="plain()"), error) == message
    assert await told(sandbox, ALONE.format(call="await awaited()"), error) == message
    assert await told(sandbox, BESIDE_OTHERS.format(call="awaited()"), error) == message


@pytest.mark.parametrize("error", [KeyboardInterrupt("x"), GeneratorExit("x"), StopIteration("x")])
async def test_what_ends_coroutines_and_loops_is_told_too_when_a_thread_raised_it(
    sandbox: str, error: BaseException
) -> None:
    message = f"{type(error).__name__}: x\n"
    assert await told(sandbox, ALONE.format(call="plain()"), error) == message


async def test_what_a_coroutine_cannot_raise_is_told_by_its_own_name(sandbox: str) -> None:
    assert await told(sandbox, ALONE.format(call="await awaited()"), StopIteration("x")) == "StopIteration: x\n"
    assert await told(sandbox, BESIDE_OTHERS.format(call="awaited()"), StopIteration()) == "StopIteration\n"


async def test_of_many_errors_in_a_group_the_first_are_told(sandbox: str) -> None:
    group = ExceptionGroup("many", [ValueError(str(i)) for i in range(30)])
    said = await told(sandbox, ALONE.format(call="plain()"), group)
    assert said.endswith("ValueError: 8; ValueError: 9; and more\n")


@pytest.mark.parametrize("error", [ValueError("x" * 1_000_000), ToolError("x" * 1_000_000)])
async def test_a_very_long_error_is_cut_in_the_middle(sandbox: str, error: Exception) -> None:
    said = await told(sandbox, ALONE.format(call="plain()"), error)
    assert len(said) < MOST_ERROR_CHARACTERS + 100
    assert "characters cut …\n" in said


async def test_an_approval_that_fails_oddly_fails_the_run(sandbox: str) -> None:
    async def approve(call: Any) -> bool:
        await asyncio.sleep(0)
        raise Unusual(call.function_name)

    async with CodeMode(sandbox, tools=[wait], approve=approve) as mode:
        with pytest.raises(Unusual, match="wait"):
            await mode.run("import asyncio\nawait asyncio.gather(wait(), wait())")
        assert (await mode.run("1 + 1")).output == 2


async def test_an_int_that_python_does_not_write_comes_out(sandbox: str) -> None:
    events: list[Any] = []

    def huge(n: int) -> list[int]:
        """Give it back."""
        return [n]

    rules = [Rule("deny", "huge", {"n": "1*"})]
    async with CodeMode(sandbox, tools=[huge], on_event=events.append, rules=rules) as mode:
        result = await mode.run("huge(10**5000)")
    assert result.output == [10**5000]
    assert events[-1].text == "[<int of 16610 bits>]"


async def test_limits_of_a_session_hold_for_its_actions(sandbox: str) -> None:
    async with CodeMode(sandbox) as mode, mode.session(limits=Limits(wall_seconds=0.5)) as session:
        with pytest.raises(CodeTimeoutError, match=r"the code ran longer than 0\.5 s"):
            await session.run("while True: pass")
