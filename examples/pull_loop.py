"""The contract by hand: a sandbox starts an execution, you pull its calls out and push answers in. No gate here."""

import asyncio

from hatchway import ExecutionResult, FunctionCall, Waiting
from hatchway.sandboxes.registry import make_sandbox

ACTION = """
try:
    total = add(20, 22)
    add("one", "two")
except TypeError as error:
    print("caught:", error)
total
"""


def add(a: int, b: int) -> int:
    if not isinstance(a, int) or not isinstance(b, int):
        raise TypeError("add takes numbers")
    return a + b


async def main() -> None:
    async with make_sandbox("auto") as sandbox:
        execution = await sandbox.execute(ACTION, ["add"])
        while True:
            match await execution.next():
                case FunctionCall(args=args) as call:
                    print("call:  ", call.function_name, args)
                    try:
                        await execution.provide_result(add(*args))
                    except TypeError as error:
                        await execution.provide_error(error)
                case Waiting():
                    raise AssertionError("never seen by a loop that answers each call at once")
                case ExecutionResult() as result:
                    break
    print("stdout:", result.stdout.strip())
    print("output:", result.output)


asyncio.run(main())
