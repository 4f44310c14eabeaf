"""What the code shows comes out in order, without a file: pictures, tables, and whatever says how it looks."""

import asyncio

from hatchway import CodeMode
from hatchway.core.events import CodeExecutionDisplay

ACTION = """
class Bars:
    def __init__(self, **heights):
        self.heights = heights

    def _repr_svg_(self):
        bars = (f'<rect x="{20 * n}" width="15" height="{h}"/>' for n, h in enumerate(self.heights.values()))
        return f'<svg xmlns="http://www.w3.org/2000/svg">{"".join(bars)}</svg>'

    def _repr_html_(self):
        return "<table/>"  # of several forms the picture is taken

    def __repr__(self):
        return f"bars of {', '.join(self.heights)}"

print("drawing")
display(Bars(tea=35, cake=40))
Bars(milk=12)
"""


async def main() -> None:
    async with CodeMode("process") as mode:
        async for event in mode.stream(ACTION):
            if isinstance(event, CodeExecutionDisplay):
                shown = event.display
                print(f"{shown.name}: {shown.text} ({shown.mime_type}, {len(shown.content)} bytes)")


asyncio.run(main())
