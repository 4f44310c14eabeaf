"""A run that outlives its process: killed in the middle of a payment round, it goes on and pays nobody twice."""

import asyncio
import os
import signal
import sys
import tempfile
from pathlib import Path

from hatchway import Allow, ApprovalRequired, CodeMode, tool

ACTION = """
paid = [pay(name, 10) for name in ["ada", "bob"]]
print("then ask")
paid.append(close_books(len(paid)))
paid
"""
FOLDER = Path(os.environ.get("DURABLE_EXAMPLE") or tempfile.mkdtemp())


@tool
def pay(name: str, euros: int) -> str:
    """Pay somebody."""
    with open(FOLDER / "bank", "a") as bank:
        bank.write(f"{name} {euros}\n")
    return f"paid {name}"


@tool(approval="ask")
def close_books(payments: int) -> str:
    """Close the books."""
    return f"{payments} payments, books closed"


async def first() -> None:
    async with CodeMode("process", tools=[pay, close_books], journal=FOLDER / "journal.db") as mode:
        try:
            await mode.run(ACTION)
        except ApprovalRequired as paused:
            (FOLDER / "run").write_text(f"{paused.run_id} {paused.pending[0].call_id}")
            os.kill(os.getpid(), signal.SIGKILL)


async def second() -> None:
    run_id, call_id = (FOLDER / "run").read_text().split()
    async with CodeMode("process", tools=[pay, close_books], journal=FOLDER / "journal.db") as mode:
        result = await mode.resume(run_id, {call_id: Allow()})
    print(result.output)
    print((FOLDER / "bank").read_text(), end="")


if __name__ == "__main__" and len(sys.argv) > 1:
    asyncio.run(first())
elif __name__ == "__main__":
    command = f"DURABLE_EXAMPLE={FOLDER} {sys.executable} {__file__} first"
    print("first process:", "killed" if os.system(f"{command} 2>/dev/null") else "ended")
    asyncio.run(second())
