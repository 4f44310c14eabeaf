"""LlmAgent: a model that programs. Its code is run and fed back until it answers without code."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable
from types import TracebackType
from typing import Self

from hatchway.core.errors import InvalidSetting
from hatchway.core.events import AgentEvent, Emit
from hatchway.core.results import ExecFile
from hatchway.executors.code_choice import chosen
from hatchway.executors.conversation import Conversation, Turn
from hatchway.executors.executor import CodeExecutor
from hatchway.executors.loop import CodeLoop
from hatchway.executors.vendor_loop import VendorLoop
from hatchway.mode.models import Model, ModelSettings
from hatchway.mode.vendor_code import VendorTurns
from hatchway.tools.functions import Tool


class LlmAgent:
    """A model that programs. An executor stays the caller's to close; what `code` opens is closed by `aclose`.

    Args:
        name: Of the agent; events carry it as `agent_id`.
        model: A Pydantic AI model, or the name of one such as `"anthropic:claude-sonnet-5"`.
        instruction: What the agent is for.
        code: Where its code runs, by a word (`"jail"`, `"monty"`, `"openai"`, …) or as `code_tool` gives it, with what
            the code may call. At a vendor the model must be that vendor's.
        code_executor: Runs its code, in place of `code`. With neither, code is part of the answer.
        max_rounds: How often code may be run before the model must answer.
        tool_name: The tool the model is offered for code; None leaves fenced blocks only. A reply without tool calls
            is searched for fenced blocks in any case.
        send_images: Show the model the pictures its code makes; it must be one that can see.
        model_settings: Passed on to the model.

    Raises:
        InvalidSetting: A setting that is not valid.
    """

    def __init__(
        self,
        name: str,
        *,
        model: Model | str,
        instruction: str = "",
        code: str | Tool | None = None,
        code_executor: CodeExecutor | None = None,
        max_rounds: int = 10,
        tool_name: str | None = "execute_code",
        send_images: bool = False,
        model_settings: ModelSettings | None = None,
    ) -> None:
        if max_rounds < 1:
            raise InvalidSetting(f"max_rounds is at least 1, not {max_rounds}")
        if code is not None and code_executor is not None:
            raise InvalidSetting("where code runs is said twice", hint="give code= or code_executor=")
        if code_executor is not None and (code_executor.error_retry_attempts < 1 or not code_executor.languages):
            raise InvalidSetting("an executor has at least one language, and error_retry_attempts of at least 1")
        self.name = name
        self.model = model
        self.instruction = instruction
        self.max_rounds = max_rounds
        self.tool_name = tool_name
        self.send_images = send_images
        self.model_settings = model_settings
        self._own = None if code is None else self._chosen(code)
        self.code_executor = self._own if isinstance(self._own, CodeExecutor) else code_executor

    async def run(
        self,
        prompt: str,
        *,
        conversation: Conversation | None = None,
        files: Iterable[ExecFile] = (),
        on_event: Callable[[AgentEvent], None] | None = None,
    ) -> Turn:
        """Answer the user; the model's replies are asked for whole.

        Args:
            prompt: The user's words.
            conversation: What was said before; this turn is added to it.
            files: What all code of this turn finds in its working directory.
            on_event: Sees each event as it happens.

        Raises:
            AnswerWithheld: The model still wrote code after `max_rounds`, and the last code was not run; or the vendor
                that runs its code gave no whole answer.
            InvalidSetting, SandboxUnavailable, TransportError: Where code runs at the vendor: it has no answer.
            Exception: Whatever the model's own library raises.
        """
        loop = self._loop(conversation or Conversation(), tuple(files), on_event or _nobody_listens)
        return await loop.run(prompt, streams=False)

    async def stream(
        self, prompt: str, *, conversation: Conversation | None = None, files: Iterable[ExecFile] = ()
    ) -> AsyncGenerator[AgentEvent, None]:
        """As `run`, giving each event as it happens; the last `Response` is the answer. Leaving it kills the code."""
        events: asyncio.Queue[AgentEvent | None] = asyncio.Queue()
        loop = self._loop(conversation or Conversation(), tuple(files), events.put_nowait)
        running = asyncio.create_task(loop.run(prompt, streams=True))
        running.add_done_callback(lambda _: events.put_nowait(None))
        try:
            while (event := await events.get()) is not None:
                yield event
            await running
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    async def aclose(self) -> None:
        """Close what `code` opened. Legal twice."""
        if self._own is not None:
            await self._own.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def _chosen(self, code: str | Tool) -> CodeExecutor | VendorTurns:
        return chosen(
            code,
            self.model,
            instruction=self.instruction,
            max_rounds=self.max_rounds,
            model_settings=self.model_settings,
        )

    def _loop(self, conversation: Conversation, files: tuple[ExecFile, ...], emit: Emit) -> CodeLoop | VendorLoop:
        if isinstance(self._own, VendorTurns):
            return VendorLoop(self.name, self._own, conversation, files, emit)
        return CodeLoop(self, conversation, files, emit)


def _nobody_listens(event: AgentEvent) -> None:
    return None
