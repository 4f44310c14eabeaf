"""Agent: a model that acts by code in a sandbox, asks before it acts, and can be resumed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from hatchway.agent.assembly import Assembly, Started
from hatchway.agent.config import loaded_ptc_servers
from hatchway.agent.history import History
from hatchway.agent.model_choice import given_or_found
from hatchway.agent.models import Model, ModelMessage, ModelSettings, UserContent, infer_model
from hatchway.agent.outfit import Outfit
from hatchway.agent.resuming import book_of
from hatchway.agent.subagents import Subagents
from hatchway.agent.turn_stream import TurnStream
from hatchway.agent.usage import Usage
from hatchway.core.errors import InvalidSetting
from hatchway.core.events import AgentEvent
from hatchway.core.sandbox import CodeSandbox
from hatchway.tools.functions import Tool

if TYPE_CHECKING:
    from hatchway.agent.config import SkillMetadata
    from hatchway.agent.conversations import Conversation
    from hatchway.agent.permissions import PermissionManager
    from hatchway.agent.sandbox_config import SandboxConfig
    from hatchway.sandboxes.packages import Packages


class Agent:
    """A model that acts by code. An async context manager, or `start` and `stop`.

    Args:
        model: A Pydantic AI model, or the name of one such as `"anthropic:claude-sonnet-4-5"`; None is the one that
            `hatchway` would take: by a vendor's key, or of a server of this machine.
        model_settings: Temperature and the like.
        system_prompt: What the agent is for and how it works.
        agent_id: Its name in events.
        mcp_servers: Servers whose tools the model calls itself; an entry may have `excluded_tools`.
        kernel_env: Environment variables of the code.
        sandbox: True is the strongest sealed one, False runs code unsealed and says so; or a name, or an instance.
        sandbox_config: What the code may read, write and reach; a path or the settings themselves.
        images_dir: Where pictures go that the code shows; default `images` in the working directory.
        execution_timeout: Seconds one action may run, waiting for approval not counted; None sets no limit.
        approval_timeout: Seconds somebody has to decide, before a call counts as denied; None waits.
        enable_subagents: Whether the model may give tasks away.
        max_subagents: How many work at one time.
        packages: What the code may import beside the standard library, such as `["pandas==2.*"]`.
        python: The interpreter of an environment whose packages the code may import, such as `.venv/bin/python`.
        tools: Functions and `Tool`s the code may call.
        working_dir: Where the agent works; default is the current directory.
        ptc_servers: MCP servers whose tools the code calls; None: those of a `Config` loaded for the working directory.
        tool_search: How the model finds tools of `ptc_servers` and `gentools/`.
        permissions: What need not be asked, and what is denied; without it everything is asked.
        conversation: Where it is stored what was said, so that a killed process loses nothing.
        journal: Where runs of code are stored; default is where the conversation is.
        skills: Skills the model is told of, beside those its system prompt names.
        max_subagent_turns: Tool rounds of one task.
        context_tokens: What the model takes at most; the history is summed up before.

    Raises:
        InvalidSetting, InvalidTool: An argument is not valid.
        MissingExtra: Pydantic AI is not installed.
    """

    def __init__(
        self,
        model: str | Model | None,
        model_settings: ModelSettings | None = None,
        system_prompt: str = "",
        agent_id: str = "main",
        mcp_servers: Mapping[str, Mapping[str, Any]] | None = None,
        kernel_env: Mapping[str, str] | None = None,
        sandbox: bool | str | CodeSandbox = True,
        sandbox_config: Path | SandboxConfig | None = None,
        images_dir: Path | None = None,
        execution_timeout: float | None = 300,
        approval_timeout: float | None = None,
        enable_subagents: bool = True,
        max_subagents: int = 5,
        *,
        packages: Packages | Sequence[str] = (),
        python: Path | None = None,
        tools: Sequence[Callable[..., Any] | Tool] = (),
        working_dir: Path | None = None,
        ptc_servers: Mapping[str, Mapping[str, Any]] | None = None,
        tool_search: Literal["basic", "hybrid"] = "basic",
        permissions: PermissionManager | None = None,
        conversation: Conversation | None = None,
        journal: str | Path | None = None,
        skills: Sequence[SkillMetadata] = (),
        max_subagent_turns: int = 100,
        context_tokens: int | None = None,
    ) -> None:
        self._started: Started | None = None
        self.agent_id = agent_id
        self._model: str | Model | None = model
        self.model_settings, self.conversation = model_settings, conversation
        self.usage = Usage()
        """Tokens and cost so far, subagents included."""
        home = Path(working_dir or ".").expanduser().resolve()
        self._system_prompt, self._permissions, self._approval_timeout = system_prompt, permissions, approval_timeout
        self._outfit = Outfit(
            working_dir=home,
            sandbox=sandbox,
            sandbox_config=sandbox_config,
            kernel_env=dict(kernel_env or {}),
            packages=packages,
            python=None if python is None else home / Path(python).expanduser(),
            images_dir=images_dir,
            execution_timeout=execution_timeout,
            tools=tuple(tools),
            mcp_servers=dict(mcp_servers or {}),
            ptc_servers=dict(loaded_ptc_servers(home) if ptc_servers is None else ptc_servers),
            tool_search=tool_search,
            journal=journal if journal is not None or conversation is None else conversation.journal.place,
            skills=tuple(skills),
        )
        self._enable_subagents, self._subagent_limits = enable_subagents, (max_subagents, max_subagent_turns)
        self._context_tokens = context_tokens
        self._history, self._stream, self._closing = History(conversation), TurnStream(agent_id), AsyncExitStack()

    @property
    def model(self) -> Model | str | None:
        """The model; another one takes over with the next turn. None until the start, where it is to be found."""
        return self._model

    @model.setter
    def model(self, model: str | Model) -> None:
        self._model = model
        if self._started is not None:
            self._started.replies.model = infer_model(model)

    @property
    def messages(self) -> list[ModelMessage]:
        """What was said so far."""
        return self._history.messages

    @property
    def offered(self) -> Mapping[str, str]:
        """What the code and the model can call, by name, with what each is for; empty before the start."""
        return {} if self._started is None else self._started.offered

    async def start(self) -> None:
        """Start the sandbox and connect to the servers; does nothing the second time.

        Raises:
            SandboxUnavailable, ServerUnavailable, InvalidSetting: Something cannot be had.
        """
        if self._started is not None:
            return
        try:
            if self.conversation is not None:
                self._closing.enter_context(self.conversation.spoken())
                await asyncio.to_thread(self._history.read)  # others may have spoken since this one was made
            self._model = await asyncio.to_thread(given_or_found, self._model, self._outfit.working_dir)
            self._started = await self._assembly().started(infer_model(self._model), self._closing)
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """End the running turn, the sandbox and all connections. Legal twice."""
        await self.cancel()
        self._started = None
        closing, self._closing = self._closing, AsyncExitStack()
        await closing.aclose()

    def stream(
        self, prompt: str | Sequence[UserContent], max_turns: int | None = None
    ) -> AsyncGenerator[AgentEvent, None]:
        """Answer a prompt, giving each event as it happens.

        Everything that must be approved comes as `ApprovalRequest` and waits for its answer. Leaving the loop early
        cancels the turn.

        Args:
            prompt: Text, or text and pictures.
            max_turns: Rounds of tool calls at most; the stream then ends with `Cancelled("max_turns")`.

        Raises:
            InvalidSetting: `max_turns` is no such number.
            RuntimeError: A turn is under way.
            ModelAPIError: The vendor failed, in Pydantic AI's words.
        """
        given: object = max_turns
        if given is not None and (not isinstance(given, int) or isinstance(given, bool) or given < 0):
            raise InvalidSetting(f"max_turns is a number of 0 or more, not {given!r:.80}", hint="None sets no limit")
        return self._stream.of(lambda: self._ready().turn.run(prompt, max_turns))

    def resume(self) -> AsyncGenerator[AgentEvent, None]:
        """Go on with what a killed process left open; gives nothing if nothing is.

        A pending approval is asked again. A call of which nobody knows whether it ran is asked about with `in_doubt`.
        """
        return self._stream.of(self._taken_up)

    async def cancel(self) -> None:
        """End the running turn; what it produced is kept, its code is dead, and its stream ends with `Cancelled`."""
        await self._stream.cancel()

    async def work(self, prompt: str, max_turns: int | None) -> None:
        """Do a task as a subagent: begin it, go on with it, or leave it when it was done before."""
        if self._history.open_state() is not None:
            await self._taken_up()
        elif not self._history.messages:
            await self._ready().turn.run(prompt, max_turns)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.stop()

    async def _taken_up(self) -> None:
        started, state = self._ready(), self._history.open_state()
        if state is not None:
            await started.turn.go_on(book_of(self._history, state), started.resuming)

    def _ready(self) -> Started:
        if self._started is None:
            raise RuntimeError("the agent is not started: use `async with Agent(...)`, or `await agent.start()`")
        return self._started

    def _assembly(self) -> Assembly:
        return Assembly(
            agent_id=self.agent_id,
            system_prompt=self._system_prompt,
            settings=self.model_settings,
            outfit=self._outfit,
            history=self._history,
            usage=self.usage,
            emit=self._stream.emit,
            permissions=self._permissions,
            approval_timeout=self._approval_timeout,
            context_tokens=self._context_tokens,
            subagents=Subagents(self._child, *self._subagent_limits) if self._enable_subagents else None,
        )

    def _child(self, agent_id: str) -> Agent:
        """A subagent: the same settings, and an interpreter, connections and a history of its own."""
        child = Agent(
            self._model,
            self.model_settings,
            self._system_prompt,
            agent_id,
            approval_timeout=self._approval_timeout,
            enable_subagents=False,
            permissions=self._permissions,
            conversation=None if self.conversation is None else self.conversation.of(agent_id),
            context_tokens=self._context_tokens,
        )
        child._outfit = replace(self._outfit, is_child=True)
        child._stream.listener = self._stream.emit
        child.usage = self.usage.for_child()
        return child
