"""An `async def` tool is awaited inside, so that asyncio.gather runs many calls at once."""

import asyncio

from hatchway import CodeMode

ACTION = """
import asyncio

pages = await asyncio.gather(*[fetch(n) for n in range(20)])
[len(page) for page in pages]
"""

under_way = most = 0


async def fetch(page: int) -> str:
    """Fetch a page from somewhere slow."""
    global under_way, most
    under_way += 1
    most = max(most, under_way)
    await asyncio.sleep(0.5)
    under_way -= 1
    return "x" * page


async def main() -> None:
    async with CodeMode(tools=[fetch]) as mode:
        result = await mode.run(ACTION)
    print("lengths:", result.output)
    print("calls at one time:", most)


asyncio.run(main())
