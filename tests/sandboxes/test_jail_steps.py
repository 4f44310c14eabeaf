"""Calls put together beforehand: as machine code and one by one they do the same, and neither takes a surprise."""

import json
import subprocess
import sys

import pytest

from hatchway.sandboxes.jail.launch import PACKAGES

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="system calls of Linux")

BEFORE = """\
import json, os, socket, sys, types
for name, folders in json.loads(sys.argv[1]).items():
    package = sys.modules[name] = types.ModuleType(name)
    package.__path__ = folders
from _hatchway_jail import native, steps
if sys.argv[2] == "one by one":
    native.make_calls = None
elif native.make_calls is None:
    print(json.dumps("there is no machine code for this machine"))
    sys.exit()
os.closerange(3, 100)

def taken(calls):
    try:
        calls.take()
    except OSError as e:
        return [e.errno, str(e)]

"""


def _told(how: str, script: str) -> object:
    command = [sys.executable, "-I", "-S", "-c", BEFORE + script, json.dumps(PACKAGES), how]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    told = json.loads(done.stdout)
    if isinstance(told, str):
        pytest.skip(told)
    return told


WAYS = pytest.mark.parametrize("how", ["in a row", "one by one"])


@WAYS
def test_descriptors_are_known_before_they_are_opened(how: str) -> None:
    script = """\
calls = steps.Steps(3)
null = calls.open("/dev/null", os.O_RDWR)
calls.call("write", null, b"12345", 5, gives=5)
calls.call("dup3", null, 10, 0, gives=10)
calls.close(null)
print(json.dumps([taken(calls), null, calls.free, os.readlink("/proc/self/fd/10"), os.path.exists("/proc/self/fd/3")]))
"""
    assert _told(how, script) == [None, 3, 3, "/dev/null", False]


@WAYS
def test_a_refusal_ends_the_row_and_names_the_call(how: str) -> None:
    script = """\
calls = steps.Steps(3)
calls.call("close", 77)
calls.open("/dev/null", os.O_RDONLY)
print(json.dumps([taken(calls), os.path.exists("/proc/self/fd/3")]))
"""
    assert _told(how, script) == [[9, "[Errno 9] close: Bad file descriptor"], False]


@WAYS
def test_another_descriptor_than_expected_is_refused(how: str) -> None:
    script = """\
os.dup2(0, 3)
calls = steps.Steps(3)
calls.open("/dev/null", os.O_RDONLY)
print(json.dumps(taken(calls)))
"""
    assert _told(how, script) == [71, "[Errno 71] openat: Protocol error"]


@WAYS
def test_an_argument_can_be_changed_later(how: str) -> None:
    script = """\
calls = steps.Steps(3)
row = calls.call("chdir", b"/nowhere\\0")
for folder in (b"/usr\\0", b"/proc\\0"):
    calls.set(row, 0, folder)
print(json.dumps([taken(calls), os.getcwd()]))
"""
    assert _told(how, script) == [None, "/proc"]


@WAYS
def test_descriptors_are_sent(how: str) -> None:
    script = """\
ours, theirs = socket.socketpair()
os.dup2(theirs.detach(), 20)
calls = steps.Steps(5)
calls.send(20, b"hello", [0, 1])
failed = taken(calls)
data, fds, _, _ = socket.recv_fds(ours, 100, 8)
print(json.dumps([failed, data.decode(), len(fds)]))
"""
    assert _told(how, script) == [None, "hello", 2]


@WAYS
def test_no_calls_at_all(how: str) -> None:
    assert _told(how, "print(json.dumps([taken(steps.Steps(3))]))") == [None]
