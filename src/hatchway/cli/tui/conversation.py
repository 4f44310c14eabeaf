"""Conversation: prompts and turns, one after the other, until the person leaves."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from hatchway.agent.human import HUMAN
from hatchway.cli.agent_setup import Setup, load_model, started
from hatchway.cli.attachments import attached
from hatchway.cli.logs import logging_to
from hatchway.cli.recording import Recording
from hatchway.cli.tui.approving import Approver
from hatchway.cli.tui.completing import PromptCompleter
from hatchway.cli.tui.first_run import first_run
from hatchway.cli.tui.python_prompt import set_prompt
from hatchway.cli.tui.screen import Screen
from hatchway.cli.tui.status import Status
from hatchway.cli.tui.turn import Allower, TurnView
from hatchway.cli.tui.words import Words, is_word
from hatchway.core.errors import HatchwayError
from hatchway.core.events import ApprovalRequest
from hatchway.trace.dialogue import MAIN

if TYPE_CHECKING:
    from hatchway.agent.agent import Agent
    from hatchway.agent.permissions import PermissionManager

GO_ON = "hatchway -c goes on with this conversation"
HUMAN_HELLO = "what you type is Python, and runs in the sandbox · /tools lists what it can call · q leaves"
Draft = asyncio.Future[str | None]
"""What the person began to type while the agent was loaded."""


async def talk(screen: Screen, status: Status, setup: Setup, draft: Draft) -> bool:
    """Talk until the person leaves. Whether they want to see the demo instead.

    Raises:
        HatchwayError: The agent cannot be started, or the recording not be written.
    """
    name = setup.choice.model
    if name is None:
        status.doing, idle_hint, status.idle_hint = "", status.idle_hint, ""
        await _put_aside(screen, draft)
        if _has_left(draft):
            return False
        choice = await first_run(screen, setup.choice.why)
        if choice != "human":
            return choice == "demo"
        name, status.idle_hint = HUMAN, idle_hint
        draft = asyncio.ensure_future(screen.compose())
    status.model, status.doing = name, "starting"
    set_prompt(screen, is_python=name == HUMAN)
    model = await asyncio.to_thread(load_model, name, setup.choice)
    options = setup.options
    recording = Recording(options.record_dir, options.record_title) if options.record else None
    if recording is not None:
        recording.write()  # before anything is said that could not be recorded
    with logging_to(screen.print, setup.options.log_level):
        async with started(setup, model) as (agent, permissions):
            status.doing = ""
            screen.refresh()
            await _Talk(screen, status, setup, agent, permissions, recording).run(draft)
    return False


async def _put_aside(screen: Screen, draft: Draft) -> None:
    """Close the prompt; what was typed, or sent before anybody took it, stands there again when it is opened."""
    text = (draft.result() or "") if draft.done() else screen.buffer.text
    draft.cancel()
    await asyncio.gather(draft, return_exceptions=True)
    screen.buffer.text = text


def _has_left(draft: Draft) -> bool:
    """Whether the person left while the agent was loaded."""
    return draft.done() and not draft.cancelled() and draft.result() is None


class _Talk:
    """One conversation at a screen."""

    def __init__(
        self,
        screen: Screen,
        status: Status,
        setup: Setup,
        agent: Agent,
        permissions: PermissionManager,
        recording: Recording | None,
    ) -> None:
        self._screen, self._status, self._setup, self._agent = screen, status, setup, agent
        self._permissions, self._recording = permissions, recording
        self._typed = ""
        self._view = TurnView(
            screen,
            status,
            Approver(screen, permissions),
            approves=self._allower,
            recording=self._recording,
        )
        self._words = Words(self._view, agent, setup.config.skills_metadata, self._take_model)
        screen.completer = PromptCompleter(
            setup.config.working_dir,
            {"/skill": self._skills, "/model": lambda: [(HUMAN, "you write the code")]},
        )
        screen.on_whole = self._show_whole
        self._whole: asyncio.Future[None] | None = None

    async def run(self, draft: Draft) -> None:
        """Prompts and turns, to the end."""
        for warning in self._setup.warnings:
            self._view.note(warning)
        if self._agent.messages and not _has_left(draft):
            draft = await self._go_on(draft)
        elif self._is_human:
            self._view.note(HUMAN_HELLO)
        while (text := await draft) is not None:
            await self._take(text)
            draft = asyncio.ensure_future(self._screen.compose())
        self._write_recording(last=True)
        if self._agent.messages:
            self._screen.print(f"{GO_ON}\n")

    async def _go_on(self, draft: Draft) -> Draft:
        """Show where it stood, and go on with a turn that was broken off; then with what was sent meanwhile."""
        from hatchway.cli.tui.earlier import last_exchange, prompts

        is_sent = draft.done()
        if not is_sent:
            await _put_aside(self._screen, draft)
        for prompt in prompts(self._agent.messages):
            self._screen.buffer.history.append_string(prompt)
        self._view.add(last_exchange(self._agent.messages))
        await self._follow(self._agent.resume())
        return draft if is_sent else asyncio.ensure_future(self._screen.compose())

    async def _take(self, text: str) -> None:
        try:
            prompt = self._words.take(text) if is_word(text) else text
            if prompt is None:
                return
            self._view.said(text, is_code=self._is_human)
            content = prompt
            if not self._is_human:
                brought = await asyncio.to_thread(attached, prompt, self._setup.config.working_dir)
                content = brought.content()
                for note in brought.notes:
                    self._view.note(note)
        except Exception as e:  # nothing a person types ends the conversation
            self._view.failed(e)
            return
        self._typed = prompt
        await self._follow(self._agent.stream(content))

    async def _follow(self, events: object) -> None:
        await self._view.follow(events, self._agent.cancel)  # pyright: ignore
        usage = self._agent.usage
        if not self._is_human:
            self._status.tokens, self._status.cost = usage.input_tokens + usage.output_tokens, usage.cost
        self._write_recording()
        self._screen.refresh()

    @property
    def _is_human(self) -> bool:
        return self._status.model == HUMAN

    def _allower(self, request: ApprovalRequest) -> Allower | None:
        own = request.kind == "code" and request.agent_id in ("", MAIN)
        if self._is_human and own and request.tool_args.get("code") == self._typed:
            return "writer"
        if request.in_doubt:
            return None  # what may have run already is never guessed about
        if self._setup.options.yes:
            return "option"
        return "permission" if self._permissions.is_allowed(request.tool_name, dict(request.tool_args)) else None

    def _take_model(self, name: str) -> None:
        self._agent.model = load_model(name, self._setup.choice)
        self._status.model = name
        set_prompt(self._screen, is_python=self._is_human)

    def _skills(self) -> Sequence[tuple[str, str]]:
        return [(skill.name, skill.description) for skill in self._setup.config.skills_metadata]

    def _show_whole(self) -> None:
        if self._whole is None or self._whole.done():
            self._whole = asyncio.ensure_future(self._screen.show_whole(self._view.scroll.whole(), at_end=True))

    def _write_recording(self, *, last: bool = False) -> None:
        if self._recording is None:
            return
        try:
            made = self._recording.write()
        except HatchwayError as e:
            self._view.note(str(e), is_bad=True)
            return
        if last:
            self._view.scroll.add([])
            self._screen.print("".join(f"recorded {path}\n" for path in made))
