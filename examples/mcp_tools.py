"""An MCP server's tools in code: read-only ones run at once, the others wait for a person."""

import asyncio
import subprocess
import sys
import tempfile
from pathlib import Path

from hatchway import ApprovalRequired, CodeMode, Rule

SERVERS = {
    "time": {"command": sys.executable, "args": ["-m", "mcp_server_time", "--local-timezone", "UTC"]},
    "git": {"command": sys.executable, "args": ["-m", "mcp_server_git"]},
}
CODE = """
noon = time.convert_time(source_timezone="UTC", time="12:00", target_timezone="Asia/Tokyo")
git.git_add(repo_path=here, files=["note.txt"])
noon["target"]["datetime"][11:16]
"""


def prepare(folder: str) -> None:
    """A repository with a file nobody added yet."""
    subprocess.run(["git", "init", "-q", folder], check=True)
    Path(folder, "note.txt").write_text("tea\n")


async def main() -> None:
    """Run code that calls two servers."""
    with tempfile.TemporaryDirectory() as folder:
        await asyncio.to_thread(prepare, folder)
        async with CodeMode("monty", mcp_servers=SERVERS, rules=[Rule("allow", read_only=True)]) as mode:
            try:
                await mode.run(CODE, inputs={"here": folder})
            except ApprovalRequired as waiting:
                call = waiting.pending[0]
                print(f"asked:  {call.function_name}({call.kwargs['files']})")
                result = await mode.resume(waiting.run_id, {call.call_id: True})
                print(f"output: {result.output}")


if __name__ == "__main__":
    asyncio.run(main())
