"""`hatchway show`: a run as a timeline, a page, a picture, JSON; live from another process."""

import asyncio
import json
import os
import select
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from typing import Any

import pytest

from hatchway.core.errors import CodeTimeoutError

RUN = "cccc3333" * 4


def test_the_timeline(hatchway: Any, stories: Any) -> None:
    stories.ended(RUN, code="price('tea')")
    ran = hatchway("show", "cccc")
    lines = ran.stdout.splitlines()
    assert (ran.returncode, ran.stderr) == (0, "")
    assert lines[0].strip() == f"● run {RUN}"
    assert "│ price('tea')" in lines[2]
    assert lines[4] == "          │ hi"
    assert lines[5].endswith("✓ price(item='tea') → 3.5  4 ms")
    assert lines[6] == "          = 3.5"
    assert lines[7].endswith("■ done")


def test_a_run_that_waits_says_what_to_do(hatchway: Any, stories: Any) -> None:
    stories.paused(RUN, "hi", "x" * 2000)
    short, full = hatchway("show", RUN).stdout, hatchway("show", RUN, "--full").stdout
    assert short.splitlines()[-1].strip() == "… 2 calls wait for a decision: hatchway approve cccc3333 (or deny)"
    assert "? send(text='hi') waits  call 1.1" in short
    assert "x" * 2000 not in short
    assert "x" * 2000 in full


def test_json_holds_everything(hatchway: Any, stories: Any) -> None:
    stories.ended(RUN, code="price('tea')")
    told = hatchway.json("show", RUN, "--json")
    assert (told["run_id"], told["state"], told["code"]) == (RUN, "done", "price('tea')")
    assert told["result"] == {"output": 3.5, "stdout": "hi\n", "stderr": "", "files": []}
    (called,) = told["calls"]
    assert (called["tool"], called["args"], called["value"], called["seconds"]) == (
        "price",
        {"item": "tea"},
        3.5,
        0.004,
    )
    kinds = [event["event"] for event in told["events"]]
    assert kinds == ["RunStarted", "CodeExecutionOutputChunk", "CallStarted", "ToolOutput", "CodeExecutionOutput"]


def test_a_page_and_a_picture(hatchway: Any, stories: Any) -> None:
    stories.paused(RUN, "</script>\x1b[2J" + "<b>" * 400_000, code="send('</pre><script>')")
    ran = hatchway("show", RUN, "--html", "run.html", "--svg", "run.svg")
    assert (ran.stdout, ran.stderr, ran.returncode) == ("", "wrote run.html\nwrote run.svg\n", 0)
    page = (hatchway.cwd / "run.html").read_text(encoding="utf-8")
    assert "<script" not in page
    assert "\x1b" not in page
    assert "&lt;/script&gt;\\x1b[2J" in page
    assert '1 call waits for a decision: </span><span class="bold">hatchway approve cccc3333 (or deny)' in page
    ET.parse(hatchway.cwd / "run.svg")
    assert hatchway("show", RUN, "--html", "no/such/folder.html").returncode == 1
    assert hatchway("show", RUN, "-f", "--html", "x.html").returncode == 2


@pytest.mark.parametrize(("said", "args"), [("no run 'dddd' in this journal", ["dddd"]), ("no run 'cc' in", ["cc"])])
def test_an_unknown_run_names_the_command_that_lists_them(hatchway: Any, stories: Any, said: str, args: Any) -> None:
    stories.ended(RUN)
    ran = hatchway("show", *args)
    assert ran.returncode == 2
    assert ran.stderr.startswith(f"Error: {said}")
    assert ran.stderr.splitlines()[-1] == "hatchway runs"


def test_a_beginning_that_two_runs_have_is_not_enough(hatchway: Any, stories: Any) -> None:
    stories.ended("cccc1111")
    stories.ended("cccc2222")
    ran = hatchway("show", "cccc")
    assert ran.returncode == 2
    assert ran.stderr == "Error: several runs begin with 'cccc'\ngive more of the id: hatchway runs --json\n"
    assert hatchway("show", "cccc1").returncode == 0


def test_following_an_ended_run_ends_as_it_did(hatchway: Any, stories: Any) -> None:
    stories.ended(RUN)
    stories.failed("dddd4444")
    assert hatchway("show", "-f", RUN).stdout == hatchway("show", RUN).stdout
    assert (hatchway("show", "-f", RUN).returncode, hatchway("show", "-f", "dddd").returncode) == (0, 1)
    events = [json.loads(line) for line in hatchway("show", "-f", RUN, "--json").stdout.splitlines()]
    assert [event["event"] for event in events][::4] == ["RunStarted", "CodeExecutionOutput"]


class Follower:
    """`hatchway show -f` in a process of its own, read while it runs."""

    def __init__(self, hatchway: Any, *args: str) -> None:
        command = [sys.executable, "-m", "hatchway", "show", "-f", *args]
        env = os.environ | {"COLUMNS": "80"}
        self._ours, theirs = os.pipe()
        self._process = subprocess.Popen(command, cwd=hatchway.cwd, env=env, stdout=theirs)
        os.close(theirs)
        self.text = ""

    def until(self, text: str) -> None:
        """Read until it was printed."""
        end = time.monotonic() + 30
        while text not in self.text:
            assert time.monotonic() < end, self.text
            if select.select([self._ours], [], [], 0.2)[0]:
                self.text += os.read(self._ours, 65536).decode()

    def end(self) -> int:
        """Its exit code."""
        while piece := os.read(self._ours, 65536):
            self.text += piece.decode()
        return self._process.wait(30)

    def close(self) -> None:
        """End it if it still runs."""
        self._process.kill()
        self._process.wait()
        os.close(self._ours)


def test_a_run_is_followed_while_another_process_drives_it(hatchway: Any, stories: Any) -> None:
    book = stories.begin(RUN, "slow('a')")
    follower = Follower(hatchway, RUN)
    try:
        follower.until("slow('a')")
        book.note("output", "", {"stream": "stdout", "text": "half a "})
        follower.until("half a ")
        asyncio.run(book.started("1.1", {"name": "slow", "args": [], "kwargs": {"x": "a"}}))
        follower.until("→ slow(x='a')")
        book.note("done", "1.1", {"value": 7, "seconds": 2.5})
        follower.until("✓ slow(x='a') → 7  2.50 s")
        book.note("pending", "1.2", {"name": "send", "args": [], "kwargs": {}, "digest": "d"})
        asyncio.run(book.paused("paused", None))
        book.give_back()
        follower.until("1 call waits for a decision: hatchway approve cccc3333 (or deny)")
        assert hatchway("approve", RUN).returncode == 0
        follower.until("send() allowed by a person")
        book = stories.journal.take(RUN)
        asyncio.run(book.take_up())
        follower.until("goes on, taken up for the second time")
        asyncio.run(book.ended(CodeTimeoutError("too slow")))
        assert follower.end() == 124
        assert "CodeTimeoutError" in follower.text
        assert "half a \n" in follower.text
    finally:
        follower.close()


def test_a_run_whose_process_dies_is_said_to_be_dead(hatchway: Any, stories: Any) -> None:
    stories.begin(RUN)
    follower = Follower(hatchway, RUN)
    try:
        follower.until("● run")
        stories.journal.close()
        follower.until("its process is gone: hatchway resume cccc3333")
    finally:
        follower.close()
