"""`hatchway run TASK` as a user or a script runs it, with a scripted model and a real sandbox."""

import asyncio
import json
import shutil
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.messages import ModelRequest

from hatchway.agent.conversations import Conversations

SCRIPTED = Path(__file__).parent / "tui" / "scripted.py"
SHOP = Path(__file__).parent / "tui" / "shop.py"
ECHO = """
from pydantic_ai.models.function import FunctionModel

async def say(messages, info):
    yield messages[-1].instructions

model = FunctionModel(stream_function=say)
"""
MODEL = ["--model", "scripted.py:model", "--tools", "shop.py"]


@pytest.fixture
def workspace(hatchway: Any, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a model and a tool."""
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HATCHWAY_LOCAL_MODELS", "off")  # of the machine the tests run on
    for file in (SCRIPTED, SHOP):
        shutil.copy(file, hatchway.cwd)
    return hatchway.cwd


@pytest.mark.usefixtures("agent_jail")
def test_the_answer_is_on_stdout_and_all_else_on_stderr(hatchway: Any, workspace: Path) -> None:
    ran = hatchway("run", *MODEL, "--yes", "--record", "code: print(send('ada'))")
    assert (ran.returncode, ran.stdout) == (0, "It gave: `sent to ada: hi`\n")
    assert "print(send('ada'))" in ran.stderr
    assert "✓ send(to='ada') → 'sent to ada: hi'" in ran.stderr
    assert "recorded output/conversation.svg" in ran.stderr
    assert (workspace / "effects.txt").read_text(encoding="utf-8") == "ada "
    assert "sent to ada" in (workspace / "output" / "conversation.html").read_text(encoding="utf-8")

    other = hatchway("run", *MODEL, "--record", "hello")
    assert "recorded output/conversation-2.svg" in other.stderr
    assert "sent to ada" in (workspace / "output" / "conversation.html").read_text(encoding="utf-8")

    again = hatchway("run", *MODEL, "--session", "1", stdin="from a pipe")
    assert again.returncode == 0
    assert "> from a pipe" in again.stdout
    row = next(row for row in hatchway.json("conversations", "--json") if row["number"] == 1)
    assert (row["number"], row["state"], row["turns"]) == (1, "idle", 2)
    assert row["title"].startswith("code: print(send(")
    assert hatchway("conversations").stdout.split()[:2] == ["1", "idle"]


def test_the_model_is_told_of_each_skill_once_and_of_what_the_workspace_says(hatchway: Any, workspace: Path) -> None:
    (workspace / "AGENTS.md").write_text("Always say moin.\n", encoding="utf-8")
    (workspace / "echo.py").write_text(ECHO, encoding="utf-8")
    told = hatchway("run", "--model", "echo.py:model", "--sandbox", "monty", "hi").stdout
    assert told.count("Always say moin.") == 1
    for skill in ("output-parsers", "saving-codeacts", "task-planning"):
        assert told.count(f"skills/{skill}/SKILL.md") == 1


@pytest.mark.usefixtures("agent_jail")
def test_a_package_named_on_the_command_line_can_be_imported(hatchway: Any, workspace: Path) -> None:
    with zipfile.ZipFile(workspace / "small-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("small.py", "SIZE = 7\n")
        wheel.writestr("small-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: small\nVersion: 1.0\n")
        wheel.writestr("small-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr("small-1.0.dist-info/RECORD", "")
    here = str(workspace)
    uv = {"UV_FIND_LINKS": here, "UV_OFFLINE": "1", "UV_CACHE_DIR": f"{here}/uv", "HATCHWAY_CACHE": f"{here}/cache"}
    ran = hatchway("run", *MODEL, "--yes", "--packages", "small==1.*", "code: import small ;; small.SIZE", **uv)
    assert (ran.returncode, ran.stdout) == (0, "It gave: `7`\n")
    paused = hatchway("run", *MODEL, "--packages", "small==1.*", "code: import small", **uv)
    assert "hatchway run --yes --session 2 --model scripted.py:model --tools shop.py --packages 'small==1.*'" in (
        paused.stderr
    )


@pytest.mark.usefixtures("agent_jail")
def test_every_event_is_a_line_and_what_nobody_approves_waits(hatchway: Any, workspace: Path) -> None:
    ran = hatchway("run", *MODEL, "--json", "code: print(1) ;; send('ada') ;; send('bob')")
    events = [json.loads(line) for line in ran.stdout.splitlines()]
    assert ran.returncode == 5
    assert [event["event"] for event in events if not event["event"].endswith("Chunk")] == [
        "Response", "ApprovalRequest", "Ended",
    ]  # fmt: skip
    assert events[-2]["tool_args"] == {"code": "print(1)\nsend('ada')\nsend('bob')"}
    assert events[-1]["state"] == "paused"
    assert events[-1]["error"]["message"] == "paused: execute_code needs approval, and nobody is here to give it"
    assert [row["state"] for row in hatchway.json("conversations", "--json")] == ["open"]

    (workspace / ".hatchway" / "permissions.json").write_text('{"allowed_tools": ["execute_code", "send(to=ada)"]}')
    again = hatchway("run", *MODEL, "-c")
    assert (again.returncode, again.stdout) == (5, "")
    [run] = hatchway.json("runs", "--json")
    assert again.stderr.endswith(
        "paused: send needs approval, and nobody is here to give it\n"
        "at a terminal: hatchway --session 1 --model scripted.py:model --tools shop.py\n"
        "to allow everything: hatchway run --yes --session 1 --model scripted.py:model --tools shop.py\n"
        f"to decide first: hatchway approve {run['run_id'][:8]} (or deny), "
        "then hatchway run --session 1 --model scripted.py:model --tools shop.py\n"
    )
    assert again.stderr.count("send · asks for approval") == 1
    assert run["state"] == "paused"
    assert (workspace / "effects.txt").read_text(encoding="utf-8") == "ada "

    third = hatchway("run", *MODEL, "-c")
    assert third.returncode == 5
    assert third.stderr.count("send · asks for approval") == 1
    last = hatchway("run", *MODEL, "--yes", "--session", "1", "and then this")
    assert last.returncode == 0
    assert last.stdout.startswith("It gave: `1 'sent to bob: hi'")
    assert "> and then this" in last.stdout
    assert (workspace / "effects.txt").read_text(encoding="utf-8") == "ada bob "
    idle = hatchway("run", *MODEL, "-c")
    assert (idle.returncode, idle.stdout) == (0, "")
    assert idle.stderr == "nothing was left open in this conversation, and there is no task\n"


@pytest.mark.usefixtures("agent_jail")
def test_a_newer_conversation_that_another_terminal_has_is_named(hatchway: Any, workspace: Path) -> None:
    assert hatchway("run", *MODEL, "first").returncode == 0
    with Conversations.open(workspace / ".hatchway" / "journal.db") as elsewhere:
        newer = elsewhere.create(workspace)
        asyncio.run(newer.append([ModelRequest.user_text_prompt("second")]))
        ran = hatchway("run", *MODEL, "-c", "third")
        assert ran.returncode == 0
        assert "conversation 2 is newer and open in another terminal; this is number 1" in ran.stderr
        taken = hatchway("run", *MODEL, "--session", "2", "third")
        assert taken.returncode == 8
        assert taken.stderr.startswith("Error: conversation 2 is open in another terminal or program\n")
    empty = hatchway("run", *MODEL, "--session", "", "third")  # a variable of a script that was never set
    assert empty.returncode == 2
    assert "--session is empty: give the number or the id of a conversation" in empty.stderr
    with Conversations.open(workspace / ".hatchway" / "journal.db") as elsewhere:
        assert len(elsewhere.list(workspace)) == 2


@pytest.mark.usefixtures("agent_jail")
def test_a_call_that_waits_is_decided_from_another_terminal(hatchway: Any, workspace: Path, place: str) -> None:
    kept = ["--journal", place]
    (workspace / ".hatchway").mkdir()
    (workspace / ".hatchway" / "permissions.json").write_text('{"allowed_tools": ["execute_code"]}')
    assert hatchway("run", *MODEL, *kept, "code: send('ada')").returncode == 5
    [run] = hatchway.json("runs", *kept, "--json")
    approved = hatchway("approve", run["run_id"], *kept)
    assert approved.returncode == 0
    assert "every call is decided: hatchway run --session 1" in approved.stderr
    assert approved.stderr.endswith(", with the --model and --tools it had\n")
    assert not (workspace / "effects.txt").exists()
    ran = hatchway("run", *MODEL, *kept, "-c")
    assert ran.returncode == 0
    assert ran.stdout.startswith("It gave: `'sent to ada: hi'")
    assert (workspace / "effects.txt").read_text(encoding="utf-8") == "ada "
    [row] = hatchway.json("conversations", *kept, "--json")
    assert (row["number"], row["state"], row["turns"]) == (1, "idle", 1)


@pytest.mark.usefixtures("agent_jail")
def test_what_a_person_writes_gives_its_output_on_stdout(hatchway: Any, workspace: Path) -> None:
    ran = hatchway("run", "--model", "human", stdin="import sys\nprint('out')\nprint('err', file=sys.stderr)\n6 * 7")
    assert (ran.returncode, ran.stdout) == (0, "out\n42\n")
    assert "asks to run" not in ran.stderr
    assert "│ err" in ran.stderr
    failed = hatchway("run", "--model", "human", stdin="print('before')\n1 / 0")
    assert (failed.returncode, failed.stdout) == (1, "before\n")
    assert "ZeroDivisionError" in failed.stderr


@pytest.mark.usefixtures("agent_jail")
def test_a_person_at_a_terminal_is_asked(at_terminal: Any, workspace: Path) -> None:
    screen = at_terminal("run", *MODEL, "code: send('ada')")
    screen.wait_for("Run it? [Enter/y] yes [n] no")
    screen.type("n use bob\n")
    screen.wait_for("It gave: `The user rejected this code action: use bob")
    assert screen.end() == 0
    assert screen.text.count("send('ada')") == 1
    assert not (workspace / "effects.txt").exists()


@pytest.mark.usefixtures("agent_jail")
def test_a_terminal_that_knows_only_lines_is_talked_with_by_lines(at_terminal: Any, workspace: Path) -> None:
    screen = at_terminal(*MODEL)
    screen.wait_for("› ")
    screen.type("/tools\n")
    screen.wait_for("send  Send a message.")
    screen.wait_for("› ", 2)
    screen.type("/help\n")
    screen.wait_for("Ctrl+C     cancel the turn; what there is stays")
    screen.wait_for("› ", 3)
    screen.type("/nonsense\n")
    screen.wait_for("/nonsense: there is /help, /skill, /model, /tools")
    screen.wait_for("› ", 4)
    screen.type("code: print(send('ada'))\n")
    screen.wait_for("Run it? [Enter/y] yes")
    screen.type("e\n")
    screen.wait_for("a line with only . runs it so")
    screen.type("for to in ('bob', 'bill', 'carl'):\n    print(send(to))\n.\n")
    screen.wait_for("Allow send? [Enter/y] yes")
    screen.type("a send(to=b*)\n")
    screen.wait_for("send(to=b*) is allowed from now on")
    screen.wait_for("to='carl'")
    screen.wait_for("Allow send? [Enter/y] yes", 2)
    screen.type("y\n")
    screen.wait_for("It gave: `The user changed the code.")
    screen.wait_for("› ", 8)
    screen.type("q\n")
    assert screen.end() == 0
    assert "\x1b" not in screen.text
    assert (workspace / "effects.txt").read_text(encoding="utf-8") == "bob bill carl "


@pytest.mark.usefixtures("agent_jail")
def test_by_lines_the_first_screen_without_a_model_is_the_same(at_terminal: Any, workspace: Path) -> None:
    screen = at_terminal()
    screen.wait_for("[q] quit ›")
    screen.type("k\n")
    screen.wait_for("Then start again: hatchway")
    screen.wait_for("[q] quit ›", 2)
    screen.type("h\n")
    screen.wait_for("q leaves\n› ")
    screen.type("1 + 1\n")
    screen.wait_for("1 + 1\n2\n")
    screen.type("q\n")
    assert screen.end() == 0

    left = at_terminal()
    left.wait_for("[q] quit ›")
    left.type("\x04")
    assert left.end() == 0


@pytest.mark.usefixtures("agent_jail")
def test_by_lines_nothing_that_fails_and_no_ctrl_c_ends_the_conversation(at_terminal: Any, workspace: Path) -> None:
    screen = at_terminal(*MODEL)
    screen.wait_for("› ")
    screen.type("slow\n")
    screen.wait_for("word 3")
    screen.type("\x03")
    screen.wait_for("⊘ cancelled")
    screen.wait_for("› ", 2)
    (workspace / "a.bin").write_bytes(b"\0")
    screen.type("@a.bin\n")
    screen.wait_for("is neither text nor a picture")
    screen.wait_for("› ", 3)
    screen.type("\x04")
    assert screen.end() == 0

    screen = at_terminal(*MODEL, "-c")
    screen.wait_for("goes on after 1 turn")
    screen.wait_for("you slow")
    screen.wait_for("› ")
    other = at_terminal(*MODEL, "-c")
    other.wait_for("every conversation of this folder is open in another terminal")
    assert other.end() == 2


@pytest.mark.usefixtures("agent_jail")
def test_a_terminal_closed_at_a_question_leaves_it_open(at_terminal: Any, hatchway: Any, workspace: Path) -> None:
    screen = at_terminal("run", *MODEL, "code: send('ada')")
    screen.wait_for("Run it? [Enter/y] yes")
    screen.type("\x04")
    screen.wait_for("paused: execute_code needs approval")
    assert screen.end() == 5
    assert [row["state"] for row in hatchway.json("conversations", "--json")] == ["open"]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["run", "hi"], "Error: there is no model: no model is named"),
        (["run", "--model", "scripted.py:nothing", "hi"], "Error: scripted.py has no model named 'nothing'"),
        (
            ["run", *MODEL, "--session", "7", "hi"],
            "Error: '7': there is no such conversation\nhatchway conversations\n",
        ),
    ],
)
def test_what_cannot_be_had_is_said(hatchway: Any, workspace: Path, args: list[str], message: str) -> None:
    ran = hatchway(*args)
    assert ran.returncode == 2
    assert ran.stderr.startswith(message)
    assert "Traceback" not in ran.stderr


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["run", "--sandbox", "a task"], "--sandbox takes the word after it for a name: put TASK first"),
        (["run", "-c", "--session", "1", "hi"], "-c is the newest conversation, --session is a chosen one"),
        ([], "there is no terminal and no task: hatchway run TASK"),
        (["--yes", "runs"], "a command stands before its options, and a task is: hatchway run 'runs'"),
        (["run", "--execution-timeout", "0", "hi"], "'--execution-timeout': 0 is no time: give seconds, more than 0"),
        (["run", "--execution-timeout", "nan", "hi"], "nan is no time: give seconds, more than 0, such as 30 or 0.5."),
        (["run", "--approval-timeout", "-1", "hi"], "'--approval-timeout': -1 is no time: give seconds, more than 0"),
    ],
)
def test_wrong_words_are_usage_errors(hatchway: Any, args: list[str], message: str) -> None:
    ran = hatchway(*args)
    assert ran.returncode == 2
    assert message in ran.stderr


def test_init_makes_the_folder_once_and_no_conversation_is_none(hatchway: Any) -> None:
    first, second = hatchway("init"), hatchway("init")
    assert (first.returncode, second.returncode) == (0, 0)
    assert "made .hatchway/config.json\n" in first.stdout
    assert second.stdout == "Everything was there already.\n"
    assert hatchway.json("conversations", "--json") == []


@pytest.mark.parametrize("rest", [["hi"], ["--json", "hi"], ["--model", "human", "1"]])
def test_without_the_agents_packages_its_extra_is_named(hatchway: Any, workspace: Path, rest: list[str]) -> None:
    (workspace / "away").mkdir()
    gone = "raise ModuleNotFoundError('gone', name='prompt_toolkit')"
    (workspace / "away" / "prompt_toolkit.py").write_text(gone, encoding="utf-8")
    ran = hatchway("run", *rest, PYTHONPATH="away")
    told = "Error: prompt_toolkit, which the agent needs, is not installed\npip install 'hatchway[agent]'\n"
    assert (ran.returncode, ran.stdout, ran.stderr) == (3, "", told)


@pytest.mark.usefixtures("agent_jail")
def test_a_model_that_nobody_named_is_told(hatchway: Any) -> None:
    class Refusing(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.send_error(400)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Refusing) as vendor:
        threading.Thread(target=vendor.serve_forever, daemon=True).start()
        asked = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": f"http://127.0.0.1:{vendor.server_port}/v1"}
        found = hatchway("run", "hello", **asked)
        named = hatchway("run", "--model", "openai-chat:own", "hello", **asked)
        vendor.shutdown()
    assert found.stderr.startswith("model: openai:gpt-5, because OPENAI_API_KEY is set\nError: ")
    assert named.stderr.startswith("Error: ")


def test_a_recording_that_cannot_be_written_is_refused_before_the_model_is_asked(
    hatchway: Any, workspace: Path
) -> None:
    (workspace / "file").touch()
    ran = hatchway("run", *MODEL, "--record", "--record-dir", "file/x", "hello")
    told = "Error: the recording cannot be written to file/x: Not a directory\nname another with --record-dir\n"
    assert (ran.returncode, ran.stdout, ran.stderr) == (2, "", told)


@pytest.mark.usefixtures("agent_jail")
def test_a_long_title_is_no_long_name(hatchway: Any, workspace: Path) -> None:
    ran = hatchway("run", *MODEL, "--record", "--record-title", "\u4f60" * 300, "hello")
    name = "\u4f60" * 60
    assert ran.stderr == f"recorded output/{name}.svg\nrecorded output/{name}.html\n"
