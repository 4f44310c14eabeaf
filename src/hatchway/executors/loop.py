"""The loop: ask the model, run the code of its reply, feed the results back, until it answers without code."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import TYPE_CHECKING

from hatchway.core.errors import AnswerWithheld
from hatchway.core.events import (
    AgentEvent,
    CodeExecutionOutput,
    CodeExecutionOutputChunk,
    Emit,
    RunFailed,
    RunStarted,
)
from hatchway.core.results import ExecFile
from hatchway.executors.attempts import Executed, execute_part
from hatchway.executors.conversation import Conversation, Part, Turn
from hatchway.executors.executor import CodeExecutor, InvocationContext
from hatchway.executors.feedback import IMAGES, Asked, UnknownCall, asked_for, told
from hatchway.executors.parts import ExecutableCodePart
from hatchway.mode.models import (
    ModelRequest,
    ModelRequestParameters,
    ModelResponse,
    RequestUsage,
    ToolDefinition,
    UserPromptPart,
    model_request,
    model_request_stream,
)
from hatchway.mode.replies import read_reply, reply_text, tell_reply

if TYPE_CHECKING:
    from hatchway.executors.llm_agent import LlmAgent

PROMPT = Path(__file__).parent / "prompts" / "code.md"


class CodeLoop:
    """One turn of an agent.

    Args:
        agent: Who answers.
        conversation: What was said before; this turn is added to it.
        files: What all code finds in its working directory.
        emit: Sees each event as it happens.
    """

    def __init__(
        self,
        agent: LlmAgent,
        conversation: Conversation,
        files: tuple[ExecFile, ...],
        emit: Emit,
    ) -> None:
        self._agent, self._conversation, self._files, self._emit = agent, conversation, files, emit
        self._invocation_id = uuid.uuid4().hex
        self._parts: list[Part] = []
        self._usage = RequestUsage()
        self._instructions = _instructions(agent)
        self._parameters = _parameters(agent)

    async def run(self, prompt: str, *, streams: bool) -> Turn:
        """The turn, from the user's words to the answer. One that fails leaves no reply without its results behind."""
        try:
            return await self._answered(prompt, streams=streams)
        except BaseException:
            if isinstance(self._conversation.messages[-1], ModelResponse):
                self._conversation.messages.pop()
            raise

    async def _answered(self, prompt: str, *, streams: bool) -> Turn:
        self._say(ModelRequest([UserPromptPart(prompt)]))
        for done in range(self._agent.max_rounds + 1):
            reply = await (self._streamed() if streams else self._whole())
            self._conversation.messages.append(reply)
            self._usage += reply.usage
            asked = self._asked(reply)
            if not asked:
                return Turn(text=reply_text(reply), parts=tuple(self._parts), rounds=done, usage=self._usage)
            if done < self._agent.max_rounds:
                await self._do(asked)
        raise AnswerWithheld.after(self._agent.name, self._agent.max_rounds)

    def _asked(self, reply: ModelResponse) -> list[Asked]:
        executor = self._agent.code_executor
        if executor is None:
            return []
        return asked_for(reply, languages=executor.languages, tool_name=self._agent.tool_name)

    async def _do(self, asked: list[Asked]) -> None:
        """Run everything in order; the results are the next thing the model hears."""
        done = [None if isinstance(each, UnknownCall) else await self._executed(each) for each in asked]
        tool_name, images = self._agent.tool_name or "", self._agent.send_images
        self._say(ModelRequest(told(asked, done, tool_name=tool_name, images=images)))

    async def _executed(self, part: ExecutableCodePart) -> Executed:
        executor = self._agent.code_executor
        assert executor is not None, "without one no code is asked for"
        run_id, agent_id = uuid.uuid4().hex, self._agent.name
        self._emit(RunStarted(part.code, type(executor).__name__, run_id=run_id, agent_id=agent_id))
        context = InvocationContext(
            invocation_id=self._invocation_id,
            agent_name=agent_id,
            on_output=lambda stream, text: self._emit(
                CodeExecutionOutputChunk(text, stream=stream, run_id=run_id, agent_id=agent_id)
            ),
        )
        execution_id = self._conversation.execution_id if executor.stateful else None
        executed = await execute_part(executor, context, part, files=self._files, execution_id=execution_id)
        self._parts += [part, executed.part]
        self._emit(_ended(executed, run_id, agent_id))
        return executed

    def _say(self, request: ModelRequest) -> None:
        request.instructions = self._instructions or None
        self._conversation.messages.append(request)

    async def _whole(self) -> ModelResponse:
        agent = self._agent
        reply = await model_request(
            agent.model,
            self._conversation.messages,
            model_settings=agent.model_settings,
            model_request_parameters=self._parameters,
        )
        tell_reply(reply, self._emit, agent_id=agent.name)
        return reply

    async def _streamed(self) -> ModelResponse:
        agent = self._agent
        async with model_request_stream(
            agent.model,
            self._conversation.messages,
            model_settings=agent.model_settings,
            model_request_parameters=self._parameters,
        ) as stream:
            reply = await read_reply(stream, self._emit, agent_id=agent.name)
        tell_reply(reply, self._emit, agent_id=agent.name)
        return reply


def _ended(executed: Executed, run_id: str, agent_id: str) -> AgentEvent:
    if executed.error is not None:
        return RunFailed(executed.error, run_id=run_id, agent_id=agent_id)
    pictures = tuple(file for file in executed.part.files if file.mime_type in IMAGES)
    return CodeExecutionOutput(executed.part.output or None, pictures, run_id=run_id, agent_id=agent_id)


def _instructions(agent: LlmAgent) -> str:
    executor = agent.code_executor
    if executor is None:
        return agent.instruction
    parts = (agent.instruction, _code_prompt(executor, agent.tool_name), executor.prompt())
    return "\n\n".join(text for text in parts if text)


def _code_prompt(executor: CodeExecutor, tool_name: str | None) -> str:
    language = executor.languages[0]
    fences = f"write it in a fenced block that names its language, such as ```{language}"
    return (
        PROMPT.read_text(encoding="utf-8")
        .format(
            how=f"Call the tool `{tool_name}`, or {fences}." if tool_name else f"To run code, {fences}.",
            languages=", ".join(executor.languages),
            state="where the last one left off: names persist" if executor.stateful else "on its own: nothing persists",
            seconds="any number of" if executor.timeout is None else f"{executor.timeout:g}",
        )
        .strip()
    )


def _parameters(agent: LlmAgent) -> ModelRequestParameters:
    executor = agent.code_executor
    if executor is None or agent.tool_name is None:
        return ModelRequestParameters()
    schema = {
        "type": "object",
        "properties": {
            "code": {"type": "string", "description": "The whole program."},
            "language": {"type": "string", "enum": list(executor.languages), "default": executor.languages[0]},
        },
        "required": ["code"],
        "additionalProperties": False,
    }
    description = "Run code and get back what it prints, its exit code and the names of the files it makes."
    return ModelRequestParameters(
        function_tools=[ToolDefinition(name=agent.tool_name, parameters_json_schema=schema, description=description)]
    )
