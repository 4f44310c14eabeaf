"""The agent at a terminal of 80 columns, in tmux: prompts, approval keys, editing, cancel, resume, recording."""

import os
import re
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SCREENS = Path(__file__).parent / "screens"
PROMPT = "›\n"
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


def effects(workspace: Path) -> str:
    file = workspace / "effects.txt"
    return file.read_text(encoding="utf-8") if file.exists() else ""


def test_a_reply_streams_in_as_markdown_and_q_leaves(at_tmux: Callable[..., Any]) -> None:
    terminal = at_tmux()
    terminal.type("two", "M-Enter")
    terminal.type("lines", "Enter")
    terminal.wait_for("That is all.")
    terminal.wait_for(PROMPT)
    terminal.type("q", "Enter")
    same("reply", terminal.wait_for("exit 0"))


def test_yes_to_the_action_and_yes_to_its_call(at_tmux: Callable[..., Any], workspace: Path) -> None:
    terminal = at_tmux()
    terminal.type("code: print(send('ada'))", "Enter")
    same("asked", terminal.wait_for(RUN))
    assert effects(workspace) == ""
    terminal.press("Enter")
    terminal.wait_for(ALLOW)
    assert effects(workspace) == ""
    terminal.press("y")
    terminal.wait_for("It gave: sent to ada: hi")
    terminal.type("q", "Enter")
    same("approved", terminal.wait_for("exit 0"))
    assert effects(workspace) == "ada "


def test_no_with_a_reason_goes_on_and_a_bare_no_ends_the_turn(at_tmux: Callable[..., Any], workspace: Path) -> None:
    terminal = at_tmux()
    terminal.type("code: send('ada')", "Enter")
    terminal.wait_for(RUN)
    terminal.press("n")
    terminal.wait_for("Why not?")
    terminal.type("use bob", "Enter")
    assert "the action denied by you: use bob" in terminal.wait_for("It gave: The user rejected")
    terminal.type("code: send('bob')", "Enter")
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
    assert "It gave" not in terminal.wait_for(PROMPT).rpartition("Why not?")[2].rpartition("send denied")[2]
    assert effects(workspace) == ""


def test_code_and_arguments_are_edited_before_they_run(at_tmux: Callable[..., Any], workspace: Path) -> None:
    terminal = at_tmux()
    terminal.type("code: x = 'ada' ;; send(x)", "Enter")
    terminal.wait_for(RUN)
    terminal.press("e")
    terminal.wait_for("Ctrl+S runs it so")
    terminal.press("BSpace")
    terminal.type(" + ' lovelace')")
    terminal.press("C-s")
    terminal.wait_for("to='ada lovelace',")
    terminal.wait_for(ALLOW)
    terminal.press("e")
    terminal.wait_for("Ctrl+S runs it so", 2)
    terminal.press("BSpace")
    terminal.type(', "text": "changed"')
    terminal.press("C-s")
    terminal.wait_for("That is not JSON")
    terminal.type("}")
    terminal.press("C-s")
    terminal.wait_for("'sent to ada lovelace: changed'")
    terminal.wait_for("It gave: The user changed the code.")
    assert effects(workspace) == "ada lovelace "


def test_s_holds_for_the_session_and_a_for_good_by_an_edited_pattern(
    at_tmux: Callable[..., Any], workspace: Path
) -> None:
    terminal = at_tmux()
    terminal.type("code: send('ada') ;; send('bob')", "Enter")
    terminal.wait_for(RUN)
    terminal.press("y")
    terminal.wait_for(ALLOW)
    terminal.press("a")
    terminal.wait_for("Always allow: send")
    terminal.press("C-a", "C-k")
    terminal.type("send(to=ad*)", "Enter")
    terminal.wait_for("send(to=ad*) is allowed from now on")
    terminal.wait_for("to='bob',")
    terminal.wait_for(ALLOW)
    terminal.press("s")
    terminal.wait_for("It gave")
    terminal.type("code: send('eve') ;; send('adam')", "Enter")
    terminal.wait_for(RUN)
    terminal.press("y")
    terminal.wait_for("It gave", 2)
    assert effects(workspace) == "ada bob eve adam "
    assert "send(to=ad*)" in (workspace / ".hatchway" / "permissions.json").read_text(encoding="utf-8")


def test_d_shows_the_details_over_the_screen(at_tmux: Callable[..., Any]) -> None:
    terminal = at_tmux()
    terminal.type("code: 1", "Enter")
    terminal.wait_for(RUN)
    terminal.press("d")
    terminal.wait_for("An action asks to run.  agent main")
    terminal.press("q")
    terminal.wait_for(RUN)
    terminal.press("y")
    terminal.wait_for("It gave: 1")


def test_esc_cancels_a_reply_and_keeps_what_there_is(at_tmux: Callable[..., Any]) -> None:
    terminal = at_tmux()
    terminal.type("slow", "Enter")
    terminal.wait_for("word 3")
    terminal.press("Escape")
    screen = terminal.wait_for("⊘ cancelled")
    assert "word 3" in screen.rpartition("you slow")[2]
    terminal.type("again", "Enter")
    terminal.wait_for("That is all.")


def test_esc_cancels_running_code_and_a_question(at_tmux: Callable[..., Any], workspace: Path) -> None:
    terminal = at_tmux()
    terminal.type("code: print('begun', flush=True) ;; import time ;; time.sleep(600)", "Enter")
    terminal.wait_for(RUN)
    terminal.press("y")
    terminal.wait_for("│ begun")
    terminal.press("Escape")
    terminal.wait_for("⊘ cancelled")
    terminal.type("code: send('ada')", "Enter")
    terminal.wait_for(RUN)
    terminal.press("Escape")
    terminal.wait_for("⊘ cancelled", 2)
    terminal.wait_for(PROMPT)
    assert effects(workspace) == ""


def test_keys_that_were_pressed_before_the_question_are_no_answer(at_tmux: Callable[..., Any], workspace: Path) -> None:
    terminal = at_tmux()
    terminal.type("code: import time ;; time.sleep(1) ;; send('ada')", "Enter")
    terminal.wait_for(RUN)
    terminal.press("y")
    terminal.type("yyyy", "Enter")
    terminal.wait_for(ALLOW)
    assert effects(workspace) == ""
    terminal.press("y")
    terminal.wait_for("It gave")
    assert effects(workspace) == "ada "


def test_a_killed_terminal_loses_nothing_and_asks_again(at_tmux: Callable[..., Any], workspace: Path) -> None:
    terminal = at_tmux()
    terminal.type("remember this", "Enter")
    terminal.wait_for("That is all.")
    terminal.type("code: send('ada') ;; send('bob')", "Enter")
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
    assert effects(workspace) == "ada "
    terminal.press("y")
    terminal.wait_for("It gave")
    assert effects(workspace) == "ada bob "
    terminal.type("q", "Enter")
    terminal.wait_for("exit 0")


def test_long_output_is_folded_and_ctrl_o_unfolds_it(at_tmux: Callable[..., Any]) -> None:
    terminal = at_tmux("--yes")
    terminal.type("code: for i in range(500): print('line', i)", "Enter")
    terminal.wait_for("488 more lines · Ctrl+O shows all")
    terminal.wait_for("It gave")
    assert "line 12\n" not in terminal.screen
    terminal.press("C-o")
    terminal.wait_for("q or Esc closes")
    terminal.type("/line 499", "Enter")
    terminal.wait_for("│ line 499\n")
    terminal.press("C-o")
    terminal.wait_for(PROMPT)
    assert "line 499" not in terminal.screen


def test_the_conversation_is_recorded(at_tmux: Callable[..., Any], workspace: Path) -> None:
    terminal = at_tmux("--record", "--record-dir", "rec", "--record-title", "'A talk'", "--yes")
    terminal.type("code: print(6 * 7)", "Enter")
    terminal.wait_for("It gave: 42")
    terminal.type("q", "Enter")
    terminal.wait_for("recorded rec/a-talk.html")
    page = (workspace / "rec" / "a-talk.html").read_text(encoding="utf-8")
    picture = (workspace / "rec" / "a-talk.svg").read_text(encoding="utf-8")
    for text in ("A talk", "6 * 7", "42"):
        assert text in re.sub(r"<[^>]+>", "", page)
        assert text in re.sub(r"<[^>]+>", "", picture).replace("&#160;", " ")


def test_nothing_a_model_says_acts_on_the_terminal(at_tmux: Callable[..., Any]) -> None:
    terminal = at_tmux()
    terminal.type("hostile", "Enter")
    assert "before \\x1b[2J\\x1b]0;owned\\x07 \\u202e after" in terminal.wait_for("after")


def test_without_colours_there_are_none(at_tmux: Callable[..., Any], workspace: Path) -> None:
    terminal = at_tmux("--yes", NO_COLOR="1")
    terminal.type("code: print(1)", "Enter")
    terminal.wait_for("It gave: 1")
    painted = terminal._tmux("capture-pane", "-p", "-e", "-S", "-")
    assert re.findall(r"\x1b\[[\d;]*(?:3[0-7]|38|4[0-7]|48|9[0-7])m", painted) == []


def test_a_path_completes_and_brings_the_file_along(at_tmux: Callable[..., Any], workspace: Path) -> None:
    (workspace / "notes.txt").write_text("hello", encoding="utf-8")
    terminal = at_tmux()
    terminal.type("read @no")
    terminal.wait_for("notes.txt")
    terminal.press("Tab")
    terminal.wait_for("read @notes.txt")
    terminal.press("Enter", "Enter")
    assert "@notes.txt: text, 5 B" in terminal.wait_for("That is all.")


def test_words_list_tools_and_take_another_model(at_tmux: Callable[..., Any]) -> None:
    terminal = at_tmux()
    terminal.type("/tools", "Enter")
    terminal.wait_for("send  Send a message.")
    terminal.type("/help", "Enter")
    terminal.wait_for("Esc cancels the turn")
    terminal.type("/nonsense", "Enter")
    terminal.wait_for("/nonsense: there is /help, /skill, /model, /tools")
    terminal.type("/model human", "Enter")
    terminal.wait_for(">>>")
    terminal.type("6 * 7", "Enter")
    terminal.wait_for("= 42")
    terminal.type("/model nonsense:x", "Enter")
    terminal.wait_for("the model 'nonsense:x' cannot be used")


def test_a_person_writes_the_actions(at_tmux: Callable[..., Any], workspace: Path) -> None:
    terminal = at_tmux("--model", "human")
    terminal.type("def double(n):", "Enter")
    terminal.type("return 2 * n", "Enter", "Enter")
    terminal.wait_for("■ done")
    terminal.type("send(f'ada{double(21)}')", "Enter")
    terminal.wait_for(ALLOW)
    assert RUN not in terminal.screen
    terminal.press("y")
    terminal.wait_for("= 'sent to ada42: hi'")
    assert effects(workspace) == "ada42 "


def test_the_first_run_without_a_key_is_one_screen(at_tmux: Callable[..., Any]) -> None:
    terminal = at_tmux(model=False)
    same("first_run", terminal.wait_for("[q] quit"))
    terminal.press("k")
    terminal.wait_for("Then start again: hatchway")
    terminal.press("h")
    terminal.wait_for(">>>")
    terminal.type("1 + 1", "Enter")
    terminal.wait_for("= 2")
    terminal.type("q", "Enter")
    terminal.wait_for("exit 0")


def test_the_demo_can_be_seen_from_the_first_run(at_tmux: Callable[..., Any]) -> None:
    terminal = at_tmux(model=False)
    terminal.wait_for("[q] quit")
    terminal.press("d")
    terminal.wait_for("Hatchway demo")
    terminal.wait_for("allow? [Enter/y] yes")
    terminal.press("y", "Enter")
    terminal.wait_for("exit 0")
