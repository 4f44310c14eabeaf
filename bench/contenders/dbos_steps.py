"""DBOS: a workflow of empty steps, each written down before the next begins. Prints seconds per step, a number a round.

Run by its own interpreter: `dbos_steps.py DATABASE_URL STEPS ROUNDS`.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time

from dbos import DBOS


@DBOS.step()
async def step(i: int) -> int:
    return i


@DBOS.workflow()
async def loop(steps: int) -> int:
    last = 0
    for i in range(steps):
        last = await step(i)
    return last


async def measured(steps: int, rounds: int) -> list[float]:
    found: list[float] = []
    await loop(5)
    for _ in range(rounds):
        started = time.perf_counter()
        await loop(steps)
        found.append((time.perf_counter() - started) / steps)
    return found


def main() -> None:
    url, steps, rounds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    DBOS(
        config={
            "name": "bench",
            "system_database_url": url,
            "run_admin_server": False,
            "console_log_level": "ERROR",
        }
    )
    DBOS.launch()
    print(json.dumps(asyncio.run(measured(steps, rounds))))
    DBOS.destroy()


main()
