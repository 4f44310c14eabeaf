"""Model-written code in a locked-down container. Needs Docker with the image python:3.12-slim."""

import asyncio

from hatchway import SandboxUnavailable
from hatchway.executors import CodeExecutionInput, ContainerCodeExecutor, InvocationContext

CODE = """
import os, socket
open("note.txt", "w").write("from inside")
print("uid:", os.getuid())
try:
    socket.create_connection(("example.com", 80))
except OSError:
    print("no network")
try:
    open("/usr/x", "w")
except OSError as e:
    print("root file system:", e.strerror)
"""


async def main():
    executor = ContainerCodeExecutor("python:3.12-slim").with_timeout(20).with_memory("128m")
    try:
        result = await executor.execute_code(InvocationContext(), CodeExecutionInput(CODE))
    except SandboxUnavailable as e:
        print("not here:", e.message)
        return
    print(result.stdout, end="")
    print("file:", result.output_files[0].name, result.output_files[0].content)


asyncio.run(main())
