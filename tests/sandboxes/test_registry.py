"""Sandboxes by name, and the one instance that users of a name share."""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, ClassVar

import anyio
import pytest

from hatchway.core.constraints import CodeConstraints
from hatchway.core.errors import InvalidSetting, MissingExtra, SandboxUnavailable
from hatchway.core.limits import Limits
from hatchway.core.sandbox import Availability, CodeExecution, CodeSandbox, CodeSession, Functions, OnOutput
from hatchway.sandboxes import registry
from hatchway.sandboxes.registry import Row, available, choose_auto, make_sandbox, sandbox_class, shared_sandbox


class Toy(CodeSandbox):
    """A sandbox that counts how often it was opened and closed, and runs nothing."""

    name = "toy"
    constraints = CodeConstraints()
    tier = "language"
    found: ClassVar[Availability] = Availability(state="usable", tier="language")

    def __init__(self, *, size: int = 1) -> None:
        self.size = size
        self.opened = 0
        self.closed = 0

    async def execute(
        self,
        code: str,
        functions: Functions = (),
        *,
        inputs: Mapping[str, Any] | None = None,
        limits: Limits | None = None,
        on_output: OnOutput | None = None,
    ) -> CodeExecution:
        raise SandboxUnavailable("a toy runs nothing")

    def session(self, *, limits: Limits | None = None) -> AbstractAsyncContextManager[CodeSession]:
        raise SandboxUnavailable("a toy keeps nothing")

    @classmethod
    def probe(cls) -> Availability:
        return cls.found

    async def __aenter__(self) -> "Toy":
        await asyncio.sleep(0.01)
        self.opened += 1
        return self

    async def aclose(self) -> None:
        await asyncio.sleep(0.01)
        self.closed += 1


class Strong(Toy):
    found = Availability(state="usable", tier="vm")


class Unsealed(Toy):
    found = Availability(state="usable", tier="process")


class Far(Toy):
    found = Availability(state="usable", tier="vendor")


class Broken(Toy):
    found = Availability(state="installed_but_unusable", tier="vm", reason="no /dev/kvm", hint="modprobe kvm")


@pytest.fixture
def rows(monkeypatch: pytest.MonkeyPatch) -> dict[str, Row]:
    """A table of the toys above in place of the real one."""
    here = sys.modules[Toy.__module__]
    monkeypatch.setitem(sys.modules, "toys", here)
    table = {name: Row(f"toys:{name.capitalize()}") for name in ("toy", "strong", "unsealed", "far", "broken")}
    table["absent"] = Row("hatchway_no_such_package.sandbox:Absent", "absent")
    monkeypatch.setattr(registry, "ROWS", table)
    choose_auto.cache_clear()
    yield table
    choose_auto.cache_clear()


def test_every_row_of_the_table_is_a_sandbox_of_that_name() -> None:
    assert {name: sandbox_class(name).name for name in registry.ROWS} == {name: name for name in registry.ROWS}


def test_an_unknown_name_is_answered_with_close_ones() -> None:
    with pytest.raises(InvalidSetting) as e:
        sandbox_class("montey")
    assert str(e.value) == "there is no sandbox 'montey'\ndid you mean 'monty'?"


def test_a_close_name_comes_with_its_extra(rows: dict[str, Row]) -> None:
    with pytest.raises(InvalidSetting) as e:
        make_sandbox("absnt")
    assert e.value.hint == "did you mean 'absent' (pip install 'hatchway[absent]')?"


def test_a_name_like_no_other_is_answered_with_all(rows: dict[str, Row]) -> None:
    with pytest.raises(InvalidSetting) as e:
        make_sandbox("zzz")
    assert e.value.hint == "there are: auto, toy, strong, unsealed, far, broken, absent"


def test_a_missing_package_names_its_extra(rows: dict[str, Row]) -> None:
    with pytest.raises(MissingExtra) as e:
        make_sandbox("absent")
    assert str(e.value) == "the sandbox 'absent' is not installed\npip install 'hatchway[absent]'"
    seen = available()["absent"]
    assert (seen.state, seen.hint) == ("missing", "pip install 'hatchway[absent]'")


def test_a_third_party_is_named_by_its_import_path(rows: dict[str, Row]) -> None:
    sandbox = make_sandbox("toys:Toy", size=3)
    assert isinstance(sandbox, Toy)
    assert sandbox.size == 3


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("no_such_x:Thing", "the sandbox 'no_such_x:Thing' cannot be imported: No module named 'no_such_x'"),
        ("json:JSONDecoder", "'json:JSONDecoder' is not a CodeSandbox class"),
        ("json:nothing", "'json:nothing' is not a CodeSandbox class"),
        (":Thing", "':Thing' is not an import path"),
        ("json:", "'json:' is not an import path"),
    ],
)
def test_a_wrong_import_path_says_what_is_wrong(path: str, message: str) -> None:
    with pytest.raises(InvalidSetting) as e:
        sandbox_class(path)
    assert e.value.message == message


def test_a_ready_instance_is_given_back() -> None:
    toy = Toy()
    assert make_sandbox(toy) is toy
    with pytest.raises(InvalidSetting, match="a ready sandbox takes no more settings: size"):
        make_sandbox(toy, size=2)


def test_auto_takes_the_strongest_wall(rows: dict[str, Row]) -> None:
    assert choose_auto() == "strong"
    assert isinstance(make_sandbox("auto"), Strong)


def test_auto_never_takes_an_unsealed_a_vendor_or_a_broken_one(rows: dict[str, Row]) -> None:
    for name in ("toy", "strong"):
        del rows[name]
    with pytest.raises(SandboxUnavailable) as e:
        choose_auto()
    assert e.value.message == "no sealed sandbox works on this machine; an unsealed one is never chosen for you"


async def _two_users() -> tuple[CodeSandbox, bool, int]:
    async with shared_sandbox("toy") as first:
        async with shared_sandbox("toy") as second:
            same = first is second
        assert isinstance(first, Toy)
        return first, same, first.closed


def test_users_of_a_name_share_one_instance_until_the_last_leaves(rows: dict[str, Row]) -> None:
    sandbox, same, closed_while_used = asyncio.run(_two_users())
    assert isinstance(sandbox, Toy)
    assert (same, closed_while_used, sandbox.opened, sandbox.closed) == (True, 0, 1, 1)


def test_each_event_loop_gets_its_own(rows: dict[str, Row]) -> None:
    first, *_ = asyncio.run(_two_users())
    second, *_ = asyncio.run(_two_users())
    assert first is not second


async def _fifty_at_once() -> set[int]:
    async def use() -> int:
        async with shared_sandbox("toy") as sandbox:
            assert isinstance(sandbox, Toy)
            assert sandbox.opened == 1
            await asyncio.sleep(0.05)
            return id(sandbox)

    return set(await asyncio.gather(*(use() for _ in range(50))))


def test_users_that_come_at_once_open_it_once(rows: dict[str, Row]) -> None:
    assert len(asyncio.run(_fifty_at_once())) == 1


async def _used_until_cancelled(cancel: Callable[[asyncio.Task[None]], Awaitable[None]]) -> Toy:
    entered: asyncio.Future[CodeSandbox] = asyncio.get_running_loop().create_future()

    async def use() -> None:
        async with shared_sandbox("toy") as sandbox:
            entered.set_result(sandbox)
            await asyncio.sleep(60)

    user = asyncio.create_task(use())
    sandbox = await entered
    await cancel(user)
    assert user.cancelled()
    assert isinstance(sandbox, Toy)
    return sandbox


async def _thrice(user: asyncio.Task[None]) -> None:
    for _ in range(3):
        user.cancel()
        await asyncio.sleep(0.001)
    await asyncio.wait({user})


def test_a_user_cancelled_again_and_again_still_closes_it(rows: dict[str, Row]) -> None:
    assert asyncio.run(_used_until_cancelled(_thrice)).closed == 1


async def _left_by_a_cancelled_scope() -> CodeSandbox:
    with anyio.CancelScope() as scope:
        async with shared_sandbox("toy") as sandbox:
            scope.cancel()
            await anyio.sleep(60)
    return sandbox


def test_a_cancelled_scope_closes_it_before_it_is_left(rows: dict[str, Row]) -> None:
    sandbox = asyncio.run(_left_by_a_cancelled_scope())
    assert isinstance(sandbox, Toy)
    assert sandbox.closed == 1
