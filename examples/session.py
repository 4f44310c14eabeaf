"""A session keeps names, imports and functions from action to action."""

import asyncio

from hatchway import CodeMode, CodeRuntimeError


async def main() -> None:
    async with CodeMode() as mode:
        async with mode.session() as session:
            await session.run("import math\n\ndef area(r):\n    return math.pi * r * r")
            await session.run("radii = [1, 2, 3]")
            result = await session.run("[round(area(r), 2) for r in radii]")
            print("in a session:", result.output)
        try:
            await mode.run("area(1)")
        except CodeRuntimeError as e:
            print("outside it:  ", str(e).splitlines()[-1])


asyncio.run(main())
