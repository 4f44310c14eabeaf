"""An `async def` tool is awaited inside, so that asyncio.gather runs many calls at once."""

import asyncio
import time

from hatchway import CodeMode

ACTION = """
import asyncio

pages = await asyncio.gather(*[fetch(n) for n in range(20)])
[len(page) for page in pages]
"""


async def fetch(page: int) -> str:
    """Fetch a page from somewhere slow."""
    await asyncio.sleep(0.2)
    return "x" * page


async def main() -> None:
    async with CodeMode(tools=[fetch]) as mode:
        started = time.monotonic()
        result = await mode.run(ACTION)
        seconds = time.monotonic() - started
    print("lengths:", result.output)
    print("20 calls of 0.2 s each:", "in parallel" if seconds < 2 else f"{seconds:.1f} s")


asyncio.run(main())
