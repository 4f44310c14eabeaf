"""Hints: what the author of failed code can change; a traceback is a stranger's text."""

import pytest

from hatchway.core.errors import CodeRuntimeError
from hatchway.mode.hints import what_to_change
from hatchway.mode.mode import CodeMode
from hatchway.sandboxes.registry import availability

GRANT = "the code has no network: grant it where it may go, allowed_domains=['example.com']"


@pytest.mark.parametrize(
    ("message", "hint"),
    [
        ("NameError: name 'prise' is not defined", "did you mean the tool price?"),
        (
            "error[unresolved-reference]: Name `prise` used when not defined\n --> action:1:1",
            "did you mean the tool price?",
        ),
        ("NameError: name 'x' is not defined", ""),
        ("urllib.error.URLError: <urlopen error [Errno 1] Operation not permitted>", GRANT),
        ("socket.gaierror: [Errno -2] Name or service not known", GRANT),
        ("OSError: [Errno 101] Network is unreachable", GRANT),
        ("  File 'socket.py', line 1, in __init__\nPermissionError: [Errno 1] Operation not permitted", GRANT),
        ("PermissionError: [Errno 13] Permission denied: '/etc/shadow'", ""),
        ("print('URLError')\nValueError: no", ""),
        ("socket " * 1_000_000 + "\nValueError: " + "a" * 1_000_000, ""),
        ("name '" + "a" * 1_000_000 + "' is not defined", ""),
    ],
)
def test_hints(message: str, hint: str) -> None:
    assert what_to_change(message, ["price"], has_network=False) == hint
    assert what_to_change(message, ["price"], has_network=True) == ("" if hint == GRANT else hint)


@pytest.mark.anyio
async def test_code_without_a_network_learns_how_it_is_granted() -> None:
    if availability("jail").state != "usable":
        pytest.skip(f"jail: {availability('jail').reason}")
    async with CodeMode("jail") as mode:
        with pytest.raises(CodeRuntimeError) as refused:
            await mode.run("import socket\nsocket.create_connection(('example.com', 80))")
    assert refused.value.hint == GRANT
