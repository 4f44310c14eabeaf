"""`hatchway replay`: a run again from the journal, no tool called; the same, or the first difference."""

import sqlite3
from typing import Any

import pytest

TOOLS = '''
from hatchway import tool

def note(text: str) -> int:
    """An effect outside the sandbox."""
    with open("effects.txt", "a") as file:
        file.write(text)
    return len(text)

@tool(approval="ask")
def send(to: str) -> str:
    """Send."""
    return note(to)
'''
CODE = """
import asyncio, random
print("drawn", random.random())
try:
    note(5)
except Exception as e:
    print(type(e).__name__)
{"n": [note(str(i)) for i in range(5)]}
"""


@pytest.fixture
def tools(hatchway: Any) -> list[str]:
    """The options that offer the tools."""
    return ["--tools", hatchway.file("shop.py", TOOLS)]


def newest(hatchway: Any) -> str:
    """The id of the newest run."""
    return hatchway.json("runs", "--json", "--limit", "1")[0]["run_id"]


def tampered(hatchway: Any, sql: str, *values: Any) -> None:
    """Change the journal behind its back."""
    with sqlite3.connect(hatchway.cwd / ".hatchway" / "journal.db") as db:
        assert db.execute(sql, values).rowcount == 1
    db.close()


@pytest.mark.parametrize("sandbox", ["monty", "process"])
def test_a_run_that_is_repeated_is_the_same_and_does_nothing(hatchway: Any, tools: list[str], sandbox: str) -> None:
    assert hatchway("exec", hatchway.file("a.py", CODE), *tools, "--sandbox", sandbox).returncode == 0
    (hatchway.cwd / "effects.txt").unlink()
    (hatchway.cwd / "shop.py").unlink()
    ran = hatchway("replay", newest(hatchway))
    assert (ran.stdout, ran.stderr, ran.returncode) == (
        "✓ the same: 6 calls answered from the journal, no tool called, same end\n", "", 0,
    )  # fmt: skip
    assert not (hatchway.cwd / "effects.txt").exists()
    told = hatchway.json("replay", newest(hatchway), "--json")
    assert (told["same"], told["calls"], told["difference"]) == (True, 6, None)


@pytest.mark.parametrize("code", ["1 / 0", "print('x')\nraise ValueError(note('a'))"])
def test_a_failure_is_repeated_too(hatchway: Any, tools: list[str], code: str) -> None:
    assert hatchway("exec", hatchway.file("a.py", code), *tools, "--sandbox", "process").returncode == 1
    ran = hatchway("replay", newest(hatchway))
    assert (ran.returncode, ran.stdout.endswith("no tool called, same end\n")) == (0, True)


def test_a_run_that_stands_is_led_to_where_it_stands(hatchway: Any, tools: list[str]) -> None:
    code = "note('a')\nsend('b')"
    assert hatchway("exec", hatchway.file("a.py", code), *tools, "--sandbox", "process").returncode == 5
    ran = hatchway("replay", newest(hatchway))
    assert ran.returncode == 0
    assert ran.stdout == (
        "✓ the same: 1 call answered from the journal, no tool called; it stands at 1 call, as before\n"
    )
    assert hatchway.json("runs", "--json")[0]["state"] == "paused"


def test_another_call_is_the_first_difference(hatchway: Any, tools: list[str]) -> None:
    hatchway("exec", hatchway.file("a.py", "note('a')\nnote('b')\nnote('c')"), *tools, "--sandbox", "process")
    head = "REPLACE(head, 'note(''b'')', 'note(''z'')')"
    tampered(hatchway, f"UPDATE runs SET head = {head} WHERE head LIKE '%note%'")
    (hatchway.cwd / "effects.txt").unlink()
    ran = hatchway("replay", newest(hatchway))
    assert ran.returncode == 7
    assert ran.stdout.splitlines()[:2] == ["✗ it went another way", "first difference: call (line 2 of the code)"]
    assert "note(text='b')" in ran.stdout.splitlines()[2]
    assert "note('z')" in ran.stdout.splitlines()[3]
    assert not (hatchway.cwd / "effects.txt").exists()
    told = hatchway.json("replay", newest(hatchway), "--json")
    assert (told["same"], told["difference"]["what"], told["difference"]["line"]) == (False, "call", 2)


@pytest.mark.parametrize(
    ("change", "what"), [("REPLACE(ending, '42', '43')", "output"), ("REPLACE(ending, 'hello', 'hallo')", "stdout")]
)
def test_another_end_is_a_difference(hatchway: Any, change: str, what: str) -> None:
    hatchway("exec", hatchway.file("a.py", "print('hello')\n42"), "--sandbox", "monty")
    tampered(hatchway, f"UPDATE runs SET ending = {change} WHERE ending LIKE '%hello%'")
    ran = hatchway("replay", newest(hatchway))
    assert ran.returncode == 7
    assert ran.stdout.splitlines()[1] == f"first difference: {what}"


def test_a_run_of_another_key_is_refused(hatchway: Any) -> None:
    hatchway("exec", hatchway.file("a.py", "1"), "--sandbox", "monty")
    ran = hatchway("replay", newest(hatchway), HATCHWAY_KEY_FILE=str(hatchway.cwd / "key"))
    assert ran.returncode == 7
    assert ran.stderr.startswith("Error: checkpoint refused: the run was started with another key\n")


def test_an_unknown_run(hatchway: Any) -> None:
    assert hatchway("replay", "abcd").returncode == 2
