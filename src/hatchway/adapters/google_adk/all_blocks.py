"""AllCodeBlocksPlugin: every code block of a reply is run. ADK itself runs the first and drops the rest.

The reply is cut after its first block; ADK runs that, and each time it then turns to the model for more, it is handed
the next piece of the same reply instead. So each block has its own events and its own result, in order, and the model
is asked again when all of them have run.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from google.adk.code_executors.base_code_executor import BaseCodeExecutor
from google.adk.code_executors.built_in_code_executor import BuiltInCodeExecutor
from google.adk.code_executors.code_executor_context import CodeExecutorContext
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.genai import types

from hatchway.adapters.google_adk.executor import HatchwayCodeExecutor
from hatchway.adapters.google_adk.pieces import pieces_of

if TYPE_CHECKING:
    from google.adk.agents.base_agent import BaseAgent
    from google.adk.agents.callback_context import CallbackContext
    from google.adk.agents.invocation_context import InvocationContext
    from google.adk.models.llm_request import LlmRequest

Key = tuple[str, str]
"""An invocation and the agent in it."""
MOST = 1_000
"""Agents remembered: an invocation that fails is never said to be over."""


class AllCodeBlocksPlugin(BasePlugin):
    """For `App(..., plugins=[AllCodeBlocksPlugin()])`; works with any executor of ADK's kind but the built-in one.

    It also closes the interpreters that `HatchwayCodeExecutor` keeps for an invocation when that is over.
    """

    def __init__(self, name: str = "hatchway_all_code_blocks") -> None:
        super().__init__(name=name)
        self._executors: dict[Key, BaseCodeExecutor] = {}
        self._waiting: dict[Key, deque[types.Content]] = {}

    async def before_agent_callback(self, *, agent: BaseAgent, callback_context: CallbackContext) -> None:
        """Remember who runs the agent's code."""
        executor = getattr(agent, "code_executor", None)
        if isinstance(executor, BaseCodeExecutor) and not isinstance(executor, BuiltInCodeExecutor):
            self._executors[_key(callback_context)] = executor
            while len(self._executors) > MOST:
                oldest = next(iter(self._executors))
                del self._executors[oldest]
                self._waiting.pop(oldest, None)

    async def after_model_callback(
        self, *, callback_context: CallbackContext, llm_response: LlmResponse
    ) -> LlmResponse | None:
        """Cut a whole reply after its first block and keep the other pieces."""
        key = _key(callback_context)
        executor = self._executors.get(key)
        if executor is None or llm_response.partial or llm_response.content is None:
            return None
        pieces = pieces_of(llm_response.content, executor.code_block_delimiters)
        if len(pieces) < 2:
            return None
        self._waiting[key] = deque(pieces[1:])
        return llm_response.model_copy(update={"content": pieces[0]})

    async def before_model_callback(
        self, *, callback_context: CallbackContext, llm_request: LlmRequest
    ) -> LlmResponse | None:
        """The next piece, as if the model had said it now; none when ADK has given up on this invocation's code."""
        key = _key(callback_context)
        waiting, executor = self._waiting.get(key), self._executors.get(key)
        if not waiting or executor is None:
            return None
        context = CodeExecutorContext(dict(callback_context.session.state))
        if context.get_error_count(callback_context.invocation_id) >= executor.error_retry_attempts:
            waiting.clear()
            return None
        return LlmResponse(content=waiting.popleft())

    async def after_run_callback(self, *, invocation_context: InvocationContext) -> None:
        """Forget an invocation that is over."""
        done = invocation_context.invocation_id
        ended = [key for key in self._executors if key[0] == done]
        for key in ended:
            self._waiting.pop(key, None)
            executor = self._executors.pop(key)
            if isinstance(executor, HatchwayCodeExecutor):
                executor.end_invocation(done)


def _key(context: CallbackContext) -> Key:
    return context.invocation_id, context.agent_name
