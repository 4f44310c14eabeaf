"""`hatchway exec`: what it prints, how it asks, how it ends."""

import os
from typing import Any

import pytest

TOOLS = '''
from hatchway import tool

def price(item: str) -> float:
    """The price of an item."""
    return {"tea": 3.5, "cake": 4.0}[item]

@tool(approval="ask")
def send(to: str, text: str) -> str:
    """Send a message."""
    return f"sent to {to}"

def _private() -> None:
    """Not a tool."""
'''


def test_output_goes_to_stdout_and_calls_to_stderr(hatchway: Any) -> None:
    code = hatchway.file("a.py", "print('two')\nprice('tea') + price(item='cake')")
    ran = hatchway("exec", code, "--tools", hatchway.file("shop.py", TOOLS))
    assert (ran.stdout, ran.returncode) == ("two\n7.5\n", 0)
    assert "✓ price(item='tea') → 3.5" in ran.stderr
    assert "✓ price(item='cake') → 4.0" in ran.stderr


def test_code_from_stdin_and_tools_from_a_module(hatchway: Any) -> None:
    hatchway.file("shop.py", TOOLS)
    assert hatchway("exec", "-", "--tools", "shop", stdin="price('tea')").stdout == "3.5\n"


def test_the_json_object_holds_everything(hatchway: Any) -> None:
    code = "print('hi')\nb = price('tea')\ntry:\n    price('gold')\nexcept Exception:\n    pass\n[b, b'\\x00', {1, 2}]"
    ran = hatchway("exec", "-", "--json", "--tools", hatchway.file("shop.py", TOOLS), stdin=code)
    assert (ran.returncode, ran.stderr) == (0, "")
    told = hatchway.json("exec", "-", "--json", "--tools", "shop.py", stdin=code)
    assert (told["state"], told["output"], told["stdout"], told["error"]) == (
        "done",
        [3.5, "AA==", [1, 2]],
        "hi\n",
        None,
    )
    first, second = told["calls"]
    assert {k: first[k] for k in ("tool", "args", "state", "value")} == {
        "tool": "price", "args": {"item": "tea"}, "state": "done", "value": 3.5,
    }  # fmt: skip
    assert (second["state"], second["error"]) == ("failed", "KeyError: 'gold'")
    assert told["sandbox"] != "process"
    assert told["run_id"]


@pytest.mark.parametrize(
    ("code", "args", "state", "error", "exit_code"),
    [
        ("1 / 0", [], "failed", "CodeRuntimeError", 1),
        ("x = = 1", [], "failed", "CodeSyntaxError", 1),
        ("while True:\n    pass", ["--timeout", "0.3"], "timeout", "CodeTimeoutError", 124),
        ("1", ["--sandbox", "montey"], "usage", "InvalidSetting", 2),
        ("1", ["--tools", "no_such_module_x"], "usage", "InvalidSetting", 2),
        ("send('ada', 'hi')", ["--tools", "shop.py"], "not_approved", "NotApproved", 4),
    ],
)
def test_each_end_has_its_state_and_exit_code(
    hatchway: Any, code: str, args: list[str], state: str, error: str, exit_code: int
) -> None:
    hatchway.file("shop.py", TOOLS)
    plain = hatchway("exec", hatchway.file("a.py", "print('so far')\n" + code), *args)
    told = hatchway.json("exec", "a.py", "--json", *args)
    assert (plain.returncode, told["state"], told["error"]["type"]) == (exit_code, state, error)
    assert 'Traceback (most recent call last):\n  File "<frozen' not in plain.stderr


def test_an_empty_file_is_fine(hatchway: Any) -> None:
    ran = hatchway("exec", "-")
    assert (ran.stdout, ran.stderr, ran.returncode) == ("", "", 0)


def test_what_is_not_utf8_is_refused(hatchway: Any) -> None:
    ran = hatchway("exec", "-", stdin=b"x = '\xff'")
    assert ran.returncode == 2
    assert "<stdin> is not UTF-8: byte 0xff at 5" in ran.stderr


def test_a_missing_file_is_a_usage_error(hatchway: Any) -> None:
    assert hatchway("exec", "nothing.py").returncode == 2


def test_what_code_and_tools_say_cannot_drive_the_terminal(hatchway: Any) -> None:
    evil = "def evil() -> str:\n    'Evil.'\n    raise ValueError('\\x1b[2J\\u202e')\n"
    code = "print('\\x1b]0;owned\\x07')\ntry:\n    evil()\nexcept Exception:\n    pass\n'\\x1b[31m[bold]'"
    ran = hatchway("exec", "-", "--tools", hatchway.file("t.py", evil), stdin=code)
    assert ran.stdout == "\\x1b]0;owned\\x07\n'\\x1b[31m[bold]'\n"
    assert "ValueError: \\x1b[2J\\u202e" in ran.stderr


def test_yes_allows_what_asks(hatchway: Any) -> None:
    ran = hatchway("exec", "-", "--yes", "--tools", hatchway.file("shop.py", TOOLS), stdin="send('ada', 'hi')")
    assert (ran.stdout, ran.returncode) == ("'sent to ada'\n", 0)


def test_nobody_to_ask_says_how_to_go_on(hatchway: Any) -> None:
    ran = hatchway("exec", "-", "--tools", hatchway.file("shop.py", TOOLS), stdin="send('ada', 'hi')")
    assert ran.returncode == 4
    assert ran.stderr.splitlines()[-1] == (
        "Error: the call of send needs approval: run it in a terminal to be asked, or with --yes to allow every call"
    )


def test_a_person_allows_one_call_and_denies_another(hatchway: Any, at_terminal: Any) -> None:
    code = "print(send('ada', 'hi'))\ntry:\n    send('bob', 'hi')\nexcept RuntimeError as e:\n    print('no:', e)"
    screen = at_terminal("exec", hatchway.file("a.py", code), "--tools", hatchway.file("shop.py", TOOLS))
    screen.wait_for("›")
    screen.type("y\n")
    screen.wait_for("›", times=2)
    screen.type("n not today\n")
    assert screen.end() == 0
    assert "send asks for approval" in screen.text
    assert "sent to ada\n" in screen.text
    assert "no: not today" in screen.text.replace("ToolDenied: ", "")


def test_code_from_stdin_still_asks_at_the_terminal(hatchway: Any, at_terminal: Any) -> None:
    hatchway.file("shop.py", TOOLS)
    theirs, ours = os.pipe()
    os.write(ours, b"send('ada', 'hi')")
    os.close(ours)
    screen = at_terminal("exec", "-", "--tools", "shop.py", stdin=theirs)
    os.close(theirs)
    screen.wait_for("›")
    screen.type("y\n")
    assert screen.end() == 0
    assert "'sent to ada'" in screen.text


def test_ctrl_c_ends_a_run_and_a_question(hatchway: Any, at_terminal: Any) -> None:
    spinning = at_terminal("exec", hatchway.file("a.py", "print('spinning')\nwhile True:\n    pass"))
    spinning.wait_for("spinning")
    spinning.type("\x03")
    asking = at_terminal("exec", hatchway.file("b.py", "send('a', 'b')"), "--tools", hatchway.file("shop.py", TOOLS))
    asking.wait_for("›")
    asking.type("\x03")
    assert (spinning.end(), asking.end()) == (130, 130)
    assert "Interrupted." in spinning.text
    assert "Traceback" not in spinning.text + asking.text
