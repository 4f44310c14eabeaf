"""Desk: where the turns of an adapter begin, and what it remembers from one to the next."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from hatchway.core.errors import InvalidSetting
from hatchway.core.results import ExecFile
from hatchway.hosted.context import EventBus, PromptMetadata, Turn
from hatchway.hosted.given import exec_files
from hatchway.hosted.session import HostedSession

if TYPE_CHECKING:
    from hatchway.hosted.adapter import HostedAdapter
    from hatchway.hosted.sandbox import HostedSandbox


class Desk:
    """Knows the sessions somebody still has, and which strange items were told of.

    Args:
        adapter: Whose turns begin here.
        sandbox: The vendor as a sandbox.
    """

    def __init__(self, adapter: HostedAdapter, sandbox: HostedSandbox) -> None:
        self._adapter = adapter
        self._sandbox = sandbox
        self._sessions: WeakValueDictionary[str, HostedSession] = WeakValueDictionary()
        self._news: set[str] = set()

    def session(self) -> HostedSession:
        """A new session."""
        session = HostedSession(self._sandbox)
        self._sessions[session.session_id] = session
        return session

    def known_session(self, session_id: str) -> HostedSession | None:
        """A session of this adapter that somebody still has."""
        return self._sessions.get(session_id)

    def is_news(self, kind: str) -> bool:
        """Whether a kind of item was not heard of before; once."""
        is_new = kind not in self._news
        self._news.add(kind)
        return is_new

    def turn(
        self,
        prompt: str,
        session: HostedSession | None = None,
        *,
        name: str = "",
        files: Iterable[ExecFile] = (),
        tool_choice: str | None = None,
        output_schema: Mapping[str, Any] | None = None,
    ) -> Turn:
        """A request about to be made.

        Raises:
            InvalidSetting: Not a prompt or session, `tool_choice` is none, or files for code that is not there.
        """
        adapter, given = self._adapter, exec_files(files)
        self._check_session(session)
        tool_choice = self._chosen(tool_choice)
        if given:
            self._check_files()
        bus = EventBus()
        bus.subscribe(adapter.event_bus.publish)
        metadata = PromptMetadata(text=prompt, instructions=adapter.instructions, model=adapter.model, name=name)
        return Turn(
            prompt=metadata,
            adapter=adapter,
            session=session or self.session(),
            event_bus=bus,
            deadline=None if adapter.deadline is None else time.monotonic() + adapter.deadline,
            options={"tool_choice": tool_choice, "output_schema": output_schema and dict(output_schema)},
            files=given,
        )

    def _check_session(self, session: Any) -> None:
        if session is None:
            return
        if not isinstance(session, HostedSession):
            raise InvalidSetting(
                f"a session is a HostedSession, not {type(session).__name__}", hint="adapter.session()"
            )
        at = session.sandbox.adapter.provider
        if at != self._adapter.provider:
            raise InvalidSetting(
                f"the session is a conversation with {at}, this adapter speaks with {self._adapter.provider}",
                hint="begin a new one: adapter.session()",
            )

    def _check_files(self) -> None:
        offer = self._adapter.offer
        if offer.code is None and offer.here is None:
            raise InvalidSetting(
                "files are for the model's code, and it was offered no code tool",
                hint=f"tools=[code_tool({self._adapter.provider!r})], or code_tool('jail')",
            )
        if offer.code is None and offer.here is not None and not offer.here.takes_files:
            raise InvalidSetting(
                f"the sandbox {offer.here.settings.sandbox!r} has no place for files", hint="code_tool('jail') has"
            )

    def _chosen(self, choice: str | None) -> str | None:
        """What is asked for; `execute_code` is the code tool wherever it runs."""
        offer = self._adapter.offer
        names = {*offer.tools} | ({offer.code.name} if offer.code else set[str]())
        if choice == "execute_code" and choice not in names and offer.code is not None:
            return offer.code.name
        if choice is not None and choice not in ("auto", "none", "required", *names):
            raise InvalidSetting(
                f"tool_choice is 'auto', 'none', 'required' or a tool, not {choice!r}",
                hint=f"the tools are {', '.join(sorted(names)) or 'none'}",
            )
        return choice
