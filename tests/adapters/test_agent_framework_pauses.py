"""Microsoft Agent Framework: paused actions whose session, token or approval is not what it was. Nothing runs twice."""

import json
import runpy
from pathlib import Path
from typing import Any

import pytest
from agent_framework import Agent, AgentSession, Content, FunctionTool, Message, WorkflowBuilder

from hatchway import Allow, Deny, Edit
from hatchway.adapters.agent_framework import MontyCodeActProvider, MontyExecuteCodeTool

pytestmark = pytest.mark.anyio
Scripted: Any = runpy.run_path(str(Path(__file__).parent / "frameworks" / "agent_framework_driver.py"))["Scripted"]
CODE = "first = look('x')\n[first, wipe('/p')]"
DONE = '["seen x","wiped /p"]'


@pytest.fixture(autouse=True)
def did(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the tools did, in order."""
    monkeypatch.setenv("HATCHWAY_KEY_FILE", str(tmp_path / "key"))
    return []


@pytest.fixture
def tools(did: list[str]) -> list[Any]:
    """One that may be called, and one that must be asked about."""

    def look(name: str) -> str:
        did.append(f"look {name}")
        return f"seen {name}"

    def wipe(path: str) -> str:
        did.append(f"wipe {path}")
        return f"wiped {path}"

    return [look, FunctionTool(name="wipe", description="", func=wipe, approval_mode="always_require")]


class Paused:
    """An action that waits, and what an application has of it."""

    def __init__(self, client: Any, agent: Any, session: AgentSession, provider: Any, request: Content) -> None:
        self.client, self.agent, self.session, self.provider, self.request = client, agent, session, provider, request

    async def answered(self, response: Content) -> tuple[str, list[Content]]:
        """What the model saw after the answer, and what is asked then."""
        said = await self.agent.run(Message(role="user", contents=[response]), session=self.session)
        return (self.client.saw[0].result if self.client.saw else ""), list(said.user_input_requests)


async def paused(tools: list[Any], code: str = CODE, **settings: Any) -> Paused:
    provider = MontyCodeActProvider(tools=tools, per_call_approval=True, **settings)
    client = Scripted(code)
    agent = Agent(client=client, context_providers=[provider])
    session = agent.create_session()
    [request] = (await agent.run("go", session=session)).user_input_requests
    return Paused(client, agent, session, provider, request)


def bare(request: Content) -> Content:
    """An approval as an application builds it that knows the request's id and call alone."""
    return Content.from_function_approval_response(
        approved=True, id=str(request.id), function_call=request.function_call
    )


@pytest.mark.parametrize("journal", [None, "journal.db"])
async def test_state_that_was_lost_is_in_the_approval(
    tools: list[Any], did: list[str], journal: Any, tmp_path: Path
) -> None:
    wait = await paused(tools, journal=journal and str(tmp_path / journal))
    del wait.session.state["monty_codeact"]
    saw, _ = await wait.answered(wait.request.to_function_approval_response(approved=True))
    assert saw == DONE
    assert did == ["look x", "wipe /p"]
    await wait.provider.aclose()


async def test_decision_about_state_that_was_lost(tools: list[Any], did: list[str]) -> None:
    wait = await paused(tools, "try:\n    wipe('/p')\nexcept RuntimeError as e:\n    told = str(e)\ntold")
    del wait.session.state["monty_codeact"]
    saw, _ = await wait.answered(wait.provider.decide(wait.request, Deny("not today")))
    assert saw == "ToolDenied: not today"
    assert did == []
    await wait.provider.aclose()


async def test_approval_an_application_built_finds_the_pause_in_the_state(tools: list[Any], did: list[str]) -> None:
    wait = await paused(tools)
    assert (await wait.answered(bare(wait.request)))[0] == DONE
    assert did == ["look x", "wipe /p"]
    assert wait.session.state["monty_codeact"] == {"paused": {}}
    await wait.provider.aclose()


@pytest.mark.parametrize("journal", [None, "journal.db"])
async def test_without_state_and_token_the_code_is_not_run_again(
    tools: list[Any], did: list[str], journal: Any, tmp_path: Path
) -> None:
    wait = await paused(tools, journal=journal and str(tmp_path / journal))
    del wait.session.state["monty_codeact"]
    saw, _ = await wait.answered(bare(wait.request))
    assert saw.startswith("sandbox failed: checkpoint refused: it is paused, and its approval came without the token")
    assert did == ["look x"]
    await wait.provider.aclose()


async def test_paused_run_is_found_however_many_ran_since(tools: list[Any], did: list[str], tmp_path: Path) -> None:
    journal = str(tmp_path / "journal.db")
    wait = await paused(tools, journal=journal)
    other = MontyCodeActProvider(journal=journal)
    agent = Agent(client=Scripted("1"), context_providers=[other])
    for _ in range(120):
        await agent.run("go", session=agent.create_session())
    del wait.session.state["monty_codeact"]
    assert "checkpoint refused" in (await wait.answered(bare(wait.request)))[0]
    assert did == ["look x"]
    await other.aclose()
    await wait.provider.aclose()


async def test_altered_token_runs_nothing(tools: list[Any], did: list[str]) -> None:
    wait = await paused(tools)
    response = wait.request.to_function_approval_response(approved=True)
    told = response.additional_properties["hatchway"]
    at = len(told["token"]) // 2
    turned = "A" if told["token"][at] != "A" else "B"
    response.additional_properties = {
        "hatchway": {**told, "token": told["token"][:at] + turned + told["token"][at + 1 :]}
    }
    assert (await wait.answered(response))[0].startswith("sandbox failed: checkpoint refused")
    assert did == ["look x"]
    await wait.provider.aclose()


async def test_token_of_another_call_settles_nothing(tools: list[Any], did: list[str]) -> None:
    one, other = await paused(tools), await paused(tools, "wipe('/q')")
    response = other.request.to_function_approval_response(approved=True)
    response.additional_properties = dict(one.request.additional_properties)
    assert (await other.answered(response))[0].startswith("sandbox failed: checkpoint refused")
    assert did == ["look x"]
    await one.provider.aclose()
    await other.provider.aclose()


async def test_token_used_twice_tells_the_end_again(tools: list[Any], did: list[str]) -> None:
    wait = await paused(tools)
    stored = json.loads(json.dumps(wait.session.to_dict()))
    for _ in range(2):
        wait.client.saw, wait.session = [], AgentSession.from_dict(stored)
        assert (await wait.answered(wait.request.to_function_approval_response(approved=True)))[0] == DONE
    assert did == ["look x", "wipe /p"]
    await wait.provider.aclose()


async def test_model_that_repeats_a_waiting_call_approves_nothing(tools: list[Any], did: list[str]) -> None:
    """The same id, the same code, and nobody said yes."""
    wait = await paused(tools)
    said = await wait.agent.run("go on", session=wait.session)
    assert [request.type for request in said.user_input_requests] == ["function_approval_request"]
    assert did == ["look x", "look x"]  # a call of its own, which waits by itself
    await wait.provider.aclose()


async def test_second_pause_of_an_action_needs_an_answer_of_its_own(tools: list[Any], did: list[str]) -> None:
    wait = await paused(tools, "[wipe('/a'), wipe('/b')]")
    first = wait.request.to_function_approval_response(approved=True)
    _, [second] = await wait.answered(first)
    assert did == ["wipe /a"]
    saw, _ = await wait.answered(wait.provider.decide(second, Allow(), session=wait.session))
    assert saw == '["wiped /a","wiped /b"]'
    assert did == ["wipe /a", "wipe /b"]
    await wait.provider.aclose()


async def test_token_of_an_earlier_pause_settles_nothing_of_a_later_one(tools: list[Any], did: list[str]) -> None:
    wait = await paused(tools, "[wipe('/a'), wipe('/b')]")
    first, stored = wait.request.to_function_approval_response(approved=True), wait.session.to_dict()
    await wait.answered(first)
    wait.session = AgentSession.from_dict(json.loads(json.dumps(stored)))
    _, [again] = await wait.answered(first)
    assert again.additional_properties["hatchway"]["calls"][0]["arguments"] == {"path": "/b"}
    assert did == ["wipe /a"]
    await wait.provider.aclose()


async def test_rejected_action_is_dropped_and_runs_nothing_more(tools: list[Any], did: list[str]) -> None:
    wait = await paused(tools)
    saw, _ = await wait.answered(wait.request.to_function_approval_response(approved=False))
    assert "rejected" in saw.lower()
    assert did == ["look x"]
    await wait.provider.aclose()


async def test_tool_that_stands_alone_needs_its_middleware_to_ask_per_call(tools: list[Any], did: list[str]) -> None:
    tool = MontyExecuteCodeTool(tools=tools, per_call_approval=True)
    client = Scripted(CODE)
    agent = Agent(client=client, tools=[tool])
    await agent.run("go", session=agent.create_session())
    assert "Agent(tools=[tool], middleware=[tool.middleware])" in client.saw[0].result
    assert did == []
    client = Scripted(CODE)
    agent = Agent(client=client, tools=[tool], middleware=[tool.middleware])
    session = agent.create_session()
    [request] = (await agent.run("go", session=session)).user_input_requests
    yes = Message(role="user", contents=[tool.decide(request, True, session=session)])
    await agent.run(yes, session=session)
    assert client.saw[0].result == DONE
    assert did == ["look x", "wipe /p"]
    await tool.aclose()


@pytest.mark.parametrize(
    ("rubbish", "ends"),
    [
        ({"calls": "rubbish"}, DONE),
        ({"decisions": [1]}, "the decision could not be read"),
        ({"decisions": {}}, "the decision could not be read"),
        ({"decisions": {"another": {"kind": "allow"}}}, "the decision could not be read"),
        ("no object", DONE),  # what is in the session's state counts
    ],
)
async def test_approval_that_was_mangled_allows_nothing(
    tools: list[Any], did: list[str], rubbish: Any, ends: str
) -> None:
    wait = await paused(tools)
    response = wait.request.to_function_approval_response(approved=True)
    told = {**wait.request.additional_properties["hatchway"], **rubbish} if isinstance(rubbish, dict) else rubbish
    response.additional_properties = {"hatchway": told}
    saw, _ = await wait.answered(response)
    assert ends in saw
    assert did == (["look x", "wipe /p"] if ends == DONE else ["look x"])
    await wait.provider.aclose()


async def test_streamed_run_pauses_and_goes_on(tools: list[Any], did: list[str]) -> None:
    provider = MontyCodeActProvider(tools=tools, per_call_approval=True)
    agent = Agent(client=Scripted("[look('x'), wipe('/p')]"), context_providers=[provider])
    session = agent.create_session()
    first = agent.run("go", session=session, stream=True)
    kinds = [content.type async for update in first for content in update.contents]
    assert kinds == ["function_call", "function_approval_request"]
    [request] = (await first.get_final_response()).user_input_requests
    second = agent.run(provider.decide(request, True, session=session), session=session, stream=True)
    assert [content.type async for update in second for content in update.contents] == ["function_result", "text"]
    assert did == ["look x", "wipe /p"]
    await provider.aclose()


async def test_workflow_asks_for_a_paused_action_and_goes_on(tools: list[Any], did: list[str]) -> None:
    provider = MontyCodeActProvider(tools=tools, per_call_approval=True)
    client = Scripted("try:\n    wipe('/p')\nexcept RuntimeError as e:\n    told = str(e)\ntold")
    workflow = WorkflowBuilder(start_executor=Agent(client=client, name="coder", context_providers=[provider])).build()
    [asked] = (await workflow.run("go")).get_request_info_events()
    await workflow.run(responses={asked.request_id: provider.decide(asked.data, Deny("not in a workflow"))})
    assert client.saw[0].result == "ToolDenied: not in a workflow"
    assert did == []
    await provider.aclose()


async def test_what_is_shown_of_a_call_by_name_is_what_runs() -> None:
    did: list[tuple[str, Any]] = []

    def wipe(path: str, arguments: dict[str, str] | None = None) -> str:
        did.append((path, arguments))
        return path

    asks = FunctionTool(name="wipe", description="", func=wipe, approval_mode="always_require")
    code = "call_tool('wipe', path='/etc', arguments={'path': '/tmp/harmless'})"
    wait = await paused([asks], code)
    [call] = wait.request.additional_properties["hatchway"]["calls"]
    assert (call["tool_name"], call["arguments"]) == (
        "wipe",
        {"path": "/etc", "arguments": {"path": "/tmp/harmless"}},
    )
    assert (await wait.answered(wait.provider.decide(wait.request, Edit({"path": "/tmp/other"}))))[0] == "/tmp/other"
    assert did == [("/tmp/other", None)]
    await wait.provider.aclose()
