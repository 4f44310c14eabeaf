"""`hatchway jail`: a command in the place of ours, behind the wall."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from http.server import HTTPServer, SimpleHTTPRequestHandler
from pathlib import Path
from threading import Thread

import pytest
from tests.weaker_wall import without_warning

from hatchway.sandboxes.jail import JailSandbox

JAIL = [sys.executable, "-m", "hatchway", "jail"]


@pytest.fixture(scope="module", autouse=True)
def _usable() -> None:
    seen = JailSandbox.probe()
    if seen.state != "usable":
        pytest.skip(f"{seen.reason} {seen.hint}")


def jail(*words: str | Path, data: str = "", **settings: object) -> subprocess.CompletedProcess[str]:
    command = [*JAIL, *map(str, words)]
    return subprocess.run(command, input=data, capture_output=True, text=True, timeout=60, **settings)  # type: ignore


def test_streams_and_exit_codes() -> None:
    done = jail("--", "sh", "-c", "cat; echo err >&2; exit 7", data="in\n")
    assert (done.returncode, done.stdout, without_warning(done.stderr)) == (7, "in\n", "err\n")
    assert jail("--", "sh", "-c", "kill -TERM $$").returncode == 128 + signal.SIGTERM
    assert jail("sh", "-c", "exit 3").returncode == 3


def test_files_and_rules(tmp_path: Path) -> None:
    if JailSandbox.probe().tier != "namespaces":
        pytest.skip("/input is a place of its own only in the namespaces tier")
    (tmp_path / ".env").write_text("SECRET")
    (tmp_path / "kept").write_text("kept")
    script = "cat .env; echo new > new; rm kept; cat /input/x; ls /input"
    words = ["--workspace", f"{tmp_path}:rw", "--deny-read", ".env", "--deny-write", "kept"]
    done = jail(*words, "--mount", f"{tmp_path / 'kept'}:x", "--tier", "namespaces", "--", "sh", "-c", script)
    assert done.stdout == "keptx\n"
    assert ((tmp_path / "new").read_text(), (tmp_path / "kept").read_text()) == ("new\n", "kept")
    done = jail("--workspace", tmp_path, "--", "sh", "-c", "pwd; echo x > y")
    assert (done.stdout, done.returncode != 0) == (f"{tmp_path}\n", True)


def test_output_to_a_file_is_not_the_file_itself(tmp_path: Path) -> None:
    """A descriptor of a file could be opened anew, to read what was in it: the command gets a pipe instead."""
    out = tmp_path / "out"
    out.write_text("SECRET\n")
    with out.open("a") as f:
        script = "for f in /dev/fd/1 /proc/self/fd/1; do cat $f >&2 & sleep 0.3; kill $!; done; echo done"
        done = subprocess.run(
            [*JAIL, "--", "sh", "-c", script], stdout=f, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, timeout=60
        )
    assert b"SECRET" not in done.stderr
    assert out.read_text() == "SECRET\ndone\n" or "done" in out.read_text()


def test_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIVEN", "1")
    monkeypatch.setenv("HELD_BACK", "1")
    done = jail("--env", "GIVEN", "--env", "SET=2", "--", "env")
    lines = done.stdout.split()
    assert {"GIVEN=1", "SET=2"} <= set(lines)
    assert "HELD_BACK" not in done.stdout
    assert "there is no such variable here" in jail("--env", "NOWHERE", "--", "env").stderr


def test_limits() -> None:
    done = jail("--timeout", "0.5", "--", "sleep", "60")
    assert done.returncode == 124
    assert (
        without_warning(done.stderr)
        == "hatchway: the command went over its limit of wall_seconds; give it more with --timeout\n"
    )
    assert jail("--memory", "lots", "--", "true").returncode == 2


def test_the_scratch_folder_is_as_large_as_it_is_given() -> None:
    if JailSandbox.probe().tier != "namespaces":
        pytest.skip("a quota that refuses takes the namespaces tier")
    fill = ["--tier", "namespaces", "--", "dd", "if=/dev/zero", "of=/tmp/x", "bs=1M", "count=20"]
    assert "No space left on device" in jail("--disk", "8M", *fill).stderr
    assert jail("--disk", "30M", *fill).returncode == 0


REQUESTS = """
import sys, urllib.request
for method, path in (("GET", "/"), ("POST", "/"), ("GET", "/x")):
    try:
        print(urllib.request.urlopen(urllib.request.Request(sys.argv[1] + path, method=method)).status)
    except OSError as e:
        print(e)
"""


def test_domains_with_their_methods() -> None:
    pytest.importorskip("cryptography")
    if JailSandbox.probe().tier != "namespaces" or not os.path.exists("/usr/bin/python3"):
        pytest.skip("needs namespaces and /usr/bin/python3")
    with HTTPServer(("127.0.0.1", 0), SimpleHTTPRequestHandler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        where = f"127.0.0.1:{server.server_port}"
        asked = ["--", "/usr/bin/python3", "-c", REQUESTS, f"http://{where}"]
        some = jail("--allow-domain", f"{where}=get,HEAD", *asked).stdout.splitlines()
        none = jail("--allow-domain", where, "--deny-domain", where, *asked).stdout.splitlines()
        server.shutdown()
    refused = f"HTTP Error 403: POST http://{where} is refused: only GET, HEAD is allowed there"
    assert some == ["200", refused, "HTTP Error 404: Not Found"]
    assert none == [f"HTTP Error 403: http://{where} is refused: {where} is denied"] * 3
    assert "are not HTTP methods" in jail("--allow-domain", "a.test=", *asked).stderr


def test_signals_are_handed_on() -> None:
    script = "trap 'echo caught; exit 9' INT; echo ready; while :; do sleep 0.05; done"
    running = subprocess.Popen([*JAIL, "--", "sh", "-c", script], stdout=subprocess.PIPE, text=True)
    assert running.stdout is not None
    assert running.stdout.readline() == "ready\n"
    running.send_signal(signal.SIGINT)
    assert (running.communicate(timeout=30)[0], running.returncode) == ("caught\n", 9)


def test_mistakes_say_what_to_do() -> None:
    done = jail("--", "no-such-program")
    assert "no-such-program cannot be started inside the jail" in done.stderr
    assert "hatchway jail --read DIR" in done.stderr
    assert "does not exist on the host" in jail("--workspace", "/nowhere", "--", "true").stderr
    assert "write HOST:INSIDE" in jail("--mount", "x", "--", "true").stderr
    assert "write NAME=VALUE" in jail("--env", "=1", "--", "true").stderr
    assert f"show a file with --read {__file__}" in jail("--workspace", __file__, "--", "true").stderr


class Terminal:
    """A person at a terminal."""

    def __init__(self, *words: str) -> None:
        self.pid, self._fd = pty.fork()
        if not self.pid:
            os.execv(sys.executable, [*JAIL, *words])
        self.seen = b""

    def until(self, pattern: str) -> None:
        deadline = time.monotonic() + 60
        while not self._sees(pattern):
            assert time.monotonic() < deadline, self.seen

    def type(self, text: str) -> None:
        self.seen = b""
        os.write(self._fd, text.encode())

    def end(self) -> int:
        deadline = time.monotonic() + 60
        try:
            while time.monotonic() < deadline:
                self._sees("never")
        except OSError:  # the other end is closed
            return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        finally:
            os.close(self._fd)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        raise AssertionError(self.seen)

    def _sees(self, pattern: str) -> bool:
        """Whether it is on the screen, after a while."""
        if select.select([self._fd], [], [], 0.3)[0]:
            self.seen += os.read(self._fd, 4096)
        return re.search(pattern.encode(), self.seen) is not None


@pytest.mark.skipif(not os.path.exists("/bin/bash"), reason="there is no bash")
def test_a_shell_at_a_terminal_with_job_control() -> None:
    terminal = Terminal("--", "bash", "--norc", "--noprofile")
    terminal.until(r"\$ ")
    # A program that says it runs has the terminal; before that the shell would take the key and ignore it.
    terminal.type("sh -c 'echo A; exec sleep 100'\r")
    terminal.until("A\r\n")
    terminal.type("\x03")  # Ctrl-C ends the program in front, not the shell
    terminal.until(r"\$ ")
    # Nothing is started after B: a shell stopped between the two halves of a vfork is stopped by halves.
    terminal.type("""sh -c 'sleep 100 & trap "echo C" CONT; echo B; while :; do wait; done'\r""")
    terminal.until("B\r\n")
    terminal.type("\x1a")  # Ctrl-Z
    terminal.until(r"(?s)Stopped.*\$ ")
    terminal.type("fg\r")
    terminal.until("C\r\n")
    terminal.type("\x03")
    terminal.until(r"\$ ")
    terminal.type("exit 7\r")
    assert terminal.end() == 7


def test_nothing_can_be_typed_for_the_person(tmp_path: Path) -> None:
    """TIOCSTI is refused, and the terminal is not the person's anyway."""
    if not os.path.exists("/usr/bin/python3"):
        pytest.skip("there is no /usr/bin/python3")
    code = "import fcntl; fcntl.ioctl(0, 0x5412, b'x')"
    terminal = Terminal("--", "/usr/bin/python3", "-c", code)
    assert terminal.end() == 1
    assert b"Error: [Errno 25]" in terminal.seen
