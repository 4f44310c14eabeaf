"""What each key of an approval leads to, at a screen that presses keys by a script."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from hatchway.agent.permissions import PermissionManager
from hatchway.cli.tui.approving import Approver, details
from hatchway.core.decisions import Allow, Deny, Edit, Ran, Settlement
from hatchway.core.events import ApprovalRequest

pytestmark = pytest.mark.anyio


class Scripted:
    """A screen whose person presses these keys and types these texts."""

    def __init__(self, *script: str | None) -> None:
        self._script = list(script)
        self.asked: list[str] = []
        self.offered: list[str] = []
        self.printed = ""
        self.shown = ""

    async def choose(self, question: str, keys: str) -> str:
        self.asked.append(question)
        key = self._script.pop(0)
        assert key is not None
        assert key in keys
        return key

    async def field(self, label: str, text: str = "", *, many_lines: bool = False) -> str | None:
        self.asked.append(label)
        self.offered.append(text)
        return self._script.pop(0)

    async def show_whole(self, text: str) -> None:
        self.shown = text

    def print(self, text: str) -> None:
        self.printed += text


class Kept:
    """Remembers what was allowed."""

    def __init__(self) -> None:
        self.always: list[tuple[str, str | None]] = []
        self.session: list[tuple[str, str | None]] = []

    async def allow_always(self, tool_name: str, pattern: str | None = None) -> None:
        self.always.append((tool_name, pattern))

    def allow_session(self, tool_name: str, pattern: str | None = None) -> None:
        self.session.append((tool_name, pattern))

    def is_allowed(self, tool_name: str, tool_args: Mapping[str, Any] | None = None) -> bool:
        return True

    def suggest(self, tool_name: str, tool_args: Mapping[str, Any]) -> str:
        return f"{tool_name}({', '.join(tool_args)}=*)"


async def decided(screen: Scripted, kept: Kept | None = None, **about: Any) -> Settlement:
    request = ApprovalRequest("send", {"to": "ada"}, **about)
    return (await Approver(screen, kept or Kept()).ask(request)).decision


@pytest.mark.parametrize(
    ("script", "decision"),
    [
        (["\r"], Allow()),
        (["y"], Allow()),
        (["n", ""], Deny()),
        (["n", " too much "], Deny("too much")),
        (["n", None, "y"], Allow()),
        (["d", "y"], Allow()),
        (["e", '{"to": "bob"}'], Edit({"to": "bob"})),
        (["e", None, "n", ""], Deny()),
        (["e", "{to}", '["bob"]', '{"to": "eve"}'], Edit({"to": "eve"})),
    ],
)
async def test_keys_decide(script: list[str | None], decision: Settlement) -> None:
    screen = Scripted(*script)
    assert await decided(screen) == decision
    assert screen.asked[0].startswith("Allow send? [Enter/y] yes [n] no [s] session [a] always")


async def test_mistakes_in_edited_arguments_are_said_and_stay_to_be_mended() -> None:
    screen = Scripted("e", "{to}", '{"to": "eve"}')
    await decided(screen)
    assert screen.offered == ['{\n  "to": "ada"\n}', "{to}"]
    assert "That is not JSON: Expecting property name" in screen.printed


async def test_an_action_is_edited_as_code() -> None:
    screen = Scripted("e", "print(2)")
    request = ApprovalRequest("execute_code", {"code": "print(1)"}, kind="code")
    answer = await Approver(screen, Kept()).ask(request, more=2)
    assert answer.decision == Edit({"code": "print(2)"})
    assert screen.offered == ["print(1)"]
    assert screen.asked[0].startswith("Run it? (2 more after it) [Enter/y] yes")


async def test_s_allows_for_the_session_and_a_for_good_by_a_pattern_that_was_seen() -> None:
    kept = Kept()
    assert await decided(Scripted("s"), kept) == Allow()
    assert await decided(Scripted("a", "send(to=ada)"), kept) == Allow()
    assert kept.session == [("send", "send(to=*)")]
    assert kept.always == [("send", "send(to=ada)")]


async def test_a_pattern_is_about_the_tool_that_asks_and_says_when_this_call_is_not_among_those(tmp_path: Path) -> None:
    permissions = PermissionManager(tmp_path / ".hatchway")
    screen = Scripted("a", "other(to=ada)", "send(to=bob)")
    answer = await Approver(screen, permissions).ask(ApprovalRequest("send", {"to": "ada"}))
    assert screen.printed == "other(to=ada) is not about send: begin it with that name.\n"
    assert screen.offered == ["send", "other(to=ada)"]
    assert answer.kept == "send(to=bob) is allowed from now on; what is like this one will be asked again"
    assert permissions.is_allowed("send", {"to": "bob"})
    assert not permissions.is_allowed("other", {"to": "ada"})
    answer = await Approver(Scripted("s"), permissions).ask(ApprovalRequest("send", {"to": "ada"}))
    assert answer.kept == "send is allowed until you leave"


async def test_what_is_no_pattern_is_said_and_stays_to_be_mended(tmp_path: Path) -> None:
    permissions = PermissionManager(tmp_path / ".hatchway")
    screen = Scripted("a", "send(to", "send(to=ada)")
    assert (await Approver(screen, permissions).ask(ApprovalRequest("send", {"to": "ada"}))).decision == Allow()
    assert screen.asked[1:] == ["Always allow: ", "Always allow: "]
    assert screen.offered == ["send", "send(to"]
    assert screen.printed == (
        "'send(to' is no pattern of calls\n"
        "write read_file, github.*, read_file(path=src/**) or f(x=\"a, b\")\n"
    )  # fmt: skip


async def test_code_may_be_allowed_by_what_it_gives_to_a_shell(tmp_path: Path) -> None:
    request = ApprovalRequest("execute_code", {"code": "!git status"}, kind="code")
    answer = await Approver(Scripted("a", "shell(command=git *)"), PermissionManager(tmp_path)).ask(request)
    assert answer.kept.startswith("shell(command=git *) is allowed from now on")


async def test_who_asks_is_named_where_it_is_not_the_main_agent() -> None:
    screen = Scripted("y")
    await Approver(screen, None).ask(ApprovalRequest("send", {}, agent_id="sub-1a2b"), more=1)
    assert screen.asked == ["sub-1a2b: Allow send? (1 more after it) [Enter/y] yes [n] no [e] edit [d] details"]


async def test_a_pattern_that_was_left_or_emptied_allows_nothing() -> None:
    kept = Kept()
    screen = Scripted("a", None, "a", "  ", "n", "")
    assert await decided(screen, kept) == Deny()
    assert screen.offered[:2] == ["send(to=*)", "send(to=*)"]
    assert kept.always == []


async def test_without_permissions_neither_key_is_offered() -> None:
    screen = Scripted("y")
    await Approver(screen, None).ask(ApprovalRequest("send", {}))
    assert "[s]" not in screen.asked[0]
    with pytest.raises(AssertionError):
        await Approver(Scripted("s"), None).ask(ApprovalRequest("send", {}))


async def test_a_call_in_doubt_can_be_said_to_have_run() -> None:
    screen = Scripted("r", "no json", "r", '{"id": 7}')
    assert await decided(screen, in_doubt=True) == Ran({"id": 7})
    assert screen.asked[0].startswith("Did it run?")
    assert await decided(Scripted("r", ""), in_doubt=True) == Ran(None)
    with pytest.raises(AssertionError):
        await decided(Scripted("\r"), in_doubt=True)


async def test_details_show_everything_and_nothing_a_terminal_acts_on() -> None:
    request = ApprovalRequest(
        "edit\x1b]0;x\x07", {"path": "a" * 5000}, diff="-a\n+b\x1b[2J", call_id="c1", run_id="r1", agent_id="main"
    )
    shown = details(request)
    assert "a" * 5000 in shown
    assert "agent main  run r1  call c1" in shown
    assert "\x1b" not in shown
    assert "-a\n+b\\x1b[2J" in shown
    assert "import os" in details(ApprovalRequest("execute_code", {"code": "import os"}, kind="code"))
