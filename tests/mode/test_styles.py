"""How an action calls a tool is read from the action."""

import pytest

from hatchway import CodeMode
from hatchway.mode.styles import awaited_names


@pytest.mark.parametrize(
    ("code", "awaited"),
    [
        ("f(1) + g(2)", set()),
        ("await f(1)", {"f"}),
        ("f(1)\nawait g(2)", {"g"}),
        ("import asyncio\nawait asyncio.gather(f(1), g(2))", {"f", "g"}),
        ("import asyncio\ntasks = [f(i) for i in range(3)]\nawait asyncio.gather(*tasks)", {"f"}),
        ("import asyncio\nt = asyncio.create_task(s.f(1))\ng(1)\nawait t", {"s.f"}),
        ("async def all():\n    return await f(1)\nx = g(2)\nawait all()", {"f"}),
        ("print(f(1))\nawait g(2)", {"g"}),
        ("[f(1), g(2)]", set()),
        ("this does not parse", set()),
        ("\0", set()),
        ("(" * 5000, set()),
    ],
)
def test_awaited_names(code: str, awaited: set[str]) -> None:
    assert awaited_names(code, ["f", "g", "s.f"]) == awaited


@pytest.mark.anyio
@pytest.mark.parametrize("type_check", [True, False])
async def test_each_action_chooses(type_check: bool) -> None:
    def twice(x: int) -> int:
        return 2 * x

    async with CodeMode("monty", tools=[twice], calls="written", type_check=type_check) as mode:
        assert (await mode.run("twice(1) + twice(2)")).output == 6
        assert (await mode.run("await twice(1) + await twice(2)")).output == 6
        assert (await mode.run("import asyncio\nawait asyncio.gather(twice(1), twice(2))")).output == [2, 4]
