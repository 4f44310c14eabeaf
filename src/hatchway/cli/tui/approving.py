"""Approving: what a person is asked about an action or a call, key by key."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from hatchway.agent.permissions import SHELL
from hatchway.core.decisions import Allow, Decision, Deny, Edit, Ran, Settlement
from hatchway.core.errors import InvalidSetting
from hatchway.core.events import ApprovalRequest
from hatchway.gate.patterns import parse_pattern
from hatchway.gate.rules import Rule
from hatchway.trace.dialogue import MAIN
from hatchway.trace.text import call_source, neutral
from hatchway.trace.wording import WHOLE

CHOICES = "[Enter/y] yes [n] no [s] session [a] always [e] edit [d] details"
IN_DOUBT = "[y] run it (again) [r] it did run [n] no [d] details"


class Fields(Protocol):
    """What asking needs of a screen."""

    async def choose(self, question: str, keys: str) -> str:
        """Which of the keys a person pressed."""
        ...

    async def field(self, label: str, text: str = "", *, many_lines: bool = False) -> str | None:
        """What a person wrote, beginning with `text`; None when they would rather not."""
        ...

    async def show_whole(self, text: str) -> None:
        """Show a text of any length, until a person has seen enough."""
        ...

    def print(self, text: str) -> None:
        """Show a text that stays."""
        ...


class Permissions(Protocol):
    """What asking needs of the stored permissions."""

    async def allow_always(self, tool_name: str, pattern: str | None = None) -> None:
        """Allow calls for good; with a pattern those it fits."""
        ...

    def allow_session(self, tool_name: str, pattern: str | None = None) -> None:
        """Allow calls until the program ends; with a pattern those it fits."""
        ...

    def is_allowed(self, tool_name: str, tool_args: Mapping[str, Any] | None = None) -> bool:
        """Whether a call may run without asking."""
        ...

    def suggest(self, tool_name: str, tool_args: Mapping[str, Any]) -> str:
        """A pattern for calls like this one, for a person to change."""
        ...


class Answer(NamedTuple):
    """What a person decided, and what was kept of it for other calls."""

    decision: Settlement
    kept: str = ""


class Approver:
    """Asks a person at a screen.

    Args:
        screen: Where.
        permissions: What `s` and `a` write to; without them, neither key is offered.
    """

    def __init__(self, screen: Fields, permissions: Permissions | None) -> None:
        self._screen, self._permissions = screen, permissions

    async def ask(self, request: ApprovalRequest, *, more: int = 0) -> Answer:
        """The answer to one request, of which all is on the screen already."""
        while True:
            key = await self._screen.choose(self._question(request, more), self._keys(request))
            if (answer := await self._answered(request, key)) is not None:
                return answer

    def _keys(self, request: ApprovalRequest) -> str:
        if request.in_doubt:
            return "ynrd"
        return "\ryned" + ("sa" if self._permissions else "")

    def _question(self, request: ApprovalRequest, more: int) -> str:
        what = "Run it?" if request.kind == "code" else f"Allow {neutral(request.tool_name)}?"
        choices = CHOICES if self._permissions else CHOICES.replace("[s] session [a] always ", "")
        if request.in_doubt:
            what, choices = "Did it run?", IN_DOUBT
        who = f"{neutral(request.agent_id)}: " if request.agent_id not in ("", MAIN) else ""
        waits = f" ({more} more after it)" if more else ""
        return f"{who}{what}{waits} {choices}"

    async def _answered(self, request: ApprovalRequest, key: str) -> Answer | None:
        """What a key leads to; None: ask again."""
        match key:
            case "\r" | "y":
                return Answer(Allow())
            case "n":
                reason = await self._screen.field("Why not? (Enter alone ends the turn) ")
                return None if reason is None else Answer(Deny(reason.strip()))
            case "r":
                return await self._ran()
            case "s":
                return await self._kept(request, always=False)
            case "a":
                return await self._kept(request, always=True)
            case "e":
                edited = await self._edited(request)
                return None if edited is None else Answer(edited)
            case _:
                await self._screen.show_whole(details(request))
                return None

    async def _kept(self, request: ApprovalRequest, *, always: bool) -> Answer | None:
        """Allowed, together with all that fits a pattern; for good only as the person has seen and changed it."""
        assert self._permissions is not None, "the keys are not offered without"
        name = request.tool_name
        pattern = self._permissions.suggest(name, request.tool_args)
        if not always:
            self._permissions.allow_session(name, pattern)
            return Answer(Allow(), f"{pattern} is allowed until you leave{self._but(request)}")
        while pattern := (await self._screen.field("Always allow: ", pattern) or "").strip():
            if not (wrong := _wrong(pattern, request)):
                break
            self._screen.print(f"{wrong}\n")
        if not pattern:
            return None
        await self._permissions.allow_always(name, pattern)
        return Answer(Allow(), f"{pattern} is allowed from now on{self._but(request)}")

    def _but(self, request: ApprovalRequest) -> str:
        """Where the like of this will be asked about all the same: a narrow pattern, or the agent's own folder."""
        known = self._permissions is not None and self._permissions.is_allowed(request.tool_name, request.tool_args)
        return "" if known else "; what is like this one will be asked again"

    async def _edited(self, request: ApprovalRequest) -> Decision | None:
        is_code = request.kind == "code"
        text = str(request.tool_args.get("code", "")) if is_code else _as_json(request.tool_args)
        label = ""
        while True:
            self._screen.print(f"{label}Change it; Ctrl+S runs it so, Esc leaves it as it is.\n")
            typed = await self._screen.field("", text, many_lines=True)
            if typed is None:
                return None
            if is_code:
                return Edit({**request.tool_args, "code": typed})
            try:
                args = json.loads(typed)
            except ValueError as e:
                label, text = f"That is not JSON: {neutral(str(e))}. ", typed
                continue
            if isinstance(args, dict):
                return Edit(dict[str, Any](args))  # pyright: ignore[reportUnknownArgumentType]
            label, text = "The arguments are an object: {…}. ", typed

    async def _ran(self) -> Answer | None:
        typed = await self._screen.field("What did it return? (JSON; Enter alone: nothing) ")
        if typed is None:
            return None
        try:
            return Answer(Ran(json.loads(typed) if typed.strip() else None))
        except ValueError as e:
            self._screen.print(f"That is not JSON: {neutral(str(e))}.\n")
            return None


def details(request: ApprovalRequest) -> str:
    """Everything that is known of a request, as plain text."""
    about = {"agent": request.agent_id, "run": request.run_id, "call": request.call_id}
    head = "  ".join(f"{label} {neutral(value)}" for label, value in about.items() if value)
    if request.kind == "code":
        return f"An action asks to run.  {head}\n\n{neutral(str(request.tool_args.get('code', '')))}\n"
    call = call_source(request.tool_name, request.tool_args, WHOLE)[0]
    diff = f"\n\n{neutral(request.diff)}" if request.diff else ""
    return f"A call of {neutral(request.tool_name)} asks.  {head}\n\n{call}{diff}\n"


def _wrong(pattern: str, request: ApprovalRequest) -> str:
    """Why a pattern cannot be kept: it is none, or not about the tool that asks; empty where it can."""
    try:
        tool, _ = parse_pattern(pattern)
    except InvalidSetting as e:
        return neutral(str(e))
    is_shell = request.kind == "code" and tool == SHELL  # what code gives to a shell is a matter of the code
    if is_shell or Rule("allow", tool).names(request.tool_name):
        return ""
    return f"{neutral(pattern)} is not about {neutral(request.tool_name)}: begin it with that name."


def _as_json(args: Mapping[str, Any]) -> str:
    return json.dumps(dict(args), indent=2, ensure_ascii=False, default=repr)
