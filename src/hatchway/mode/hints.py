"""What the author of failed code can change, read off its traceback."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from difflib import get_close_matches

MOST_READ = 2_000
"""Characters of a traceback's end that are looked at: it is a stranger's text, of any length."""
_UNDEFINED = re.compile(r"name '(\w{1,100})' is not defined|Name `(\w{1,100})` used when not defined")
"""As Python says it, and as the type check does."""
_NO_NETWORK = re.compile(r"gaierror|URLError|Name or service not known|name resolution|Network is unreachable")
"""How a connection that the sandbox does not let out fails, in the last line."""


def what_to_change(message: str, names: Sequence[str], *, has_network: bool, away: Collection[str] = ()) -> str:
    """A hint, or nothing.

    Args:
        message: The traceback.
        names: Of the tools the code may call.
        has_network: Whether the code may connect anywhere.
        away: MCP servers that cannot be had, by their names in the code.
    """
    end = message[-MOST_READ:]
    unknown = _UNDEFINED.findall(end)
    if unknown and (name := "".join(unknown[-1])) in away:
        # why is for the host's log: a server's last words may hold what is not for the code
        return f"the MCP server {name} cannot be had at the moment: do without it, or try again later"
    close = get_close_matches("".join(unknown[-1]), names, n=3) if unknown else list[str]()
    if close:
        return f"did you mean the tool {' or '.join(close)}?"
    if not has_network and _is_refused_connection(end):
        return "the code has no network: grant it where it may go, allowed_domains=['example.com']"
    return ""


def _is_refused_connection(end: str) -> bool:
    last = end.rstrip().rpartition("\n")[2]
    return bool(_NO_NETWORK.search(last)) or ("socket" in end and last.startswith("PermissionError"))
