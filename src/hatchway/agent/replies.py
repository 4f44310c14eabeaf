"""Replies: one answer of a model, streamed as events; asked for again when the vendor is limited or breaks off."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from hatchway.agent.human import HUMAN
from hatchway.agent.models import (
    Model,
    ModelAPIError,
    ModelConnectionError,
    ModelHTTPError,
    ModelMessage,
    ModelRateLimitError,
    ModelRequest,
    ModelRequestParameters,
    ModelRequestTimeout,
    ModelResponse,
    ModelServerError,
    ModelSettings,
    ModelTimeoutError,
    ModelUnavailableError,
    TextPart,
    ThinkingPart,
    ToolDefinition,
    model_request_stream,
)
from hatchway.core.events import Emit, Retrying
from hatchway.mode.replies import read_reply, tell_reply

MOST_ATTEMPTS = 6
"""How often a model is asked for one reply."""
MOST_EMPTY = 2
"""How often one that says and does nothing is asked again, before that is taken for the end."""
FIRST_WAIT, LONGEST_WAIT = 0.5, 60.0
"""Seconds between attempts, doubled each time; what the vendor says itself wins."""
_PASSING = (408, 409, 425, 429, 500, 502, 503, 504, 529)


@dataclass(slots=True, kw_only=True)
class Replies:
    """Asks a model.

    After a reply was cut off by a cancellation, `partial` has what there is of it.
    """

    model: Model | str
    settings: ModelSettings | None
    instructions: str
    tools: Sequence[ToolDefinition]
    emit: Emit
    agent_id: str
    partial: ModelResponse | None = None

    async def next(self, messages: Sequence[ModelMessage]) -> ModelResponse:
        """The model's reply to what was said so far.

        Raises:
            ModelAPIError: The vendor refused, or failed for longer than it is worth waiting.
        """
        asked = self._asked(messages)
        reply = await self._patiently(lambda: self._streamed(asked))
        tell_reply(reply, self.emit, agent_id=self.agent_id)
        return reply

    async def aside(self, messages: list[ModelMessage]) -> ModelResponse:
        """What the model says to these messages alone, without tools; nobody is told.

        Raises:
            ModelAPIError: As above.
        """
        return await self._patiently(lambda: self._unheard(messages))

    async def _patiently(self, ask: Callable[[], Awaitable[ModelResponse]]) -> ModelResponse:
        """Ask again while that may help."""
        for attempt in range(1, MOST_ATTEMPTS + 1):
            try:
                reply = await ask()
                if attempt > MOST_EMPTY or not _is_empty(reply):
                    return reply
                reason, seconds = "the model said nothing", _wait(None, attempt)
            except Exception as e:
                told = passing_failure(e)
                if told is None or attempt == MOST_ATTEMPTS:
                    raise
                reason, seconds = told, _wait(e, attempt)
            self.emit(Retrying(reason, seconds, agent_id=self.agent_id))
            await asyncio.sleep(seconds)
        raise AssertionError("the last attempt returns or raises")

    def _asked(self, messages: Sequence[ModelMessage]) -> list[ModelMessage]:
        """The messages with the instructions on the last one, where Pydantic AI looks for them."""
        *before, last = messages
        assert isinstance(last, ModelRequest), "a model is asked after somebody said something"
        return [*before, replace(last, instructions=self.instructions or None)]

    async def _streamed(self, messages: list[ModelMessage]) -> ModelResponse:
        self.partial = None
        parameters = ModelRequestParameters(function_tools=list(self.tools))
        async with model_request_stream(
            self.model, messages, model_settings=self.settings, model_request_parameters=parameters
        ) as stream:
            try:
                return await read_reply(stream, self.emit, agent_id=self.agent_id)
            except asyncio.CancelledError:
                self.partial = stream.get()
                raise

    async def _unheard(self, messages: list[ModelMessage]) -> ModelResponse:
        async with model_request_stream(self.model, messages, model_settings=self.settings) as stream:
            async for _ in stream:
                pass
            return stream.get()


def _is_empty(reply: ModelResponse) -> bool:
    """Whether it only thought, if that; a person who writes the actions has nothing to say about them."""
    return reply.model_name != HUMAN and all(
        isinstance(part, ThinkingPart) or (isinstance(part, TextPart) and not part.content.strip())
        for part in reply.parts
    )


def passing_failure(error: Exception) -> str | None:
    """Why a model gave no answer, where asking again may help; None where it will not."""
    match error:
        case ModelRateLimitError():
            return "the vendor limits the rate"
        case ModelHTTPError(status_code=status):
            return f"the vendor answered {status}" if status in _PASSING else None
        case ModelTimeoutError() | ModelRequestTimeout():
            return "the vendor did not answer in time"
        case ModelConnectionError():
            return "the connection to the vendor broke"
        case ModelUnavailableError() | ModelServerError():
            return "the vendor is not available"
        case _:
            return "the connection to the vendor broke" if _is_broken(error) else None


def _is_broken(error: BaseException) -> bool:
    """Whether a connection broke under the SDK, which tells it in its own HTTP library's words."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, ConnectionError | TimeoutError):
            return True
        if {each.__name__ for each in type(seen).__mro__} & {"TransportError", "APIConnectionError"}:
            return True
        seen = seen.__cause__ or seen.__context__
    return False


def _wait(error: Exception | None, attempt: int) -> float:
    told = error.retry_after if isinstance(error, ModelAPIError) else None
    if told is not None:
        return min(max(told, 0.0), LONGEST_WAIT)
    return min(FIRST_WAIT * 2 ** (attempt - 1), LONGEST_WAIT) * random.uniform(0.75, 1.25)
