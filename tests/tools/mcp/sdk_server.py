"""An MCP server of the SDK itself, in its newest protocol: `stdio`, or `http TOKEN`, which prints its port first."""

import base64
import socket
import sys
from typing import Any

import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from mcp.types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    ElicitRequest,
    ElicitRequestFormParams,
    EmbeddedResource,
    InputRequiredResult,
    ResourceLink,
    SamplingMessage,
    TextContent,
    TextResourceContents,
)
from starlette.responses import Response

server = MCPServer("sdk")
number = [0]


@server.tool()
async def grow(ctx: Context[Any, Any]) -> str:
    """Offer one more tool."""
    server.add_tool(lambda: "here", name="added", description="Came later.")
    await ctx.notify_tools_changed()
    return "grown"


@server.tool()
def contents() -> CallToolResult:
    """Sound, a file as text, a file as bytes, a link."""
    sound = base64.b64encode(b"RIFF").decode()
    text = TextResourceContents(uri="note://1", mime_type="text/plain", text="a note")
    blob = BlobResourceContents(uri="blob://1", mime_type="application/zip", blob=base64.b64encode(b"PK").decode())
    link = ResourceLink(type="resource_link", uri="file:///a.txt", name="a", mime_type="text/plain")
    return CallToolResult(
        content=[
            TextContent(type="text", text="all of it"),
            AudioContent(type="audio", data=sound, mime_type="audio/wav"),
            EmbeddedResource(type="resource", resource=text),
            EmbeddedResource(type="resource", resource=blob),
            link,
        ]
    )


@server.tool(structured_output=False)
def rows(count: int) -> CallToolResult:
    """Data of no declared type; every second row has a note."""
    listed = [{"id": n, "name": "x"} | ({"note": "odd"} if n % 2 else {}) for n in range(count)]
    return CallToolResult(content=[], structured_content={"rows": listed, "total": count})


@server.tool(structured_output=False)
def long() -> str:
    """Five megabytes."""
    return "x" * 5_000_000


@server.tool()
def double(n: int) -> dict[str, int]:
    """Twice as much."""
    return {"twice": 2 * n}


@server.tool()
def ask(state: str) -> InputRequiredResult:
    """Wants to know something first, or only to be called again."""
    form = ElicitRequestFormParams(message="?", requested_schema={"type": "object", "properties": {}})
    if state == "person":
        return InputRequiredResult(input_requests={"q": ElicitRequest(params=form)})
    return InputRequiredResult(request_state="once more")


@server.tool()
async def sample(ctx: Context[Any, Any]) -> str:
    """Wants a model to say something, as servers did before."""
    asked = SamplingMessage(role="user", content=TextContent(type="text", text="?"))
    return str(await ctx.session.create_message([asked], max_tokens=5))


class Guarded:
    """Lets in who has the token."""

    def __init__(self, app: Any, token: str) -> None:
        self._app, self._token = app, token

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        sent = dict(scope.get("headers") or []).get(b"authorization", b"").decode()
        if scope["type"] == "http" and sent != f"Bearer {self._token}":
            await Response(status_code=401)(scope, receive, send)
        else:
            await self._app(scope, receive, send)


def main() -> None:
    if sys.argv[1] == "stdio":
        server.run()
        return
    listening = socket.create_server(("127.0.0.1", 0))
    sys.stdout.write(f"{listening.getsockname()[1]}\n")
    sys.stdout.flush()
    app = Guarded(server.streamable_http_app(), sys.argv[2])
    uvicorn.Server(uvicorn.Config(app, log_level="error")).run([listening])


main()
