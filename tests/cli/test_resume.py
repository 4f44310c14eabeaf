"""From a paused `exec` over `approve` and `deny` to `resume`: separate processes, every effect once."""

import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from hatchway.cli.journals import shown_place

TOOLS = '''
import os, time
from pathlib import Path
from hatchway import tool

def note(text: str) -> int:
    """An effect outside the sandbox."""
    with open("effects.txt", "a") as file:
        file.write(text + "\\n")
    return len(text)

@tool(approval="ask")
async def send(to: str, text: str) -> str:
    """Send a message."""
    note(f"{to}: {text}")
    return f"sent to {to}"

def crash(text: str) -> str:
    """Has its effect, then takes the whole process with it, once."""
    note(text)
    if not Path("crashed").exists():
        Path("crashed").touch()
        os.kill(os.getpid(), 9)
    return "came back"

def slow(text: str) -> int:
    """Waits to be killed, the first time."""
    note(text)
    if not Path("slow").exists():
        Path("slow").touch()
        time.sleep(60)
    return 1
'''
ONE = """
print("begin", note("first"))
try:
    answer = await send("ada", "hi")
except RuntimeError as refused:
    answer = f"refused: {refused}"
print("end")
[answer, note("last")]
"""
THREE = """
import asyncio
async def one(to):
    try:
        return await send(to, "hi")
    except RuntimeError as refused:
        return str(refused)
await asyncio.gather(one("ada"), one("bob"), one("cat"))
"""
SANDBOXES = ["monty", "process"]


class Shop:
    """The command with the tools beside it, and what they did."""

    def __init__(self, hatchway: Any) -> None:
        self._hatchway = hatchway
        self.tools = ["--tools", hatchway.file("shop.py", TOOLS)]

    def __call__(self, *args: str, **options: Any) -> Any:
        """Run the command."""
        return self._hatchway(*args, **options)

    def exec(self, code: str, *args: str) -> Any:
        """Run code that may pause."""
        return self("exec", self._hatchway.file("action.py", code), *self.tools, *args)

    def paused(self, code: str, sandbox: str) -> str:
        """The id of a run that stands now."""
        assert self.exec(code, "--sandbox", sandbox).returncode == 5
        return self.only["run_id"]

    @property
    def only(self) -> dict[str, Any]:
        """The one run there is."""
        (run,) = self._hatchway.json("runs", "--json")
        return run

    @property
    def effects(self) -> list[str]:
        """What the tools did, in order."""
        path: Path = self._hatchway.cwd / "effects.txt"
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


@pytest.fixture
def shop(hatchway: Any) -> Shop:
    """The command with its tools."""
    return Shop(hatchway)


@pytest.mark.parametrize("sandbox", SANDBOXES)
def test_a_run_goes_from_process_to_process_and_does_everything_once(shop: Shop, sandbox: str) -> None:
    ran = shop.exec(ONE, "--sandbox", sandbox)
    assert (ran.returncode, ran.stdout, shop.effects) == (5, "begin 5\n", ["first"])
    run_id = shop.only["run_id"]
    lines = ran.stderr.splitlines()
    assert lines[1:] == [
        "  ? send(to='ada', text='hi')  waits as call " + shop.only["calls"][0]["call_id"],
        f"run {run_id} waits for approval of 1 call(s): send",
        f"hatchway approve {run_id[:8]} --resume --tools shop.py",
        f"hatchway deny {run_id[:8]} --reason TEXT",
    ]
    assert shop.only["state"] == "paused"
    undecided = shop("resume", run_id, *shop.tools)
    assert (undecided.returncode, undecided.stdout, shop.effects) == (5, "", ["first"])
    assert shop("approve", run_id[:8]).returncode == 0
    went_on = shop("resume", run_id[:8], *shop.tools)
    assert (went_on.returncode, went_on.stdout) == (0, "end\n['sent to ada', 4]\n")
    assert shop.effects == ["first", "ada: hi", "last"]
    again = shop("resume", run_id)
    assert (again.returncode, again.stdout) == (0, "begin 5\nend\n['sent to ada', 4]\n")
    assert again.stderr == f"run {run_id} had ended already: nothing was run\n"
    assert shop.effects == ["first", "ada: hi", "last"]
    assert shop.only["state"] == "done"


def test_denied_in_another_process(shop: Shop) -> None:
    run_id = shop.paused(ONE, "monty")
    ran = shop("deny", run_id, "--reason", "not today", "--resume", *shop.tools)
    assert ran.returncode == 0
    assert ran.stdout.splitlines()[-1] == "['refused: ToolDenied: not today', 4]"
    assert shop.effects == ["first", "last"]


@pytest.mark.parametrize("sandbox", SANDBOXES)
def test_other_arguments_are_what_runs(shop: Shop, sandbox: str) -> None:
    run_id = shop.paused(ONE, sandbox)
    assert shop("approve", run_id, "--edit", "text=bye", "--resume", *shop.tools).returncode == 0
    assert shop.effects == ["first", "ada: bye", "last"]


def test_arguments_the_tool_does_not_take_reach_no_tool(shop: Shop) -> None:
    run_id = shop.paused(ONE, "monty")
    ran = shop("approve", run_id, "--edit", "text=5", "--resume", *shop.tools)
    assert "refused: " in ran.stdout
    assert shop.effects == ["first", "last"]


@pytest.mark.parametrize("sandbox", SANDBOXES)
def test_parallel_calls_are_decided_one_by_one(shop: Shop, sandbox: str) -> None:
    run_id = shop.paused(THREE, sandbox)
    ada, bob, cat = [call["call_id"] for call in shop.only["calls"]]
    assert shop("approve", run_id, bob).returncode == 0
    some = shop("resume", run_id, *shop.tools)
    assert (some.returncode, shop.effects) == (5, ["bob: hi"])
    assert [call["call_id"] for call in shop.only["calls"]] == [ada, cat]
    assert shop("deny", run_id, ada, "--reason", "no").returncode == 0
    rest = shop("approve", run_id, "--resume", *shop.tools)
    assert rest.returncode == 0
    assert "'sent to bob', 'sent to cat']" in rest.stdout
    assert shop.effects == ["bob: hi", "cat: hi"]


def test_allowed_for_the_whole_run(shop: Shop) -> None:
    run_id = shop.paused("[await send(to, 'hi') for to in ('ada', 'bob', 'cat')]", "process")
    assert shop("approve", run_id, "--for", "run", "--resume", *shop.tools).returncode == 0
    assert shop.effects == ["ada: hi", "bob: hi", "cat: hi"]


def test_json_tells_the_whole_run(shop: Shop, hatchway: Any) -> None:
    told = hatchway.json("exec", hatchway.file("a.py", ONE), "--json", *shop.tools, "--sandbox", "monty")
    assert (told["state"], told["error"]["type"]) == ("paused", "ApprovalRequired")
    assert [(call["tool"], call["state"]) for call in told["calls"]] == [("note", "done"), ("send", "pending")]
    shop("approve", told["run_id"])
    done = hatchway.json("resume", told["run_id"], "--json", *shop.tools)
    assert (done["state"], done["stdout"], done["output"]) == ("done", "begin 5\nend\n", ["sent to ada", 4])
    assert [call["state"] for call in done["calls"]] == ["done"] * 3


def test_the_tools_must_be_there_again(shop: Shop) -> None:
    run_id = shop.paused(ONE, "process")
    shop("approve", run_id)
    ran = shop("resume", run_id)
    assert ran.returncode == 7
    assert "Traceback" not in ran.stderr
    assert shop.effects == ["first"]
    assert shop("resume", run_id, *shop.tools).returncode == 0
    assert shop.effects == ["first", "ada: hi", "last"]


def killed(shop: Shop, hatchway: Any, code: str, until: str) -> None:
    """Run code and kill the whole process once the effect is there."""
    hatchway.file("action.py", code)
    command = [sys.executable, "-m", "hatchway", "exec", "action.py", *shop.tools, "--sandbox", "process"]
    process = subprocess.Popen(command, cwd=hatchway.cwd, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    end = time.monotonic() + 30
    while until not in shop.effects:
        assert time.monotonic() < end
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()


def test_killed_in_the_middle_of_a_call(shop: Shop, hatchway: Any) -> None:
    killed(shop, hatchway, "note('a')\nprint('so far')\nx = slow('b')\nnote('c')\nx", "b")
    assert shop.only["state"] == "interrupted"
    run_id = shop.only["run_id"]
    asked = shop("resume", run_id, *shop.tools)
    assert asked.returncode == 6
    (call,) = shop.only["calls"]
    assert asked.stderr.splitlines() == [
        f"run {run_id} has 1 call(s) in doubt: slow",
        "see whether the effect is there, then",
        f"hatchway resume {run_id[:8]} --tools shop.py --ran {call['call_id']}=JSON",
        f"hatchway resume {run_id[:8]} --tools shop.py --not-run {call['call_id']}",
    ]
    assert (shop.only["state"], call["state"], call["args"]) == ("in_doubt", "in_doubt", {"text": "b"})
    assert "nobody knows whether 1 call ran" in shop("show", run_id).stdout
    wrong = shop("resume", run_id, *shop.tools, "--ran", f"{call['call_id']}=nonsense")
    assert (wrong.returncode, shop.effects) == (2, ["a", "b"])
    assert shop("resume", run_id, *shop.tools, "--ran", "9.9=1").returncode == 2
    told = shop("resume", run_id, *shop.tools, "--ran", f"{call['call_id']}=7")
    assert (told.returncode, told.stdout, shop.effects) == (0, "7\n", ["a", "b", "c"])
    assert "✓ slow(text='b') → 7" in told.stderr


def test_a_call_that_did_not_run_runs(shop: Shop) -> None:
    crashed = shop.exec("note('a')\nprint(crash('b'))\nnote('c')", "--sandbox", "process")
    assert crashed.returncode == -9
    call_id = "1.2"
    ran = shop("resume", shop.only["run_id"], *shop.tools, "--not-run", call_id)
    assert (ran.returncode, ran.stdout) == (0, "came back\n1\n")
    assert shop.effects == ["a", "b", "b", "c"]


def test_a_person_settles_what_waits_and_what_is_in_doubt(shop: Shop, at_terminal: Any) -> None:
    code = "try:\n    crash('a')\nfinally:\n    pass\nx = await send('ada', 'hi')\n[crash('b'), x]"
    assert shop.exec(code, "--sandbox", "process").returncode == -9
    screen = at_terminal("resume", shop.only["run_id"], *shop.tools)
    screen.wait_for("did it run?")
    assert "crash may have run before the crash" in screen.text
    screen.type("\n")
    screen.wait_for("did it run?", times=2)
    screen.type('y "it did"\n')
    screen.wait_for("allow?")
    assert "send asks for approval" in screen.text
    screen.type("y\n")
    assert screen.end() == 0
    assert "['came back', 'sent to ada']" in screen.text
    assert shop.effects == ["a", "ada: hi", "b"]


def test_a_closed_terminal_settles_nothing(shop: Shop, at_terminal: Any) -> None:
    assert shop.exec("crash('a')", "--sandbox", "process").returncode == -9
    screen = at_terminal("resume", shop.only["run_id"], *shop.tools)
    screen.wait_for("did it run?")
    screen.type("\x04")
    assert screen.end() == 6
    assert f"hatchway resume {shop.only['run_id'][:8]} --tools shop.py --not-run 1.1" in screen.text
    assert shop.effects == ["a"]


def test_yes_allows_what_waits_but_does_not_guess(shop: Shop) -> None:
    run_id = shop.paused(ONE, "monty")
    assert shop("resume", run_id, "--yes", *shop.tools).returncode == 0
    assert shop.effects == ["first", "ada: hi", "last"]
    crashed = shop.exec("crash('x')", "--sandbox", "process")
    assert crashed.returncode == -9
    newest = shop._hatchway.json("runs", "--json")[0]["run_id"]
    assert shop("resume", newest, "--yes", *shop.tools).returncode == 6
    assert shop.effects[3:] == ["x"]


def test_a_run_that_another_process_drives_is_left_alone(shop: Shop, hatchway: Any) -> None:
    hatchway.file("action.py", "slow('a')")
    command = [sys.executable, "-m", "hatchway", "exec", "action.py", *shop.tools, "--sandbox", "monty"]
    process = subprocess.Popen(command, cwd=hatchway.cwd, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 30
        while "a" not in shop.effects:
            assert time.monotonic() < end
            time.sleep(0.02)
        assert shop.only["state"] == "running"
        ran = shop("resume", shop.only["run_id"], *shop.tools)
        assert ran.returncode == 8
        assert "is being driven by somebody else" in ran.stderr
        assert "hatchway show -f" in ran.stderr
    finally:
        process.kill()
        process.wait()


def test_nothing_is_recorded_when_it_is_not_wanted(shop: Shop, hatchway: Any) -> None:
    assert shop.exec("1", "--no-journal").returncode == 0
    assert not (hatchway.cwd / ".hatchway").exists()
    (hatchway.cwd / ".hatchway").write_text("a file is in the way", encoding="utf-8")
    ran = shop.exec("1")
    assert ran.returncode == 2
    assert ran.stderr.splitlines()[-1] == "name another place with --journal PATH, or record nothing with --no-journal"


def test_a_journal_that_machines_share(shop: Shop, place: str) -> None:
    ran = shop.exec(ONE, "--sandbox", "process", "--journal", place)
    assert (ran.returncode, shop.effects) == (5, ["first"])
    (run,) = shop._hatchway.json("runs", "--json", HATCHWAY_JOURNAL=place)
    assert run["state"] == "paused"
    assert f"--tools shop.py --journal {shlex.quote(shown_place(place))}" in ran.stderr
    assert shop("approve", run["run_id"], "--journal", place).returncode == 0
    assert shop("resume", run["run_id"], *shop.tools, "--journal", place).stdout == "end\n['sent to ada', 4]\n"
    assert shop("replay", run["run_id"], "--journal", place).returncode == 0
    assert "■ done" in shop("show", "-f", run["run_id"], "--journal", place).stdout
    assert shop("prune", "--keep", "0", "--journal", place).stdout.startswith("dropped 1 run,")
    assert shop.effects == ["first", "ada: hi", "last"]


def test_a_megabyte_of_rubbish_passes_through_every_command(shop: Shop, hatchway: Any) -> None:
    rubbish = "\\x1b[2J\\x07</script><b>\\u202e"
    code = f"# </script>\x1b[2J\ntext = '{rubbish}' * 50_000\nprint(text)\nnote(text)\nawait send('ada', text)"
    assert shop.exec(code, "--sandbox", "process").returncode == 5
    run_id = shop.only["run_id"]
    shown = [shop(*words) for words in (["runs"], ["show", run_id], ["show", run_id, "--full"], ["approve", run_id])]
    shown.append(shop("resume", run_id, *shop.tools))
    assert [ran.returncode for ran in shown] == [0] * 5
    assert not [ran.args for ran in shown if "\x1b" in ran.stdout + ran.stderr or "\u202e" in ran.stdout + ran.stderr]
    assert shop("show", run_id, "--html", "a.html", "--svg", "a.svg").returncode == 0
    page = (hatchway.cwd / "a.html").read_text(encoding="utf-8")
    assert not [bad for bad in ("<script", "</script>", "\x1b", "\u202e") if bad in page]
    assert hatchway.json("show", run_id, "--json")["state"] == "done"
    assert shop("replay", run_id).returncode == 0


def test_a_url_with_a_password_is_never_shown(hatchway: Any) -> None:
    url = "postgresql://ada:secret@127.0.0.1:9/x?password=secret"
    ran = hatchway("runs", "--journal", url, HATCHWAY_KEY_FILE=str(hatchway.cwd / "key"))
    assert ran.returncode == 2
    assert "Traceback" not in ran.stderr
    assert "secret" not in ran.stderr
    assert shown_place(url) == "postgresql://ada:…@127.0.0.1:9/x"
