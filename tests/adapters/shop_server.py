"""An MCP server of a shop, for the frameworks' own MCP clients; as a program it speaks over stdio."""

from mcp.server.mcpserver import MCPServer

server = MCPServer("shop")


@server.tool()
def price(item: str) -> float:
    """The price of an item."""
    return {"tea": 3.5}[item]


if __name__ == "__main__":
    server.run("stdio")
