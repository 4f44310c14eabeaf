"""One action, one tool: the code runs sealed, the call comes out through the gate."""

import asyncio

from hatchway import CodeMode

ACTION = """
prices = {item: price(item) for item in ["tea", "cake"]}
print("asked for", len(prices), "prices")
sum(prices.values())
"""


def price(item: str) -> float:
    """The price of an item in euros."""
    return {"tea": 3.5, "cake": 4.0}[item]


async def main() -> None:
    async with CodeMode(tools=[price]) as mode:
        result = await mode.run(ACTION)
    print("printed:", result.stdout.strip())
    print("output: ", result.output)


asyncio.run(main())
