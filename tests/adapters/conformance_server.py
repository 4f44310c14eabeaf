"""The server's face with the tools the official conformance suite asks for: each is an action given to `execute_code`.

The suite calls tools of its own by name (`test_image_content` …) and looks at what comes back. What it looks at is what
this face makes of code: text, pictures, files, errors, log messages, progress, questions to a person.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path
from typing import Any

from mcp.types import CallToolRequestParams, CallToolResult, InputRequiredResult, ListToolsResult, Tool

from hatchway import CodeMode, tool
from hatchway.adapters.mcp_server import Hearing, McpFace, serve_http
from hatchway.sandboxes.process import ProcessSandbox
from hatchway.tools.search.discovery import Finder
from hatchway.tools.search.settings import SearchSettings

PICTURE = "class P:\n    def _repr_png_(self): return b'\\x89PNG\\r\\n\\x1a\\n'\n"
CODE = {
    "test_simple_text": "print('This is a simple text response for testing.')",
    "test_image_content": f"{PICTURE}P()",
    "test_embedded_resource": "_ = open('output/note.txt', 'w').write('This is an embedded resource content.')",
    "test_multiple_content_types": (
        f"{PICTURE}print('Multiple content types test:')\n"
        """_ = open('output/data.json', 'w').write('{"test":"data","value":123}')\nP()"""
    ),
    "test_tool_with_logging": (
        "import time\n"
        "for said in ('started', 'processing', 'completed'):\n    print(said, flush=True)\n    time.sleep(0.2)"
    ),
    "test_error_handling": "raise ValueError('This tool intentionally returns an error for testing')",
    "test_tool_with_progress": "for step in range(3): work(step)",
    "test_elicitation": "charge(5)",
}


@tool
def work(step: int) -> int:
    """Do a step."""
    return step


@tool(approval="ask")
def charge(euros: int) -> int:
    """Charge a card."""
    return euros


class ConformanceFace(McpFace):
    """Offers the suite's tools beside its own."""

    async def _list(self, context: Any, params: Any) -> ListToolsResult:
        listed = await super()._list(context, params)
        more = [Tool(name=name, description="Of the suite.", input_schema={"type": "object"}) for name in CODE]
        return ListToolsResult(tools=[*listed.tools, *more])

    async def _call(self, context: Any, params: CallToolRequestParams) -> CallToolResult | InputRequiredResult:
        if code := CODE.get(params.name):
            params = params.model_copy(update={"name": "execute_code", "arguments": {"code": code}})
        return await super()._call(context, params)


async def main() -> None:
    """Serve on a free port, which is told on stdout."""
    with tempfile.TemporaryDirectory() as folder:
        sandbox = ProcessSandbox(file_mounts=[(folder, "given")])
        settings = SearchSettings(directory=Path(folder), database=None, embedder="test", dimensions=8)
        finder, hearing = Finder("basic", settings), Hearing()
        async with sandbox:
            mode = CodeMode(sandbox, tools=[work, charge], discovery=finder, on_event=hearing)
            face = ConformanceFace(mode, finder, hearing)
            await serve_http(face, port=0, token=None, on_ready=told)


def told(url: str) -> None:
    """Tell whoever started this."""
    sys.stdout.write(f"{url}\n")
    sys.stdout.flush()


asyncio.run(main())
