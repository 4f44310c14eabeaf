"""The agent at a terminal of 80 columns, in tmux: prompts, approval keys, editing, cancel, resume, recording."""

import html
import os
import re
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SCREENS = Path(__file__).parent / "screens"
PROMPT = re.compile(r"^(›|>>>)\n.*/help\n\Z", re.MULTILINE)
"""The prompt, empty, and the status below it: nothing goes on."""
RUN = "Run it?"
ALLOW = "Allow send?"


def same(name: str, screen: str) -> None:
    """Compare a screen with what a person looked at and found right; a new one is written down."""
    kept = SCREENS / f"{name}.txt"
    if not kept.exists():
        kept.parent.mkdir(exist_ok=True)
        kept.write_text(screen, encoding="utf-8")
        pytest.fail(f"{kept} is new: look at it")
    assert screen == kept.read_text(encoding="utf-8")


def say(terminal: Any, text: str) -> None:
    """Type a prompt, once there is one to type at."""
    terminal.wait_for_end(PROMPT)
    terminal.type(text, "Enter")


def effects(workspace: Path) -> str:
    file = workspace / "effects.txt"
    return file.read_text(encoding="utf-8") if file.exists() else ""


def test_a_reply_streams_in_as_markdown_and_a_path_brings_a_file(at_tmux: Callable[..., Any], workspace: Path) -> None:
    (workspace / "notes.txt").write_text("hello", encoding="utf-8")
    terminal = at_tmux()
    terminal.type("two", "M-Enter")
    terminal.type("lines", "Enter")
    terminal.wait_for("That is all.")
    terminal.wait_for_end(PROMPT)
    terminal.type("read @no")
    terminal.wait_for("notes.txt")
    terminal.press("Tab")
    terminal.wait_for("read @notes.txt")
    terminal.press("Enter", "Enter")
    terminal.wait_for("That is all.", 2)
    say(terminal, "hostile")
    terminal.wait_for("after")
    say(terminal, "q")
    same("reply", terminal.wait_for("exit 0"))


def test_yes_to_the_action_and_yes_to_its_call(at_tmux: Callable[..., Any], workspace: Path) -> None:
    terminal = at_tmux()
    say(terminal, "code: print(send('ada'))")
    same("asked", terminal.wait_for(RUN))
    assert effects(workspace) == ""
    terminal.press("Enter")
    terminal.wait_for(ALLOW)
    assert effects(workspace) == ""
    terminal.press("y")
    terminal.wait_for("It gave: sent to ada: hi")
    say(terminal, 'tool: write_file {"path": "new.txt", "content": "one line"}')
    terminal.wait_for("Allow write_file?")
    assert not (workspace / "new.txt").exists()
    terminal.press("y")
    terminal.wait_for("It gave", 2)
    say(terminal, "q")
    same("approved", terminal.wait_for("exit 0"))
    assert effects(workspace) == "ada "
    assert (workspace / "new.txt").read_text(encoding="utf-8") == "one line"


def test_no_details_and_editing(at_tmux: Callable[..., Any], workspace: Path) -> None:
    terminal = at_tmux()
    say(terminal, "code: send('ada')")
    terminal.wait_for(RUN)
    terminal.press("d")
    terminal.wait_for("An action asks to run.  agent main")
    terminal.press("q")
    terminal.wait_for(RUN)
    terminal.press("n")
    terminal.wait_for("Why not?")
    terminal.type("use bob", "Enter")
    assert "the action denied by you: use bob" in terminal.wait_for("It gave: The user rejected")

    say(terminal, "code: send('bob')")
    terminal.wait_for(RUN)
    terminal.press("y")
    terminal.wait_for(ALLOW)
    terminal.press("n")
    terminal.wait_for("Why not?")
    terminal.press("Escape")
    terminal.wait_for(ALLOW)
    terminal.press("n")
    terminal.wait_for("Why not?")
    terminal.press("Enter")
    terminal.wait_for("refused: the turn is over")
    assert terminal.wait_for_end(PROMPT).count("It gave") == 1
    assert effects(workspace) == ""

    say(terminal, "code: x = 'ada' ;; send(x)")
    terminal.wait_for(RUN)
    terminal.press("e")
    terminal.wait_for("Ctrl+S runs it so")
    terminal.press("BSpace")
    terminal.type(" + ' lovelace')", "C-s")
    terminal.wait_for("to='ada lovelace',")
    terminal.wait_for(ALLOW)
    terminal.press("e")
    terminal.wait_for("Ctrl+S runs it so", 2)
    terminal.press("BSpace")
    terminal.type(', "text": "changed"', "C-s")
    terminal.wait_for("That is not JSON")
    terminal.type("}", "C-s")
    terminal.wait_for("'sent to ada lovelace: changed'")
    terminal.wait_for("It gave: The user changed the code.")
    assert effects(workspace) == "ada lovelace "


def test_what_is_allowed_for_longer_and_what_is_no_answer(at_tmux: Callable[..., Any], workspace: Path) -> None:
    terminal = at_tmux()
    waits = "import os, time ;; while not os.path.exists('go'): time.sleep(0.05)"
    say(terminal, f"code: {waits} ;; send('ada') ;; send('bob')")
    terminal.wait_for(RUN)
    terminal.press("y")
    terminal.wait_for("* running")
    terminal.type("yyyy", "Enter")  # before there is a question
    (workspace / "go").touch()
    terminal.wait_for(ALLOW)
    assert effects(workspace) == ""
    terminal.press("a")
    terminal.wait_for("Always allow: send")
    terminal.press("C-a", "C-k")
    terminal.type("send(to=ad*)", "Enter")
    terminal.wait_for("send(to=ad*) is allowed from now on")
    terminal.wait_for("to='bob',")
    terminal.wait_for(ALLOW)
    terminal.press("s")
    terminal.wait_for("It gave")
    assert effects(workspace) == "ada bob "
    assert "send(to=ad*)" in (workspace / ".hatchway" / "permissions.json").read_text(encoding="utf-8")
    terminal.wait_for("/help")
    terminal.press("C-u")  # what was typed then stands at the prompt
    say(terminal, "code: send('adam') ;; send('bob')")
    terminal.wait_for(RUN)
    terminal.press("y")
    terminal.wait_for("It gave", 2)
    assert effects(workspace) == "ada bob adam bob "


def test_calls_side_by_side_are_shown_and_asked_one_by_one(at_tmux: Callable[..., Any]) -> None:
    terminal = at_tmux()
    pings = "import asyncio ;; print(await asyncio.gather(*(ping(number) for number in range(4))))"
    say(terminal, f"code: {pings}")
    terminal.wait_for(RUN)
    terminal.press("y")
    screen = terminal.wait_for("Allow ping?")
    assert "number=0" in screen
    assert "number=1" not in screen
    terminal.press("y")
    screen = terminal.wait_for("Allow ping? (2 more after it) [Enter/y]")
    assert "number=1" in screen
    assert "number=2" not in screen
    terminal.press("s")  # those that wait already are among the like
    screen = terminal.wait_for("│ ['pong 0', 'pong 1', 'pong 2', 'pong 3']")
    assert screen.count("ping · asks for approval") == 2

    say(terminal, "code: send('ada')")
    terminal.wait_for(RUN)
    terminal.press("y")
    terminal.wait_for(ALLOW)
    terminal.press("n")
    terminal.wait_for("Why not?")
    terminal.type("not ada", "Enter")
    assert "⊘ send(to='ada') → not ada\n" in terminal.wait_for("It gave: The user rejected")


def test_what_subagents_say_at_once_stays_apart_and_has_their_names(at_tmux: Callable[..., Any]) -> None:
    terminal = at_tmux("--yes")
    say(terminal, "share: chatter tick || chatter tock")
    screen = terminal.wait_for("It gave")
    for word in ("tick", "tock"):
        assert re.search(rf"» sub-\w{{4}}\n{' '.join([word] * 8)}\n", screen)
    assert re.search(r"» main\n(.*✓ subagent_task.*\n)+\nIt gave", screen)


def test_nothing_comes_between_a_question_and_what_it_is_about(at_tmux: Callable[..., Any], workspace: Path) -> None:
    terminal = at_tmux()
    say(terminal, "share: code: send('ada') || chatter tick")
    terminal.wait_for("Allow subagent_task?")
    terminal.press("s")
    screen = terminal.wait_for(RUN)
    asked = r"│ send\('ada'\) +│\n╰─+╯\nsub-\w{4}: Run it\? \[Enter/y\] yes .*\n\[d\] details\n\* waits for you"
    assert re.search(asked, screen)
    time.sleep(1.5)  # the other one has spoken to its end meanwhile
    assert re.search(asked, terminal.screen)
    assert "tick" not in terminal.screen.rpartition("allowed until you leave")[2]
    terminal.press("y")
    terminal.wait_for(" ".join(["tick"] * 8))
    screen = terminal.wait_for("Allow send?")
    assert screen.index("the action allowed by you") < screen.index("tick tick")
    terminal.press("y")
    terminal.wait_for("It gave")
    assert effects(workspace) == "ada "


def test_what_is_typed_or_pasted_while_it_works_stands_at_the_next_prompt(at_tmux: Callable[..., Any]) -> None:
    terminal = at_tmux()
    say(terminal, "slow")
    terminal.wait_for("word 30")  # the whole paragraph is seen while it grows
    assert "word 1 word 2" in terminal.screen.rpartition("you slow")[2]
    terminal.type("typed ")
    terminal.paste("one\ntwo")
    terminal.wait_for("two")
    terminal.press("Up", "Escape")
    terminal.wait_for("⊘ cancelled")
    terminal.wait_for("› typed one\n  two\n")
    terminal.press("Enter")
    terminal.wait_for("you typed one\ntwo")


def test_a_prompt_wider_than_the_terminal_is_seen_whole_and_grows_no_higher_than_a_field(
    at_tmux: Callable[..., Any],
) -> None:
    terminal = at_tmux()
    terminal.wait_for_end(PROMPT)
    terminal.type("begin " + "x" * 160 + " end")
    assert "› begin xxx" in terminal.wait_for("x end\n")
    terminal.type("y" * 1_500 + " end of it")
    screen = terminal.wait_for("y end of it\n")
    assert "begin" not in screen  # it scrolls: its end is where the cursor is
    assert screen.count("\n  y") == 12


def test_no_answer_in_time_is_no_and_the_question_goes_away(at_tmux: Callable[..., Any]) -> None:
    terminal = at_tmux("--approval-timeout", "2")
    say(terminal, "code: send('ada')")
    terminal.wait_for("nobody waits for a decision about execute_code any more")
    terminal.wait_for("It gave: ")
    assert "Run it?" not in terminal.wait_for_end(PROMPT)


def test_esc_cancels_a_reply_running_code_and_a_question(at_tmux: Callable[..., Any], workspace: Path) -> None:
    terminal = at_tmux()
    say(terminal, "slow")
    terminal.wait_for("word 3")
    terminal.press("Escape")
    screen = terminal.wait_for("⊘ cancelled")
    assert "word 3" in screen.rpartition("you slow")[2].partition("⊘")[0]
    say(terminal, "code: print('begun', flush=True) ;; import time ;; time.sleep(600)")
    terminal.wait_for(RUN)
    terminal.press("y")
    terminal.wait_for("│ begun")
    terminal.press("Escape")
    assert "✗" not in terminal.wait_for("⊘ cancelled", 2)
    say(terminal, "code: send('ada')")
    terminal.wait_for(RUN)
    terminal.press("Escape")
    terminal.wait_for("⊘ cancelled", 3)
    say(terminal, "again")
    terminal.wait_for("That is all.")
    assert effects(workspace) == ""


def test_a_killed_terminal_loses_nothing_and_asks_again(at_tmux: Callable[..., Any], workspace: Path) -> None:
    terminal = at_tmux()
    say(terminal, "remember this")
    terminal.wait_for("That is all.")
    say(terminal, "code: send('ada') ;; send('bob')")
    terminal.wait_for(RUN)
    terminal.press("y")
    terminal.wait_for(ALLOW)
    terminal.press("y")
    terminal.wait_for("to='bob',")
    terminal.wait_for(ALLOW)
    os.kill(terminal.pid, signal.SIGKILL)
    terminal.wait_for("exit 137")

    terminal = at_tmux("-c")
    terminal.wait_for("goes on after 2 turns")
    screen = terminal.wait_for(ALLOW)
    assert "to='bob'," in screen
    assert "│ send('ada')  " in screen.rpartition("taken up for the second time")[2]  # the code that goes on
    assert effects(workspace) == "ada "
    terminal.press("y")
    terminal.wait_for("It gave")
    assert effects(workspace) == "ada bob "
    say(terminal, "q")
    terminal.wait_for("exit 0")


def test_what_is_sent_before_the_old_conversation_is_there_is_sent_behind_it(
    at_tmux: Callable[..., Any], workspace: Path
) -> None:
    (workspace / "notes.txt").write_text("secret-free", encoding="utf-8")
    terminal = at_tmux()
    say(terminal, "read @notes.txt")
    terminal.wait_for("That is all.")
    say(terminal, "q")
    terminal.wait_for("exit 0")

    terminal = at_tmux("-c")
    terminal.type("early", "Enter")
    screen = terminal.wait_for("you early")
    assert "goes on after 1 turn\n\nyou read @notes.txt\n" in screen
    assert "secret-free" not in screen  # the file that came along is not what was typed
    terminal.wait_for("That is all.", 2)
    say(terminal, "q")
    terminal.wait_for("exit 0")

    terminal = at_tmux("-c")
    terminal.type("q", "Enter")  # left while it was loaded: nothing is gone on with
    assert "goes on after" not in terminal.wait_for("exit 0")


def test_long_output_is_folded_and_all_is_recorded_without_colours(
    at_tmux: Callable[..., Any], workspace: Path
) -> None:
    terminal = at_tmux("--yes", "--record", "--record-dir", "rec", "--record-title", "'A talk'", NO_COLOR="1")
    say(terminal, "code: for i in range(500): print('line', i)")
    terminal.wait_for("488 more lines · Ctrl+O shows all")
    terminal.wait_for("It gave")
    assert "line 12\n" not in terminal.screen
    terminal.press("C-o")
    terminal.wait_for("q or Esc closes")
    terminal.type("/line 499", "Enter")
    terminal.wait_for("│ line 499\n")
    terminal.press("g")
    terminal.wait_for("line 39 of ")
    terminal.press("Down", "j", "k", "j")
    terminal.wait_for("line 41 of ")
    terminal.press("C-o")
    terminal.wait_for_end(PROMPT)
    assert "line 499" not in terminal.screen
    assert re.findall(r"\x1b\[[\d;]*(?:3[0-7]|38|4[0-7]|48|9[0-7])m", terminal.painted) == []
    say(terminal, "q")
    terminal.wait_for("recorded rec/a-talk.html")
    page = (workspace / "rec" / "a-talk.html").read_text(encoding="utf-8")
    picture = (workspace / "rec" / "a-talk.svg").read_text(encoding="utf-8")
    for text in ("A talk", "for i in range(500)", "line 499", "It gave"):
        assert text in html.unescape(re.sub(r"<[^>]+>", "", page))
        assert text in html.unescape(re.sub(r"<[^>]+>", "", picture)).replace("\xa0", " ")


def test_words_and_another_model(at_tmux: Callable[..., Any], workspace: Path) -> None:
    terminal = at_tmux()
    say(terminal, "/tools")
    terminal.wait_for("send  Send a message.")
    say(terminal, "/skill")
    terminal.wait_for("task-planning")
    say(terminal, "/skill task-planning a cake")
    terminal.wait_for("Use the skill task-planning")
    say(terminal, "/nonsense")
    terminal.wait_for("/nonsense: there is /help, /skill, /model, /tools")
    say(terminal, "/model nonsense:x")
    terminal.wait_for("the model 'nonsense:x' cannot be used")
    say(terminal, "/model human")
    terminal.wait_for(">>>")
    terminal.type("def double(n):", "Enter")
    terminal.type("return 2 * n", "Enter", "Enter")
    terminal.wait_for("■ done")
    say(terminal, "send(f'ada{double(21)}')")
    terminal.wait_for(ALLOW)
    assert RUN not in terminal.screen
    assert "asks to run" not in terminal.screen
    assert terminal.screen.count("send(f'ada{double(21)}')") == 1
    terminal.press("y")
    terminal.wait_for("= 'sent to ada42: hi'")
    assert effects(workspace) == "ada42 "


def test_the_first_run_without_a_key_is_one_screen(at_tmux: Callable[..., Any]) -> None:
    terminal = at_tmux(model=False)
    same("first_run", terminal.screen)
    terminal.press("k")
    terminal.wait_for("Then start again: hatchway")
    terminal.press("h")
    terminal.wait_for(">>>")
    say(terminal, "1 + 1")
    terminal.wait_for("= 2")
    say(terminal, "q")
    terminal.wait_for("exit 0")

    for key in ("C-c", "C-d", "Escape"):
        terminal = at_tmux(model=False)
        terminal.press(key)
        terminal.wait_for("exit 0")

    terminal = at_tmux(model=False)
    terminal.press("d")
    terminal.wait_for("Hatchway demo")
    terminal.wait_for("allow? [Enter/y] yes")
    terminal.press("y", "Enter")
    terminal.wait_for("exit 0")
