"""A tool with an effect, which asks first."""

from hatchway import tool


@tool(approval="ask")
def send(to: str, text: str = "hi") -> str:
    """Send a message."""
    with open("effects.txt", "a", encoding="utf-8") as file:
        file.write(to + " ")
    return f"sent to {to}: {text}"


@tool(approval="ask")
async def ping(number: int) -> str:
    """Answer."""
    return f"pong {number}"
