"""`hatchway exec`: what it prints, how it asks, how it ends."""

import json
import os
import zipfile
from pathlib import Path
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
    ("code", "output"),
    [
        ("[float('nan'), float('inf')]", ["NaN", "Infinity"]),
        ("10**5000", hex(10**5000)),
        ("{(1, 2): 3, None: 4, frozenset([5]): 6}", {"(1, 2)": 3, "None": 4, "frozenset({5})": 6}),
        ("{'\\ud800': '\\ud800'}", {"\\ud800": "\\ud800"}),
        ("b'\\xff\\xfe'", "//4="),
    ],
)
def test_the_json_object_holds_whatever_crosses_the_wall(hatchway: Any, code: str, output: Any) -> None:
    ran = hatchway("exec", "-", "--json", "--sandbox", "process", stdin=code)
    assert (ran.returncode, json.loads(ran.stdout, parse_constant=pytest.fail)["output"]) == (0, output)


@pytest.mark.parametrize("sandbox", ["monty", "process"])
def test_the_end_of_a_flood_is_seen(hatchway: Any, sandbox: str) -> None:
    ran = hatchway(
        "exec", "-", "--sandbox", sandbox, stdin="for i in range(30):\n    print('x' * 100_000)\nprint('end')"
    )
    assert ran.stdout.endswith("x\nend\n")
    assert len(ran.stdout) > 3_000_000 or "characters cut …" in ran.stdout


def test_code_that_runs_out_of_time_says_how_it_gets_more(hatchway: Any) -> None:
    ran = hatchway("exec", "-", "--timeout", "0.5", "--sandbox", "process", stdin="while True: pass")
    told = "the code ran longer than 0.5 s\ngive it more with --timeout SECONDS, or let the code do less\n"
    assert (ran.returncode, ran.stderr) == (124, told)


def test_an_int_that_python_does_not_write_is_told_by_its_size(hatchway: Any) -> None:
    ran = hatchway("exec", "-", stdin="[1, 10**5000]")
    assert (ran.returncode, ran.stdout) == (0, "[1, <int of 16610 bits>]\n")


@pytest.mark.parametrize(
    ("code", "args", "state", "error", "exit_code"),
    [
        ("1 / 0", [], "failed", "CodeRuntimeError", 1),
        ("x = = 1", [], "failed", "CodeSyntaxError", 1),
        ("while True:\n    pass", ["--timeout", "0.3"], "timeout", "CodeTimeoutError", 124),
        ("1", ["--sandbox", "montey"], "usage", "InvalidSetting", 2),
        ("1", ["--tools", "no_such_module_x"], "usage", "InvalidSetting", 2),
        ("send('ada', 'hi')", ["--tools", "shop.py"], "paused", "ApprovalRequired", 5),
        ("send('ada', 'hi')", ["--tools", "shop.py", "--no-journal"], "not_approved", "NotApproved", 4),
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
    shop = hatchway.file("shop.py", TOOLS)
    ran = hatchway("exec", "-", "--no-journal", "--tools", shop, stdin="send('ada', 'hi')")
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


def test_after_ctrl_c_the_run_goes_on_by_the_command_that_was_told(hatchway: Any, at_terminal: Any) -> None:
    """The tool is done once; what is told can be typed as it stands."""
    code = "kept = note('x')\nprint('standing')\nimport os, time\nwhile not os.path.exists(GO): time.sleep(0.05)\nkept"
    hatchway.file("notes.py", "def note(text: str) -> str:\n    open('noted', 'a').write(text)\n    return text")
    go = str(hatchway.cwd / "go")
    file = hatchway.file("a.py", f"GO = {go!r}\n{code}")
    standing = at_terminal("exec", file, "--sandbox", "process", "--tools", "notes.py", "--timeout", "100")
    standing.wait_for("standing")
    standing.type("\x03")
    assert standing.end() == 130
    (told,) = [line for line in standing.text.splitlines() if line.startswith("hatchway resume ")]
    Path(go).touch()
    resumed = hatchway(*told.split()[1:])
    assert (resumed.stdout.splitlines()[-1], resumed.returncode) == ("'x'", 0)
    assert Path(go).with_name("noted").read_text() == "x"


def test_ctrl_c_without_a_journal_tells_no_command(hatchway: Any, at_terminal: Any) -> None:
    spinning = at_terminal("exec", hatchway.file("a.py", "print('spinning')\nwhile True:\n    pass"), "--no-journal")
    spinning.wait_for("spinning")
    spinning.type("\x03")
    assert spinning.end() == 130
    assert "hatchway resume" not in spinning.text


@pytest.mark.parametrize("journal", [("--no-journal",), ()])
def test_a_sandbox_that_is_not_there_is_told_once(hatchway: Any, journal: tuple[str, ...]) -> None:
    code = hatchway.file("a.py", "1")
    ran = hatchway("exec", code, "--sandbox", "container", *journal, PATH="/nowhere")
    assert (ran.returncode, ran.stdout) == (3, "")
    assert ran.stderr == (
        "Error: there is no docker command on this machine\n"
        "install docker, or name another engine: docker, podman, nerdctl\n"
    )


PICTURE = """
class Picture:
    def _repr_png_(self): return b"\\x89PNG\\r\\n\\x1a\\n" + b"x"
    def __repr__(self): return "<picture>"
display(Picture())
print("shown")
Picture()
"""


def test_pictures_are_written_into_a_folder_and_over_nothing(hatchway: Any) -> None:
    code = hatchway.file("a.py", PICTURE)
    for _ in range(2):
        ran = hatchway("exec", code, "--sandbox", "process", "--images", "out")
        assert (ran.stdout, ran.returncode) == ("shown\n", 0)
    assert "▣ wrote out/display-1-2.png" in ran.stderr
    names = sorted(path.name for path in (hatchway.cwd / "out").iterdir())
    assert names == ["display-1-2.png", "display-1.png", "display-2-2.png", "display-2.png"]
    assert (hatchway.cwd / "out" / "display-1.png").read_bytes() == b"\x89PNG\r\n\x1a\nx"


def test_without_a_folder_it_says_how_to_keep_them(hatchway: Any) -> None:
    code = hatchway.file("a.py", PICTURE)
    ran = hatchway("exec", code, "--sandbox", "process")
    assert "▣ display-1.png (9 bytes) is not kept: give a folder with --images" in ran.stderr
    shown = hatchway.json("exec", code, "--sandbox", "process", "--json", "--images", "out")["displays"]
    assert [(d["name"], d["mime_type"], d["text"], d["path"]) for d in shown] == [
        ("display-1.png", "image/png", "<picture>", "out/display-1.png"),
        ("display-2.png", "image/png", "<picture>", "out/display-2.png"),
    ]


def test_a_folder_that_cannot_be_written_to(hatchway: Any) -> None:
    hatchway.file("out", "a file")
    ran = hatchway("exec", hatchway.file("a.py", PICTURE), "--sandbox", "process", "--images", "out")
    assert ran.returncode != 0
    assert "--images out: File exists" in ran.stderr


def test_packages_are_built_with_progress_on_stderr(hatchway: Any) -> None:
    with zipfile.ZipFile(hatchway.cwd / "small-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("small.py", "ONE = 1\n")
        wheel.writestr("small-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: small\nVersion: 1.0\n")
        wheel.writestr("small-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr("small-1.0.dist-info/RECORD", "")
    here = str(hatchway.cwd)
    uv = {"UV_FIND_LINKS": here, "UV_OFFLINE": "1", "UV_CACHE_DIR": f"{here}/uv", "HATCHWAY_CACHE": f"{here}/cache"}
    code = hatchway.file("a.py", "import small\nsmall.ONE")
    ran = hatchway("exec", code, "--sandbox", "process", "--packages", "small==1.*", **uv)
    assert (ran.stdout, ran.returncode) == ("1\n", 0), ran.stderr
    assert "packages: building an environment with small==1.*; it is kept in" in ran.stderr
    assert "packages:  + small==1.0" in ran.stderr
    assert hatchway("exec", code, "--sandbox", "process", "--packages", "small==1.*", **uv).stderr == ""
    missing = hatchway("exec", code, "--sandbox", "process", "--packages", "small==2", **uv)
    assert (missing.returncode, missing.stdout) == (3, "")
    assert "the packages cannot be installed: small==2" in missing.stderr


def test_a_sandbox_without_packages_says_so(hatchway: Any) -> None:
    ran = hatchway("exec", "-", "--sandbox", "monty", "--packages", "pandas", stdin="1")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "the sandbox 'monty' does not take packages" in ran.stderr


def test_a_container_of_an_image(hatchway: Any, docker_engine: str) -> None:
    code = "import os\nprint(price('tea'))\nos.getuid()"
    args = ("exec", "-", "--sandbox", "container", "--image", "python:3.12-slim", "--tools")
    ran = hatchway(*args, hatchway.file("shop.py", TOOLS), stdin=code)
    assert (ran.stdout, ran.returncode) == ("3.5\n65534\n", 0)


def test_an_image_that_is_not_there_names_the_pull(hatchway: Any, docker_engine: str) -> None:
    ran = hatchway("exec", "-", "--sandbox", "container", "--image", "nobody/nothing:1", stdin="1")
    assert ran.returncode == 3
    assert "the image nobody/nothing:1 is not on this machine\ndocker pull nobody/nothing:1" in ran.stderr


def test_an_image_in_disguise_and_an_image_for_another_sandbox_are_usage_errors(hatchway: Any) -> None:
    disguised = hatchway("exec", "-", "--sandbox", "container", "--image=--privileged", stdin="1")
    assert disguised.returncode == 2
    assert "'--privileged' is not the name of an image" in disguised.stderr
    other = hatchway("exec", "-", "--sandbox", "monty", "--image", "python:3.12-slim", stdin="1")
    assert other.returncode == 2
    assert "the sandbox 'monty' does not take image" in other.stderr
