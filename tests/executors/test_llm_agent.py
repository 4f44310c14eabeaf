"""LlmAgent: the model's code is run, fed back, tried again and bounded; what happens is told as events."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, DeltaThinkingPart, DeltaToolCall, FunctionModel
from pydantic_ai.models.test import TestModel

from hatchway.core.errors import AnswerWithheld, CodeRuntimeError, CodeTimeoutError, InvalidSetting, SandboxCrashed
from hatchway.core.events import (
    AgentEvent,
    CodeExecutionOutput,
    CodeExecutionOutputChunk,
    Response,
    ResponseChunk,
    RunFailed,
    RunStarted,
    Thoughts,
    ThoughtsChunk,
)
from hatchway.executors import (
    CodeExecutionInput,
    CodeExecutionResult,
    CodeExecutionResultPart,
    CodeExecutor,
    Conversation,
    ExecFile,
    ExecutableCodePart,
    InvocationContext,
    LlmAgent,
    LocalCodeExecutor,
    Outcome,
    SandboxCodeExecutor,
)

pytestmark = pytest.mark.anyio
Line = str | list[Any]


class Script:
    """A model that says its lines, and remembers what it was told."""

    def __init__(self, *lines: Line | Callable[[list[ModelMessage]], Line]) -> None:
        self._lines = list(lines)
        self.seen: list[list[ModelMessage]] = []
        self.info: AgentInfo | None = None
        self.model = FunctionModel(self._reply)

    def _reply(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self.seen.append(list(messages))
        self.info = info
        line = self._lines[len(self.seen) - 1]
        said = line(messages) if callable(line) else line
        return ModelResponse([TextPart(said)] if isinstance(said, str) else said)

    def told(self, turn: int = -1) -> str:
        """The last thing it was told before a reply, as text."""
        request = self.seen[turn][-1]
        assert isinstance(request, ModelRequest)
        contents: list[Any] = []
        for part in request.parts:
            content = part.content if isinstance(part, UserPromptPart | ToolReturnPart) else part
            contents += content if isinstance(content, list) else [content]
        return "\n".join(map(str, contents))


class Flaky(CodeExecutor):
    """Fails so often before it works."""

    def __init__(self, failures: int, *, attempts: int = 2, error: Exception | None = None) -> None:
        self.error_retry_attempts = attempts
        self.calls = 0
        self._failures, self._error = failures, error or SandboxCrashed("the engine is gone", hint="start it")

    async def execute_code(self, ctx: InvocationContext, input: CodeExecutionInput) -> CodeExecutionResult:
        self.calls += 1
        if self.calls <= self._failures:
            raise self._error
        return CodeExecutionResult(stdout=f"ran {input.code.strip()}\n", exit_code=0)


def block(code: str, language: str = "python") -> str:
    return f"Let me see.\n```{language}\n{code}\n```\n"


def call(code: Any, language: str = "python", id: str = "call-1") -> ToolCallPart:
    return ToolCallPart("execute_code", {"code": code, "language": language}, id)


async def test_code_is_run_and_fed_back_until_there_is_none() -> None:
    script = Script(block("print(6 * 7)"), block("print(42 + 1)"), "It is 43.")
    agent = LlmAgent("coder", model=script.model, instruction="Be exact.", code_executor=LocalCodeExecutor())
    turn = await agent.run("What is 6 * 7 + 1?")
    assert (turn.text, turn.rounds) == ("It is 43.", 2)
    assert turn.parts == (
        ExecutableCodePart("print(6 * 7)\n"),
        CodeExecutionResultPart(Outcome.OutcomeOk, "42\n"),
        ExecutableCodePart("print(42 + 1)\n"),
        CodeExecutionResultPart(Outcome.OutcomeOk, "43\n"),
    )
    assert script.told(1) == "Result of code block 1:\nOUTCOME_OK: it went well\n```\n42\n```"
    assert turn.usage.output_tokens > 0


async def test_all_blocks_of_a_reply_run_in_order() -> None:
    reply = block("print('a')") + block("echo b", "bash") + "```json\n{}\n```\n" + block("1/0")
    script = Script(reply, "done")
    turn = await LlmAgent("coder", model=script.model, code_executor=LocalCodeExecutor()).run("go")
    results = [part for part in turn.parts if isinstance(part, CodeExecutionResultPart)]
    assert [part.outcome for part in results] == [Outcome.OutcomeOk, Outcome.OutcomeOk, Outcome.OutcomeFailed]
    assert [part.output for part in results[:2]] == ["a\n", "b\n"]
    assert "ZeroDivisionError" in results[2].output
    assert "Result of code block 3:\nOUTCOME_FAILED: it failed, exit code 1\n" in script.told()


async def test_native_parts_run_in_order_and_each_is_answered() -> None:
    text = TextPart("I will run:\n" + block("print('prose')"))
    script = Script([text, call("print(1)", id="a"), call("echo 2", "shell", id="b")], "done")
    turn = await LlmAgent("coder", model=script.model, code_executor=LocalCodeExecutor()).run("go")
    assert [part.id for part in turn.parts] == ["a", "a", "b", "b"]
    assert [part.output for part in turn.parts if isinstance(part, CodeExecutionResultPart)] == ["1\n", "2\n"]
    request = script.seen[1][-1]
    returns = [part for part in request.parts if isinstance(part, ToolReturnPart)]
    assert [(part.tool_call_id, part.tool_name, part.outcome) for part in returns] == [
        ("a", "execute_code", "success"),
        ("b", "execute_code", "success"),
    ]


async def test_calls_that_make_no_sense_are_answered_too() -> None:
    script = Script(
        [ToolCallPart("rm_rf", {}, "a"), ToolCallPart("execute_code", "{not json", "b"), call(5, id="c")], "sorry"
    )
    turn = await LlmAgent("coder", model=script.model, code_executor=LocalCodeExecutor()).run("go")
    assert (turn.parts, turn.rounds) == ((), 1)
    wrong = 'the arguments must be {"code": "...", "language": "..."}'
    assert script.told() == f"there is no tool 'rm_rf'\n{wrong}\n{wrong}"


async def test_what_the_model_is_offered() -> None:
    script = Script("hello")
    executor = LocalCodeExecutor().with_timeout(5)
    await LlmAgent("coder", model=script.model, instruction="Be exact.", code_executor=executor).run("hi")
    assert script.info is not None
    assert [tool.name for tool in script.info.function_tools] == ["execute_code"]
    assert script.info.function_tools[0].parameters_json_schema["properties"]["language"]["enum"] == [
        "python", "shell", "bash", "node",
    ]  # fmt: skip
    instructions = script.seen[0][-1].instructions
    assert instructions.startswith(
        "Be exact.\n\nYou can run code. Call the tool `execute_code`, or write it in a fenced"
    )
    assert "it may take 5 seconds" in instructions
    only_fences = Script("hello")
    await LlmAgent("coder", model=only_fences.model, code_executor=executor, tool_name=None).run("hi")
    assert only_fences.info is not None
    assert only_fences.info.function_tools == []


async def test_pydantic_ais_own_test_model_goes_through() -> None:
    model = TestModel(custom_output_text="finished")
    turn = await LlmAgent("coder", model=model, code_executor=LocalCodeExecutor()).run("go")
    assert turn.text == "finished"
    assert turn.parts[0] == ExecutableCodePart("a", "python", id=turn.parts[0].id)


async def test_without_an_executor_code_is_part_of_the_answer() -> None:
    script = Script(block("print(1)"))
    turn = await LlmAgent("writer", model=script.model).run("show me")
    assert (turn.text, turn.parts, turn.rounds) == (block("print(1)"), (), 0)


async def test_an_executor_error_is_tried_again() -> None:
    script, executor = Script(block("x"), "done"), Flaky(1)
    turn = await LlmAgent("coder", model=script.model, code_executor=executor).run("go")
    assert executor.calls == 2
    assert turn.parts[1] == CodeExecutionResultPart(Outcome.OutcomeOk, "ran x\n")


@pytest.mark.parametrize("attempts", [1, 2, 3])
async def test_after_the_last_attempt_a_failed_part_is_fed_back(attempts: int) -> None:
    script, executor = Script(block("x"), "I give up"), Flaky(9, attempts=attempts)
    turn = await LlmAgent("coder", model=script.model, code_executor=executor).run("go")
    assert executor.calls == attempts
    told = "sandbox failed: the engine is gone\nstart it"
    assert turn.parts[1] == CodeExecutionResultPart(Outcome.OutcomeFailed, told)
    assert turn.text == "I give up"
    with pytest.raises(SandboxCrashed):
        await Flaky(1).execute_code(InvocationContext(), CodeExecutionInput("x"))


async def test_a_failed_program_is_not_run_again(tmp_path: Path) -> None:
    code = f"open({str(tmp_path / 'runs')!r}, 'a').write('.')\nraise SystemExit(3)"
    turn = await LlmAgent("coder", model=Script(block(code), "ok").model, code_executor=LocalCodeExecutor()).run("go")
    assert (tmp_path / "runs").read_text() == "."
    assert turn.parts[1] == CodeExecutionResultPart(Outcome.OutcomeFailed, "")


async def test_any_error_of_an_executor_is_told_with_its_class() -> None:
    executor = Flaky(9, attempts=1, error=OSError(28, "No space left on device"))
    turn = await LlmAgent("coder", model=Script(block("x"), "ok").model, code_executor=executor).run("go")
    assert turn.parts[1].output == "sandbox failed: OSError: [Errno 28] No space left on device"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("part", "told"),
    [
        (call("DISPLAY 'HI'.", "cobol"), "there is no language 'cobol' here\nthere are: python, shell, bash, node"),
        (call("x = '\0'"), "line 1 of the code holds a NUL byte\nleave it out: no interpreter reads it"),
    ],
)
async def test_bad_input_is_told_to_the_model_at_once(part: ToolCallPart, told: str) -> None:
    turn = await LlmAgent("coder", model=Script([part], "ok").model, code_executor=LocalCodeExecutor()).run("go")
    assert turn.parts[1] == CodeExecutionResultPart(Outcome.OutcomeFailed, told, id="call-1")


async def test_running_out_of_time_has_its_own_outcome() -> None:
    script = Script(block("print('go', flush=True)\nwhile True: pass"), "too slow")
    executor = LocalCodeExecutor().with_timeout(0.5)
    turn = await LlmAgent("coder", model=script.model, code_executor=executor).run("go")
    part = turn.parts[1]
    assert isinstance(part, CodeExecutionResultPart)
    assert part.outcome is Outcome.OutcomeDeadlineExceeded
    assert part.output.startswith("go\n--- stderr ---\ntimed out after 0.5 s")
    assert "OUTCOME_DEADLINE_EXCEEDED: it ran out of time\n" in script.told()


async def test_a_model_that_never_stops_is_stopped() -> None:
    conversation = Conversation()
    script = Script(*[[call("print(1)")]] * 9)
    executor = Flaky(0)
    agent = LlmAgent("coder", model=script.model, code_executor=executor, max_rounds=3)
    with pytest.raises(AnswerWithheld, match="max_rounds") as stopped:
        await agent.run("go", conversation=conversation)
    told = "coder gave no whole answer: max_rounds: the model still writes code after 3 round(s)"
    assert str(stopped.value) == f"{told}\nraise max_rounds, or ask for less"
    assert executor.calls == 3
    assert isinstance(conversation.messages[-1], ModelRequest)  # no call without an answer: the next turn can go on


async def test_state_persists_over_the_turns_of_a_conversation_only() -> None:
    async with SandboxCodeExecutor("monty") as executor:
        conversation = Conversation()
        first = LlmAgent("coder", model=Script(block("x = 41"), "noted").model, code_executor=executor)
        await first.run("remember", conversation=conversation)
        script = Script(block("print(x + 1)"), "42")
        turn = await LlmAgent("coder", model=script.model, code_executor=executor).run(
            "and?", conversation=conversation
        )
        stranger = LlmAgent("coder", model=Script(block("print(x)"), "no").model, code_executor=executor)
        other = await stranger.run("and?")
    assert turn.parts[1] == CodeExecutionResultPart(Outcome.OutcomeOk, "42\n")
    assert "NameError" in other.parts[1].output  # type: ignore[union-attr]
    assert len(conversation.messages) == 8
    assert ModelMessagesTypeAdapter.validate_json(ModelMessagesTypeAdapter.dump_json(conversation.messages))


async def test_files_and_pictures() -> None:
    png = b"\x89PNG\r\n\x1a\n"
    code = f"open('plot.png', 'wb').write({png!r})\nopen('n.txt', 'w').write(open('in.csv').read())"
    files = [ExecFile(name="in.csv", content=b"a,b")]
    script = Script(block(code), "see the plot")
    agent = LlmAgent("coder", model=script.model, code_executor=LocalCodeExecutor(), send_images=True)
    turn = await agent.run("plot it", files=files)
    assert turn.files == (ExecFile(name="n.txt", content=b"a,b"), ExecFile(name="plot.png", content=png))
    assert "file: n.txt (text/plain, 3 bytes)\nfile: plot.png (image/png, 8 bytes)" in script.told()
    prompt = script.seen[1][-1].parts[0]
    assert isinstance(prompt, UserPromptPart)
    assert [part.data for part in prompt.content if isinstance(part, BinaryContent)] == [png]


def without_time(events: Sequence[AgentEvent]) -> list[tuple[type[AgentEvent], Any]]:
    fields = {RunStarted: "code", RunFailed: "error", CodeExecutionOutput: "text", CodeExecutionOutputChunk: "text"}
    return [(type(event), getattr(event, fields.get(type(event), "content"))) for event in events]


async def test_run_tells_events_too() -> None:
    events: list[AgentEvent] = []
    agent = LlmAgent("coder", model=Script(block("print(1)"), "one").model, code_executor=LocalCodeExecutor())
    await agent.run("go", on_event=events.append)
    assert without_time(events) == [
        (Response, block("print(1)")),
        (RunStarted, "print(1)\n"),
        (CodeExecutionOutputChunk, "1\n"),
        (CodeExecutionOutput, "1\n"),
        (Response, "one"),
    ]
    assert {event.agent_id for event in events} == {"coder"}
    assert len({event.run_id for event in events if event.run_id}) == 1


def streaming(*replies: list[Any]) -> FunctionModel:
    said = iter(replies)

    async def reply(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
        for piece in next(said):
            yield piece

    return FunctionModel(stream_function=reply)


async def test_a_stream_gives_every_piece_as_it_comes() -> None:
    model = streaming(
        [{0: DeltaThinkingPart(content="let me ")}, {0: DeltaThinkingPart(content="think")}],
        ["one", " moment\n```pyt", "hon\nprint(1)\n1/0\n```"],
        [
            {0: DeltaToolCall("execute_code", '{"code": "pri', tool_call_id="c")},
            {0: DeltaToolCall(json_args='nt(2)"}')},
        ],
        ["all ", "done"],
    )
    agent = LlmAgent("coder", model=model, code_executor=LocalCodeExecutor())
    thoughts = [event async for event in agent.stream("think")]
    assert without_time(thoughts) == [(ThoughtsChunk, "let me "), (ThoughtsChunk, "think"), (Thoughts, "let me think")]
    events = [event async for event in agent.stream("go")]
    kinds = [type(event) for event in events]
    assert kinds[:5] == [ResponseChunk, ResponseChunk, ResponseChunk, Response, RunStarted]
    last_run = [RunStarted, CodeExecutionOutputChunk, CodeExecutionOutput]
    assert kinds[-7:] == [RunFailed, *last_run, ResponseChunk, ResponseChunk, Response]
    failed = next(event for event in events if isinstance(event, RunFailed))
    assert isinstance(failed.error, CodeRuntimeError)
    assert failed.error.stdout == "1\n"
    assert events[-1] == Response("all done", agent_id="coder", at=events[-1].at)


async def test_leaving_a_stream_early_kills_the_code() -> None:
    model = streaming([block("import os, time\nprint(os.getpid(), flush=True)\ntime.sleep(60)")])
    agent = LlmAgent("coder", model=model, code_executor=LocalCodeExecutor())
    pid = 0
    stream = agent.stream("go")
    async for event in stream:
        if isinstance(event, CodeExecutionOutputChunk):
            pid = int(event.text)
            break
    await stream.aclose()
    assert pid
    assert not Path(f"/proc/{pid}").exists()


async def test_a_cancelled_turn_leaves_no_reply_without_its_results() -> None:
    conversation, events = Conversation(), list[AgentEvent]()
    script = Script([call("import time\nprint(1, flush=True)\ntime.sleep(60)")])
    agent = LlmAgent("coder", model=script.model, code_executor=LocalCodeExecutor())
    running = asyncio.ensure_future(agent.run("go", conversation=conversation, on_event=events.append))
    while not any(isinstance(event, CodeExecutionOutputChunk) for event in events):
        await asyncio.sleep(0.02)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert [message.kind for message in conversation.messages] == ["request"]


async def test_a_timeout_is_told_as_what_it_is() -> None:
    events: list[AgentEvent] = []
    executor = LocalCodeExecutor().with_timeout(0.3)
    agent = LlmAgent("coder", model=Script(block("while True: pass"), "ok").model, code_executor=executor)
    await agent.run("go", on_event=events.append)
    assert [type(e.error) for e in events if isinstance(e, RunFailed)] == [CodeTimeoutError]


async def test_the_models_own_errors_reach_the_caller() -> None:
    def broken(messages: list[ModelMessage]) -> Line:
        raise ConnectionError("no route to the model")

    with pytest.raises(ConnectionError, match="no route to the model"):
        await LlmAgent("coder", model=Script(broken).model, code_executor=LocalCodeExecutor()).run("go")


def test_settings_that_mean_nothing_are_refused() -> None:
    with pytest.raises(InvalidSetting, match=r"^max_rounds is at least 1, not 0$"):
        LlmAgent("coder", model=TestModel(), max_rounds=0)
    for bad in (Flaky(0, attempts=0), LocalCodeExecutor(interpreters={})):
        with pytest.raises(InvalidSetting):
            LlmAgent("coder", model=TestModel(), code_executor=bad)


def test_without_the_extra_it_says_how_to_get_it(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['pydantic_ai'] = None\nfrom hatchway.executors import LocalCodeExecutor\n"
        "from hatchway import HatchwayError\n"
        "try: from hatchway.executors import LlmAgent\nexcept HatchwayError as e: print(e)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, timeout=60)
    assert (ran.stderr, ran.stdout) == (
        "",
        "Pydantic AI, which speaks with models, is not installed\npip install 'hatchway[pydantic-ai]'\n",
    )


async def test_thoughts_are_not_code() -> None:
    script = Script([ThinkingPart(block("print(1)")), TextPart("no code")])
    turn = await LlmAgent("coder", model=script.model, code_executor=LocalCodeExecutor()).run("go")
    assert (turn.text, turn.parts) == ("no code", ())
