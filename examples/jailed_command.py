"""A program you did not write, behind the jail's wall: it changes the workspace and never sees the keys in it."""

import asyncio
import tempfile
from pathlib import Path

from hatchway import Limits, SandboxUnavailable
from hatchway.core.paths import path_rules
from hatchway.sandboxes.jail import CommandJail

SCRIPT = """
echo "seen: $(ls)" > report.txt
cat .env || echo "no keys for me"
"""


async def report(workspace: Path) -> str:
    """Let the script work in the workspace; what it said."""
    rules = path_rules(write=[workspace], deny_read=[".env"], deny_write=["data.csv"])
    async with CommandJail(paths=rules) as jail:
        done = await jail.run(["sh", "-c", SCRIPT], limits=Limits(wall_seconds=10))
    return done.stdout.decode()


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        workspace = Path(folder)
        (workspace / ".env").write_text("KEY=secret")
        (workspace / "data.csv").write_text("1,2\n")
        try:
            print(asyncio.run(report(workspace)), end="")
        except SandboxUnavailable as e:
            print("not on this machine:", e)
            return
        print((workspace / "report.txt").read_text(), end="")


if __name__ == "__main__":
    main()
