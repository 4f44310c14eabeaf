"""Hatchway as an MCP server: `execute_code` and everything behind it, for any MCP client. See README.md."""

from __future__ import annotations

from hatchway.core.errors import MissingExtra

try:
    import mcp as _mcp  # noqa: F401  # pyright: ignore[reportUnusedImport]
except ImportError:
    raise MissingExtra("the MCP server", "mcp") from None

from hatchway.adapters.mcp_server.face import McpFace
from hatchway.adapters.mcp_server.serving import serve_http, serve_stdio
from hatchway.adapters.mcp_server.telling import Hearing

__all__ = ["Hearing", "McpFace", "serve_http", "serve_stdio"]
