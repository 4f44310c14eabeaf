"""An MCP server whose tool has an effect, and which can be made to die."""

import os
import sys
from pathlib import Path

from mcp.server.mcpserver import MCPServer

server = MCPServer("effects")
EFFECTS = Path(sys.argv[1])


@server.tool()
def mark(number: int) -> str:
    """Leave a mark."""
    with EFFECTS.open("a") as file:
        file.write(f"{number}\n")
    return f"marked {number}"


@server.tool()
def die() -> str:
    """Die during the call."""
    os._exit(3)


server.run()
