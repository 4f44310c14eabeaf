"""Google's ADK: a real agent and runner, with a model that says its lines, and its code in our sandboxes."""

import asyncio
import base64
import subprocess
import sys
import threading
from collections.abc import AsyncGenerator, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from google.adk.agents import BaseAgent, LlmAgent
from google.adk.agents.invocation_context import InvocationContext
from google.adk.apps import App
from google.adk.code_executors import UnsafeLocalCodeExecutor
from google.adk.code_executors.code_execution_utils import CodeExecutionInput, CodeExecutionResult, File
from google.adk.events.event import Event
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import InMemoryRunner
from google.genai import types
from pydantic import PrivateAttr, ValidationError

from hatchway import CodeMode, Limits, tool
from hatchway.adapters.google_adk import AllCodeBlocksPlugin, HatchwayCodeExecutor
from hatchway.sandboxes.registry import availability, sandbox_class

pytestmark = pytest.mark.anyio
PNG = b"\x89PNG\r\n\x1a\n"


@cache
def usable(name: str) -> str:
    found = availability(name)
    if found.state != "usable":
        pytest.skip(f"{name}: {found.reason}")
    return name


class Script(BaseLlm):
    """A model that says its lines and remembers what it was told."""

    model: str = "scripted"
    lines: list[Any]
    _seen: list[list[types.Content]] = PrivateAttr(default_factory=list)

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        self._seen.append([content.model_copy(deep=True) for content in llm_request.contents])
        line = self.lines[len(self._seen) - 1]
        parts = [types.Part(text=line)] if isinstance(line, str) else line
        if stream:
            yield LlmResponse(content=types.Content(role="model", parts=parts), partial=True)
        yield LlmResponse(content=types.Content(role="model", parts=parts))

    @property
    def requests(self) -> int:
        return len(self._seen)

    def told(self, request: int = -1) -> list[str]:
        """The text of everything said before a request."""
        return [part.text or "" for content in self._seen[request] for part in content.parts or []]


class InTurn(BaseAgent):
    """Lets its agents speak one after the other."""

    async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        for agent in self.sub_agents:
            async for event in agent.run_async(ctx):
                yield event


def block(code: str) -> str:
    return f"Let me see.\n```tool_code\n{code}\n```\n"


def native(code: str) -> types.Part:
    return types.Part.from_executable_code(code=code, language=types.Language.PYTHON)


async def turn(runner: InMemoryRunner, session: str, *parts: str | types.Part) -> list[Event]:
    """What the runner yields for one message of the user."""
    told = [types.Part(text=part) if isinstance(part, str) else part for part in parts]
    message = types.Content(role="user", parts=told)
    return [event async for event in runner.run_async(user_id="u", session_id=session, new_message=message)]


async def started(*lines: Any, executor: Any, plugins: bool = True) -> tuple[InMemoryRunner, str, Script]:
    model = Script(lines=list(lines))
    agent = LlmAgent(name="coder", model=model, instruction="Count by code.", code_executor=executor)
    runner = InMemoryRunner(app=App(name="app", root_agent=agent, plugins=[AllCodeBlocksPlugin()] if plugins else []))
    session = await runner.session_service.create_session(app_name="app", user_id="u")
    return runner, session.id, model


def results(events: list[Event]) -> list[tuple[str, str]]:
    """Outcome and output of each execution."""
    parts = [part for event in events if event.content for part in event.content.parts or []]
    found = [part.code_execution_result for part in parts if part.code_execution_result]
    return [(str(each.outcome and each.outcome.value), each.output or "") for each in found]


def answer(events: list[Event]) -> str:
    last = events[-1].content
    return (last.parts[0].text or "") if last and last.parts else ""


@pytest.fixture(params=["monty", "jail", "process"])
def executor(request: pytest.FixtureRequest) -> Iterator[HatchwayCodeExecutor]:
    with HatchwayCodeExecutor(sandbox=usable(request.param)) as executor:
        yield executor


@pytest.fixture
def jail() -> Iterator[HatchwayCodeExecutor]:
    with HatchwayCodeExecutor(sandbox=usable("jail")) as executor:
        yield executor


async def test_a_real_agent_runs_its_code_and_hears_what_came_of_it(executor: HatchwayCodeExecutor) -> None:
    runner, session, model = await started(block("print(6 * 7)"), "It is 42.", executor=executor)
    events = await turn(runner, session, "What is 6 * 7?")
    assert results(events) == [("OUTCOME_OK", "Code execution result:\n42\n\n")]
    assert answer(events) == "It is 42."
    assert model.requests == 2
    assert model.told()[-1] == "```tool_output\nCode execution result:\n42\n\n\n```"


async def test_code_that_fails_is_told_with_what_it_had_printed(executor: HatchwayCodeExecutor) -> None:
    runner, session, _ = await started(block("print('before')\n1 / 0"), block("print('ok')"), "done", executor=executor)
    events = await turn(runner, session, "go")
    (outcome, output), second = results(events)
    assert outcome == "OUTCOME_FAILED"
    assert output.startswith("before\n--- stderr ---\nTraceback")
    assert output.splitlines()[-1] == "ZeroDivisionError: division by zero"
    assert second == ("OUTCOME_OK", "Code execution result:\nok\n\n")
    assert answer(events) == "done"


async def test_all_blocks_of_a_reply_run_in_order_before_the_model_is_asked_again(
    executor: HatchwayCodeExecutor,
) -> None:
    reply = block("x = 1\nprint('a')") + block("x += 1\nprint('b')") + "```python\nprint('c', x)\n```\nthe end"
    runner, session, model = await started(reply, "done", executor=executor)
    events = await turn(runner, session, "go")
    assert [output for _, output in results(events)] == [
        f"Code execution result:\n{printed}\n\n" for printed in ("a", "b", "c 2")
    ]
    assert (model.requests, answer(events)) == (2, "done")
    codes = [
        part.executable_code.code for e in events if e.content for part in e.content.parts or [] if part.executable_code
    ]
    assert codes == ["x = 1\nprint('a')", "x += 1\nprint('b')", "print('c', x)"]


async def test_without_the_plugin_adk_drops_all_but_the_first(jail: HatchwayCodeExecutor) -> None:
    runner, session, _ = await started(block("print('a')") + block("print('b')"), "done", executor=jail, plugins=False)
    assert len(results(await turn(runner, session, "go"))) == 1


async def test_native_parts_run_in_order_too(jail: HatchwayCodeExecutor) -> None:
    thought = types.Part(text=block("print('a thought')"), thought=True)
    reply = [thought, types.Part(text="first"), native("print(1)"), types.Part(text="then"), native("print(2)")]
    runner, session, model = await started(reply, "done", executor=jail)
    events = await turn(runner, session, "go")
    assert [output for _, output in results(events)] == [f"Code execution result:\n{n}\n\n" for n in (1, 2)]
    assert model.requests == 2


async def test_the_plugin_serves_adks_own_executors_and_leaves_others_alone() -> None:
    runner, session, model = await started(
        block("print(1)") + block("print(2)"), "done", executor=UnsafeLocalCodeExecutor()
    )
    assert len(results(await turn(runner, session, "go"))) == 2
    plain, session, model = await started(block("print(1)") + block("print(2)"), executor=None)
    events = await turn(plain, session, "go")
    assert (answer(events), model.requests) == (block("print(1)") + block("print(2)"), 1)


async def test_streamed_replies_are_cut_once_they_are_whole(jail: HatchwayCodeExecutor) -> None:
    from google.adk.agents.run_config import RunConfig, StreamingMode

    runner, session, model = await started(block("print(1)") + block("print(2)"), "done", executor=jail)
    message = types.Content(role="user", parts=[types.Part(text="go")])
    config = RunConfig(streaming_mode=StreamingMode.SSE)
    stream = runner.run_async(user_id="u", session_id=session, new_message=message, run_config=config)
    events = [event async for event in stream]
    assert len(results(events)) == 2
    assert model.requests == 2


async def test_when_adk_gives_up_on_the_code_the_rest_of_the_reply_is_dropped(jail: HatchwayCodeExecutor) -> None:
    reply = "".join(block(f"raise ValueError({i})") for i in range(5))
    runner, session, model = await started(reply, "I give up", executor=jail)
    events = await turn(runner, session, "go")
    assert [outcome for outcome, _ in results(events)] == ["OUTCOME_FAILED"] * 2  # error_retry_attempts
    assert (answer(events), model.requests) == ("I give up", 2)


@pytest.mark.parametrize(
    ("state", "first", "second"),
    [
        ("none", "NameError: name 'x' is not defined", "NameError: name 'x' is not defined"),
        ("invocation", "1", "NameError: name 'x' is not defined"),
        ("session", "1", "1"),
    ],
)
async def test_names_persist_as_long_as_they_are_meant_to(state: Any, first: str, second: str) -> None:
    with HatchwayCodeExecutor(sandbox="monty", state=state) as executor:
        assert executor.stateful is (state == "session")
        lines = [block("x = 1"), block("print(x)"), "one", block("print(x)"), "two"]
        runner, session, _ = await started(*lines, executor=executor)
        within = results(await turn(runner, session, "go"))[1][1]
        after = results(await turn(runner, session, "again"))[0][1]
    assert within.strip().splitlines()[-1] == first
    assert after.strip().splitlines()[-1] == second


async def test_two_sessions_of_adks_do_not_see_each_other() -> None:
    with HatchwayCodeExecutor(sandbox="monty", state="session") as executor:
        runner, one, _ = await started(block("x = 'secret'"), "ok", block("print(x)"), "ok", executor=executor)
        other = (await runner.session_service.create_session(app_name="app", user_id="u")).id
        await turn(runner, one, "go")
        told = results(await turn(runner, other, "go"))
    assert told[0][0] == "OUTCOME_FAILED"
    assert "secret" not in told[0][1]


async def test_an_invocation_that_is_over_keeps_no_interpreter(jail: HatchwayCodeExecutor) -> None:
    runner, session, _ = await started(block("x = 1"), "ok", executor=jail)
    events = await turn(runner, session, "go")
    assert events
    sessions = next(iter(jail._workbench._open.values())).sessions  # type: ignore[attr-defined]
    assert len(sessions) == 0


async def test_files_become_artifacts_and_pictures_keep_their_kind(jail: HatchwayCodeExecutor) -> None:
    code = f"open('plot.png', 'wb').write({PNG!r})\nopen('n.txt', 'w').write('3')\nprint('made')"
    runner, session, _ = await started(block(code), "see the plot", executor=jail)
    events = await turn(runner, session, "plot it")
    told = "Code execution result:\nmade\n\n\n\nSaved artifacts:\n`n.txt`,`plot.png`"
    assert results(events) == [("OUTCOME_OK", told)]
    assert runner.artifact_service is not None
    where = {"app_name": "app", "user_id": "u", "session_id": session}
    plot = await runner.artifact_service.load_artifact(filename="plot.png", **where)
    assert plot is not None
    assert plot.inline_data is not None
    assert (plot.inline_data.data, plot.inline_data.mime_type) == (PNG, "image/png")


async def test_input_files_of_adk_are_there_and_stay_as_the_code_left_them(jail: HatchwayCodeExecutor) -> None:
    files = [
        File("data/a.csv", base64.b64encode(b"a,b\n1,2\n").decode(), "text/csv"),
        File("raw.bin", b"\x00\xff", "application/octet-stream"),
    ]
    context: Any = type("Invocation", (), {"invocation_id": "i1"})()

    async def run(code: str) -> CodeExecutionResult:
        return await asyncio.to_thread(jail.execute_code, context, CodeExecutionInput(code, files))

    read = await run(
        "print(open('data/a.csv').read(), open('raw.bin', 'rb').read())\nopen('raw.bin', 'w').write('new')"
    )
    again = await run("print(open('raw.bin').read())")
    assert read.stdout.startswith("a,b\n1,2\n b'\\x00\\xff'\n")
    assert [(file.name, file.content) for file in read.output_files] == [("raw.bin", b"new")]
    assert (again.stdout, again.stderr, again.exit_code) == ("new\n", "", 0)


async def test_a_warning_is_no_failure(jail: HatchwayCodeExecutor) -> None:
    runner, session, _ = await started(
        block("import sys\nprint('out')\nprint('careful', file=sys.stderr)"), "ok", executor=jail
    )
    told = results(await turn(runner, session, "go"))
    assert told == [("OUTCOME_OK", "Code execution result:\nout\n--- stderr ---\ncareful\n\n")]


async def test_code_past_its_time_is_told_and_the_agent_goes_on() -> None:
    with HatchwayCodeExecutor(sandbox="monty", timeout_seconds=1) as executor:
        runner, session, _ = await started(block("print('go')\nwhile True: pass"), "too slow", executor=executor)
        events = await turn(runner, session, "go")
    (told,) = results(events)
    assert told[0] == "OUTCOME_FAILED"
    assert told[1].startswith("go\n--- stderr ---\ntimed out: ")
    assert answer(events) == "too slow"


async def test_a_sandbox_that_fails_is_told_as_that_and_ends_nothing() -> None:
    with HatchwayCodeExecutor(sandbox="no-such-sandbox") as executor:
        runner, session, _ = await started(block("print(1)"), "sorry", executor=executor)
        events = await turn(runner, session, "go")
    (told,) = results(events)
    assert told[0] == "OUTCOME_FAILED"
    assert told[1].startswith("sandbox failed: there is no sandbox 'no-such-sandbox'")
    assert answer(events) == "sorry"


async def test_hostile_file_names_do_not_leave_their_place(jail: HatchwayCodeExecutor) -> None:
    context: Any = type("Invocation", (), {"invocation_id": "i1"})()
    given = CodeExecutionInput("print(1)", [File("../../etc/x", b"1")])
    told = await asyncio.to_thread(jail.execute_code, context, given)
    assert told.stderr == "sandbox failed: '../../etc/x' cannot be staged: a file name is relative, without '..'"


async def test_the_code_may_call_tools_through_the_gate() -> None:
    def double(n: int) -> int:
        """Twice as much."""
        return 2 * n

    @tool(approval="ask")
    def wipe() -> None:
        """Remove everything."""
        raise AssertionError("it ran")

    code = "print(double(n=21))\ntry:\n    wipe()\nexcept RuntimeError as e:\n    print(e)"
    with HatchwayCodeExecutor(sandbox="monty", tools=(double, wipe)) as executor:
        told = await asyncio.to_thread(executor.instruction)
        runner, session, _ = await started(block(code), "ok", executor=executor)
        events = await turn(runner, session, "go")
    assert "```tool_code\nprint(1 + 1)\n```" in told
    assert "def double(n: int) -> int" in told
    assert results(events)[0][1] == "Code execution result:\n42\nToolDenied: nobody is here to approve it\n\n"


async def test_agents_of_one_tree_each_have_their_own(jail: HatchwayCodeExecutor) -> None:
    with HatchwayCodeExecutor(sandbox="monty") as other:
        first = LlmAgent(
            name="first", model=Script(lines=[block("print(1)") + block("print(2)"), "a"]), code_executor=jail
        )
        second = LlmAgent(
            name="second", model=Script(lines=[block("print(3)") + block("print(4)"), "b"]), code_executor=other
        )
        tree = InTurn(name="both", sub_agents=[first, second])
        runner = InMemoryRunner(app=App(name="app", root_agent=tree, plugins=[AllCodeBlocksPlugin()]))
        session = await runner.session_service.create_session(app_name="app", user_id="u")
        told = results(await turn(runner, session.id, "go"))
    assert [output for _, output in told] == [f"Code execution result:\n{n}\n\n" for n in (1, 2, 3, 4)]


async def test_two_invocations_at_once_keep_their_blocks_apart() -> None:
    with HatchwayCodeExecutor(sandbox="monty") as executor:
        agents = [
            await started(block(f"print({i})") + block(f"print({i + 1})"), "ok", executor=executor) for i in (10, 20)
        ]
        both = await asyncio.gather(*(turn(runner, session, "go") for runner, session, _ in agents))
    assert [[output.split()[-1] for _, output in results(events)] for events in both] == [["10", "11"], ["20", "21"]]


@pytest.mark.parametrize("name", ["monty", "jail", "process"])
async def test_a_sandbox_of_the_caller_is_closed_after_the_executor(name: str, tmp_path: Path) -> None:
    """The executor used it on a loop of its own, which is gone by then, with whatever was under way there."""
    context: Any = type("Invocation", (), {"invocation_id": "i1"})()
    is_at_root = name == "monty" or availability(name).tier == "namespaces"
    place = "/output/a.txt" if is_at_root else "output/a.txt"
    code = CodeExecutionInput(f"from pathlib import Path\nPath({place!r}).write_text('hi')")
    async with sandbox_class(usable(name))(workspace_root=tmp_path) as sandbox:
        for _ in range(3):
            with HatchwayCodeExecutor(sandbox=sandbox) as executor:
                result = await asyncio.to_thread(executor.execute_code, context, code)
            assert [(file.name, file.content) for file in result.output_files] == [("a.txt", b"hi")]
        assert (await CodeMode(sandbox).run("1 + 1")).output == 2


def test_it_leaves_no_thread_behind() -> None:
    def ours() -> list[str]:
        return [thread.name for thread in threading.enumerate() if thread.name.startswith("hatchway-google-adk")]

    before = ours()
    context: Any = type("Invocation", (), {"invocation_id": "i1"})()
    executor = HatchwayCodeExecutor(sandbox="monty")
    assert ours() == before
    for _ in range(2):
        assert executor.execute_code(context, CodeExecutionInput("print(1)")).stdout == "1\n"
        executor.close()
        executor.close()
    assert ours() == before


def test_mistakes_are_told_when_it_is_made() -> None:
    with pytest.raises(ValidationError, match="a lambda or another callable without a name needs one"):
        HatchwayCodeExecutor(sandbox="monty", tools=(lambda x: x,))
    with pytest.raises(ValidationError):
        HatchwayCodeExecutor(sandbox="monty", state="for ever")  # type: ignore[arg-type]
    with pytest.raises(ValidationError):
        HatchwayCodeExecutor(sandbox="monty", timeout=5)  # type: ignore[call-arg]
    assert HatchwayCodeExecutor(limits=Limits(memory_bytes=1000), timeout_seconds=None).timeout_seconds is None


def test_without_the_extra_it_says_how_to_get_it(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['google.adk'] = None\nfrom hatchway import HatchwayError\n"
        "try: import hatchway.adapters.google_adk\nexcept HatchwayError as e: print(e)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, timeout=60)
    assert (ran.stderr, ran.stdout) == (
        "",
        "Google's Agent Development Kit is not installed\npip install 'hatchway[google-adk]'\n",
    )
