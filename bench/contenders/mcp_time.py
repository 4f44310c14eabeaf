"""The server whose calls are compared: PyPI's mcp-server-time, from the environment the bench itself runs in."""

import os
import sys

SERVER = {
    "command": os.environ.get("HATCHWAY_BENCH_PYTHON", sys.executable),
    "args": ["-m", "mcp_server_time", "--local-timezone", "UTC"],
}
TOOL = "get_current_time"
ARGUMENTS = {"timezone": "UTC"}
