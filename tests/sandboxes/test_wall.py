"""The walls, tried from inside: each attack runs in a child process that has sealed itself first."""

from __future__ import annotations

import errno
import json
import os
import struct
import subprocess
import sys
from textwrap import dedent
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

if sys.platform != "linux":
    pytest.skip("Landlock and seccomp are of Linux", allow_module_level=True)

from hatchway.sandboxes.wall import landlock, launch, policy, seccomp, syscalls

needs_landlock = pytest.mark.skipif(not landlock.abi(), reason="this kernel has no Landlock")

TRY = """
import ctypes, json, os, socket, sys, threading
from hatchway.sandboxes.wall import landlock, launch, policy, seccomp
told = {}
def attempt(name, what):
    try:
        result = what()
        told[name] = result if isinstance(result, (int, str)) else "done"
    except OSError as e:
        told[name] = os.strerror(e.errno)
    except ValueError as e:
        told[name] = str(e)
"""


def inside(script: str, *arguments: str) -> dict[str, Any]:
    """What a child process found out after it sealed itself."""
    code = dedent(TRY) + dedent(script) + "\nsys.stdout.write(json.dumps(told))\n"
    ran = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=30)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def verdict(program: bytes, machine: int, number: int, *arguments: int) -> int:
    """What the kernel would say: a reader of the few kinds of steps the assembler writes."""
    data = struct.pack("<IIQ6Q", number, machine, 0, *arguments, *[0] * (6 - len(arguments)))
    steps = list(struct.iter_unpack("=HBBI", program))
    at = accumulator = 0
    while True:
        code, if_true, if_false, k = steps[at]
        at += 1
        match code:
            case 0x20:
                accumulator = struct.unpack_from("<I", data, k)[0]
            case 0x54:
                accumulator &= k
            case 0x05:
                at += k
            case 0x15:
                at += if_true if accumulator == k else if_false
            case 0x35:
                at += if_true if accumulator >= k else if_false
            case 0x06:
                return k
            case _:
                raise AssertionError(f"step {code:#x}")


X86_64, AARCH64, I386 = 0xC000003E, 0xC00000B7, 0x40000003
EPERM, ENOSYS = seccomp.refuse(errno.EPERM), seccomp.refuse(errno.ENOSYS)


def compute_only(machine: str) -> bytes:
    return seccomp.assemble(policy.compute_only(4242), default=policy.OTHERWISE, machine=machine)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_the_search_says_what_the_rules_say_one_by_one(data: st.DataObject) -> None:
    """The filter is a search by halves; what it must give is what the first fitting rule gives."""
    known = {name: number for name, number in syscalls.numbers("x86_64").items() if number is not None}
    tests = st.lists(st.tuples(st.integers(0, 5), st.sampled_from([1, 6, 0xFFFFFFFF]), st.integers(0, 7)), max_size=2)
    rule = st.tuples(st.sampled_from(sorted(known)), st.sampled_from([seccomp.ALLOW, EPERM, ENOSYS]), tests.map(tuple))
    rules = data.draw(st.lists(rule, max_size=120))
    program = seccomp.assemble(rules, default=seccomp.KILL, machine="x86_64")
    numbers = {number + step for name, _, _ in rules for number in [known[name]] for step in (-1, 0, 1)} | {0, 999}
    for number in sorted(number for number in numbers if number >= 0):
        arguments = data.draw(st.lists(st.integers(0, 9), min_size=6, max_size=6))
        fitting = (
            action
            for name, action, tests in rules
            if known[name] == number and all(arguments[n] & mask == value for n, mask, value in tests)
        )
        assert verdict(program, X86_64, number, *arguments) == next(fitting, seccomp.KILL)


@pytest.mark.parametrize(("machine", "code"), [("x86_64", X86_64), ("aarch64", AARCH64)])
def test_what_a_computing_program_may_call(machine: str, code: int) -> None:
    program, known = compute_only(machine), syscalls.numbers(machine)

    def said(name: str, *arguments: int) -> int:
        number = known[name]
        assert number is not None
        return verdict(program, code, number, *arguments)

    for name in ("read", "write", "mmap", "futex", "getrandom", "exit_group", "execve", "rt_sigreturn"):
        assert said(name) == seccomp.ALLOW, name
    for name in (
        "socket", "connect", "socketpair", "bind", "ptrace", "mount", "bpf", "keyctl", "io_uring_setup",
        "perf_event_open", "userfaultfd", "unshare", "setns", "kill", "process_vm_readv", "pidfd_getfd", "memfd_create",
        "unlinkat", "renameat2", "mkdirat", "ioctl", "setrlimit", "chroot", "init_module", "seccomp", "execveat",
    ):  # fmt: skip
        assert said(name) == EPERM, name
    assert said("openat", 0, 0, os.O_RDONLY | os.O_CLOEXEC) == seccomp.ALLOW
    assert [said("openat", 0, 0, flag) for flag in (os.O_WRONLY, os.O_RDWR, os.O_CREAT, os.O_TRUNC)] == [EPERM] * 4
    assert said("clone", 0x3D0F00) == seccomp.ALLOW, "a thread"
    assert said("clone", 17) == EPERM, "a process"
    assert said("clone", 0x10000000 | 17) == EPERM, "a process in a user namespace"
    assert said("clone3") == ENOSYS
    assert (said("prctl", 15), said("prctl", 1), said("prctl", 15 | 1 << 32)) == (seccomp.ALLOW, EPERM, seccomp.ALLOW)
    assert (said("prlimit64", 0, 7, 0), said("prlimit64", 0, 7, 1 << 40)) == (seccomp.ALLOW, EPERM)
    assert (said("tgkill", 4242), said("tgkill", 1)) == (seccomp.ALLOW, EPERM)


def test_numbers_of_another_machine_kill() -> None:
    program = compute_only("x86_64")
    assert verdict(program, I386, 1) == seccomp.KILL
    assert verdict(program, AARCH64, 63) == seccomp.KILL
    assert verdict(program, X86_64, 0x40000000) == seccomp.KILL, "x32 has the same machine, and other numbers"
    assert verdict(compute_only("aarch64"), X86_64, 0) == seccomp.KILL


def test_rules_are_tried_in_order_and_a_deny_list_allows_the_rest() -> None:
    rules = [
        ("openat", seccomp.KILL, ((1, 0xFFFFFFFF_FFFFFFFF, 0xDEAD_0000_BEEF), (2, 1, 1))),
        ("openat", EPERM, ((2, 0xFF, 2),)),
        *seccomp.for_each("socket ptrace", EPERM),
    ]
    program = seccomp.assemble(rules, default=seccomp.ALLOW, machine="x86_64")
    openat, socket = 257, 41
    assert verdict(program, X86_64, openat, 0, 0xDEAD_0000_BEEF, 1) == seccomp.KILL
    assert verdict(program, X86_64, openat, 0, 0x0000_BEEF, 1) == seccomp.ALLOW
    assert verdict(program, X86_64, openat, 0, 0xDEAD_0000_BEEF, 2) == EPERM
    assert [verdict(program, X86_64, number) for number in (socket, 101, 0)] == [EPERM, EPERM, seccomp.ALLOW]


def test_unknown_names_and_machines_are_errors() -> None:
    with pytest.raises(KeyError, match="opne"):
        seccomp.assemble([("opne", seccomp.ALLOW, ())], default=EPERM)
    with pytest.raises(KeyError, match="sparc"):
        seccomp.assemble([], default=EPERM, machine="sparc")
    long = [("read", seccomp.ALLOW, ((0, 1, 1),))] * 5000
    with pytest.raises(ValueError, match="the filter has 20010 steps, the kernel takes 4096"):
        seccomp.assemble(long, default=EPERM, machine="x86_64")


def test_no_two_calls_share_a_number() -> None:
    for machine in syscalls.MACHINES:
        used = [number for number in syscalls.numbers(machine).values() if number is not None]
        assert len(used) == len(set(used))
    assert syscalls.numbers("x86_64")["openat2"] == syscalls.numbers("aarch64")["openat2"] == 437
    assert (syscalls.numbers("x86_64")["open"], syscalls.numbers("aarch64")["open"]) == (2, None)


def test_a_sealed_process_computes_and_nothing_else(tmp_path: os.PathLike[str]) -> None:
    mine = os.path.join(tmp_path, "mine")
    with open(mine, "w") as f:
        f.write("secret")
    told = inside(
        """
        sys.stdout.write("")
        told["held"] = launch.seal("/bin/sh")
        attempt("socket", socket.socket)
        attempt("write", lambda: os.open(sys.argv[1], os.O_WRONLY))
        attempt("create", lambda: os.open(sys.argv[1] + "2", os.O_CREAT | os.O_WRONLY))
        attempt("remove", lambda: os.unlink(sys.argv[1]))
        attempt("fork", os.fork)
        attempt("kill the host", lambda: os.kill(os.getppid(), 0))
        attempt("raise a limit", lambda: __import__("resource").setrlimit(7, (99, 99)))
        attempt("memfd", lambda: os.memfd_create("x"))
        attempt("thread", lambda: [t := threading.Thread(target=lambda: told.update(ran=1)), t.start(), t.join()])
        attempt("read the host's memory", lambda: open(f"/proc/{os.getppid()}/mem", "rb"))
        """,
        mine,
    )
    held = told.pop("held")
    assert "seccomp" in held
    no = "Operation not permitted"
    expected = {"socket": no, "write": no, "create": no, "remove": no, "fork": no, "kill the host": no}
    expected |= {"raise a limit": "not allowed to raise maximum limit", "memfd": no, "thread": "done", "ran": 1}
    expected["read the host's memory"] = "Permission denied"
    assert {name: told[name] for name in expected} == expected
    with open(mine) as f:
        assert f.read() == "secret"


@needs_landlock
def test_landlock_lets_a_program_read_its_libraries_only(tmp_path: os.PathLike[str]) -> None:
    mine = os.path.join(tmp_path, "mine")
    with open(mine, "w") as f:
        f.write("secret")
    told = inside(
        """
        program = os.path.realpath("/bin/sh")
        launch.seal(program)
        for name, path in {"mine": sys.argv[1], "passwd": "/etc/passwd", "program": program, "own": sys.executable,
                           "environment": f"/proc/{os.getppid()}/environ"}.items():
            attempt(name, lambda: len(open(path, "rb").read(4)))
        attempt("listing", lambda: os.listdir("/"))
        attempt("another program", lambda: os.execv("/bin/cat", ["/bin/cat", "/etc/passwd"]))
        """,
        mine,
    )
    no = "Permission denied"
    expected = {"mine": no, "passwd": no, "environment": no, "program": 4, "listing": no, "another program": no}
    assert {name: told[name] for name in expected} == expected


@needs_landlock
def test_landlock_rules_are_for_what_is_beneath_a_path(tmp_path: os.PathLike[str]) -> None:
    for name in ("read", "write"):
        os.mkdir(os.path.join(tmp_path, name))
        with open(os.path.join(tmp_path, name, "file"), "w") as f:
            f.write("text")
    told = inside(
        """
        os.chdir(sys.argv[1])
        seccomp.no_new_privs()
        told["version"] = landlock.restrict([("read", landlock.READ), ("write", landlock.READ | landlock.WRITE)])
        attempt("read in read", lambda: open("read/file").read())
        attempt("write in read", lambda: open("read/file", "w"))
        attempt("read in write", lambda: open("write/file").read())
        attempt("write in write", lambda: open("write/new", "w").write("new"))
        attempt("read above", lambda: open("/etc/passwd").read())
        attempt("pipe in write", lambda: os.mkfifo("write/pipe"))
        server = socket.socket()
        attempt("bind", lambda: server.bind(("127.0.0.1", 0)))
        """,
        str(tmp_path),
    )
    no = "Permission denied"
    version = told.pop("version")
    assert version == landlock.abi()
    assert told == {
        "read in read": "text",
        "write in read": no,
        "read in write": "text",
        "write in write": 3,
        "read above": no,
        "pipe in write": no,
        "bind": no if version >= 4 else "done",
    }


@needs_landlock
def test_landlock_needs_a_path_that_is_there() -> None:
    told = inside(
        """
        seccomp.no_new_privs()
        attempt("missing", lambda: landlock.restrict([("/no/such/path", landlock.READ)]))
        attempt("still free", lambda: len(open("/etc/passwd").read(1)))
        """
    )
    assert told == {"missing": "No such file or directory", "still free": 1}


def test_a_foreign_call_kills_the_process() -> None:
    if os.uname().machine != "x86_64":
        pytest.skip("x32 is of x86_64")
    code = (
        "import ctypes; from hatchway.sandboxes.wall import seccomp; seccomp.no_new_privs();"
        "seccomp.install(seccomp.assemble([], default=seccomp.ALLOW)); ctypes.CDLL(None).syscall(0x40000000 + 39)"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=30).returncode == -31, "SIGSYS"


def test_the_command_tells_what_holds_and_runs_a_program() -> None:
    command = launch.command("/bin/echo")
    told = subprocess.run(command, capture_output=True, text=True, env={}, timeout=30)
    walls = (["Landlock"] if landlock.abi() else []) + ["seccomp"]
    assert (told.stdout.split(), told.stderr) == (walls, "")
    ran = subprocess.run([*command, "sealed"], capture_output=True, text=True, env={}, timeout=30)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "sealed\n", "")


def test_a_sealed_process_has_no_inherited_descriptor_and_no_core() -> None:
    told = inside(
        """
        import resource
        reader, writer = os.pipe()
        launch.seal("/bin/sh")
        attempt("inherited", lambda: os.fstat(writer).st_mode)
        told["core"] = resource.getrlimit(resource.RLIMIT_CORE)
        told["file size"] = resource.getrlimit(resource.RLIMIT_FSIZE)
        told["files"] = resource.getrlimit(resource.RLIMIT_NOFILE)
        """
    )
    assert told == {"inherited": "Bad file descriptor", "core": [1, 1], "file size": [0, 0], "files": [64, 64]}
