"""Conversations are kept by real databases, and survive what happens to processes."""

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from pydantic_ai.messages import (
    BinaryImage,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from hatchway.agent import Agent
from hatchway.agent.conversations import Conversations
from hatchway.core.errors import InvalidSetting, JournalError, RunTaken
from hatchway.journal.database import Database
from hatchway.testing import ScriptedAgentModel

PICTURE = BinaryImage(data=b"\x89PNG\0", media_type="image/png", identifier="p1")


def prompt(text: str) -> ModelMessage:
    return ModelRequest(parts=[UserPromptPart(content=text)])


def answer(text: str) -> ModelMessage:
    return ModelResponse(parts=[TextPart(content=text)])


def test_what_was_said_is_there_for_the_next_process(place: str, tmp_path: Path) -> None:
    said: list[ModelMessage] = [
        ModelRequest(parts=[UserPromptPart(content=["what is it?", PICTURE])]),
        ModelResponse(parts=[ToolCallPart(tool_name="execute_code", args={"code": "1\n+1"}, tool_call_id="c1")]),
        ModelRequest(parts=[ToolReturnPart(tool_name="execute_code", content={"a": [1, None]}, tool_call_id="c1")]),
        answer("a picture \0 of ü"),
    ]
    with Conversations.open(place) as conversations:
        conversation = conversations.create(tmp_path)
        asyncio.run(conversation.append(said[:2]))
        asyncio.run(conversation.append(said[2:]))
    with Conversations.open(place) as conversations:
        assert conversations.pick(1).messages() == said


def test_the_list_shows_number_title_turns_and_state(place: str, tmp_path: Path) -> None:
    with Conversations.open(place) as conversations:
        first, second = conversations.create(tmp_path), conversations.create(tmp_path / "other")
        asyncio.run(first.append([prompt("  count the\n rows "), answer("3")]))
        asyncio.run(first.append([prompt("and the columns?")], open_state={"run_id": "r1"}))
        asyncio.run(second.append([prompt("x" * 500)]))
        first.release()
        shown = [(row.number, row.title, row.turns, row.state) for row in conversations.list()]
        assert shown == [(2, "x" * 120, 1, "in use"), (1, "count the rows", 2, "open")]
        assert [row.number for row in conversations.list(tmp_path)] == [1]
        asyncio.run(first.set_open(None))
        assert conversations.list(tmp_path)[0].state == "idle"


def test_the_newest_of_a_directory_that_nobody_else_has(place: str, tmp_path: Path) -> None:
    with Conversations.open(place) as conversations, Conversations.open(place) as other_terminal:
        assert conversations.newest(tmp_path) is None
        old, new, elsewhere = (conversations.create(where) for where in (tmp_path, tmp_path, tmp_path / "x"))
        for each in (old, new, elsewhere):
            asyncio.run(each.append([prompt("hi")]))
        old.release()
        taken = other_terminal.newest(tmp_path)
        assert taken is not None
        assert taken.id == old.id
        assert other_terminal.newest(tmp_path) is None


def test_a_conversation_is_had_by_one_at_a_time(place: str, tmp_path: Path) -> None:
    with Conversations.open(place) as here, Conversations.open(place) as there:
        conversation = here.create(tmp_path)
        with pytest.raises(RunTaken, match=r"^conversation 1 is open in another terminal or program\n"):
            there.pick(conversation.id)
        with pytest.raises(RunTaken):
            there.remove(1)
        conversation.release()
        assert there.pick(conversation.id[:6]).id == conversation.id


def test_a_word_that_names_none_says_how_to_find_one(place: str, tmp_path: Path) -> None:
    with Conversations.open(place) as conversations:
        conversations.create(tmp_path)
        for word in ("7", "zzzz", "", "a' OR 1=1", "٣", "9" * 400):
            with pytest.raises(InvalidSetting, match="there is no such conversation") as caught:
                conversations.pick(word)
            assert caught.value.hint == "hatchway conversations"


def test_a_shorter_history_counts_and_the_long_one_is_kept(place: str, tmp_path: Path) -> None:
    with Conversations.open(place) as conversations:
        conversation = conversations.create(tmp_path)
        asyncio.run(conversation.append([prompt("one"), answer("1")]))
        asyncio.run(conversation.replace([prompt("in short: one")]))
        asyncio.run(conversation.append([answer("2")]))
        assert conversation.messages() == [*conversation.messages(every=True)[2:]]
        assert len(conversation.messages(every=True)) == 4
        assert conversations.list()[0].turns == 1


def test_subagents_keep_their_own_messages_with_the_conversation(place: str, tmp_path: Path) -> None:
    with Conversations.open(place) as conversations:
        conversation = conversations.create(tmp_path)
        part = conversation.of("sub-1a2b")
        asyncio.run(conversation.append([prompt("go")]))
        asyncio.run(part.append([prompt("a part of it")], open_state={"run_id": "r"}))
        assert part.open_state() == {"run_id": "r"}
        assert conversation.open_state() is None
        assert conversation.agents() == ["main", "sub-1a2b"]
        assert len(conversation.messages()) == len(part.messages()) == 1
        assert conversations.list()[0].turns == 1
        conversation.release()
        conversations.remove(1)
        assert conversations.list() == []
        assert part.messages() == []


def test_numbers_are_given_once_by_processes_at_the_same_time(place: str, tmp_path: Path) -> None:
    code = textwrap.dedent("""
        import sys
        from hatchway.agent.conversations import Conversations
        with Conversations.open(sys.argv[1]) as conversations:
            for _ in range(20):
                conversations.create(sys.argv[2])
    """)
    with Conversations.open(place):
        made = [subprocess.Popen([sys.executable, "-c", code, place, str(tmp_path)]) for _ in range(2)]
        assert [each.wait(60) for each in made] == [0, 0]
    with Conversations.open(place) as conversations:
        assert sorted(row.number for row in conversations.list()) == list(range(1, 41))


def test_a_killed_process_loses_nothing_it_has_told(place: str, tmp_path: Path) -> None:
    code = textwrap.dedent("""
        import asyncio, os, sys
        from pydantic_ai.messages import ModelRequest, UserPromptPart
        from hatchway.agent.conversations import Conversations
        async def main():
            conversation = Conversations.open(sys.argv[1]).create(sys.argv[2])
            for n in range(1000):
                await conversation.append([ModelRequest(parts=[UserPromptPart(content=str(n))])], open_state={"n": n})
                print(n, flush=True)
        asyncio.run(main())
    """)
    process = subprocess.Popen([sys.executable, "-c", code, place, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    told = [int(process.stdout.readline()) for _ in range(30)]
    process.send_signal(signal.SIGKILL)
    told += [int(line) for line in process.communicate()[0].split()]
    with Conversations.open(place) as conversations:
        conversation = conversations.newest(tmp_path)
        assert conversation is not None
        assert len(conversation.messages()) - len(told) in (0, 1)
        state = conversation.open_state()
        assert state is not None
        assert state["n"] == len(conversation.messages()) - 1


def damage(db: Database) -> None:
    db.execute("UPDATE messages SET body = '{}'")


def test_a_damaged_message_is_one_clear_error(tmp_path: Path) -> None:
    with Conversations.open(tmp_path / "j.db") as conversations:
        conversation = conversations.create(tmp_path)
        asyncio.run(conversation.append([prompt("hi")]))
        conversations.journal.write(damage)
        with pytest.raises(JournalError, match="a stored message cannot be read"):
            conversation.messages()


def test_half_a_character_is_stored_as_a_question_mark(place: str, tmp_path: Path) -> None:
    with Conversations.open(place) as conversations:
        conversation = conversations.create(tmp_path)
        asyncio.run(conversation.append([prompt("a\ud800b"), answer("\udc80 \U0001f600")]))
        first, second = conversation.messages()
        assert (first.parts[0].content, second.parts[0].content) == ("a?b", "? \U0001f600")  # type: ignore
        assert conversations.list()[0].title == "a b"


def test_what_a_list_shows_is_text_and_nothing_a_terminal_obeys(place: str, tmp_path: Path) -> None:
    odd = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff"))
    odd.mkdir()
    with Conversations.open(place) as conversations:
        conversation = conversations.create(odd)
        asyncio.run(conversation.append([prompt("\x1b[2Jclear\0 it\r\n \u202e" + "x" * 1_000_000)]))
        conversation.release()
        assert conversations.list(odd)[0].title.startswith("[2Jclear it xxx")
        assert len(conversations.list(odd)[0].title) == 120
        assert conversations.newest(odd) is not None


@pytest.mark.anyio
async def test_two_agents_do_not_speak_in_one_conversation_at_a_time(tmp_path: Path) -> None:
    with Conversations.open(tmp_path / "journal.db") as conversations:
        conversation = conversations.create(tmp_path)

        def agent(word: str) -> Agent:
            return Agent(ScriptedAgentModel([word]), conversation=conversation, working_dir=tmp_path, sandbox="monty")

        async with agent("one") as first:
            with pytest.raises(InvalidSetting, match=r"another agent of this program has the conversation 1"):
                await agent("two").start()
            assert [event async for event in first.stream("a")]
        async with agent("three") as second:
            assert [event async for event in second.stream("b")]
        said = [str(part.content) for message in conversation.messages() for part in message.parts]
    assert said == ["a", "one", "b", "three"]


@pytest.mark.anyio
async def test_an_agent_knows_what_was_said_between_its_making_and_its_start(tmp_path: Path) -> None:
    with Conversations.open(tmp_path / "journal.db") as conversations:
        conversation = conversations.create(tmp_path)
        models = [ScriptedAgentModel([word]) for word in ("one", "two")]
        first, second = (Agent(m, conversation=conversation, working_dir=tmp_path, sandbox="monty") for m in models)
        async with first:
            assert [event async for event in first.stream("a")]
        async with second:
            assert [event async for event in second.stream("b")]
        heard = [str(part.content) for message in models[1].seen[0] for part in message.parts]
    assert heard == ["a", "one", "b"]
