"""Any command behind the wall, in both tiers: its streams, its end, what it sees and what it cannot do."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hatchway.core.errors import InvalidSetting, SandboxCrashed, SandboxUnavailable
from hatchway.core.limits import MIB, Limits
from hatchway.core.paths import path_rules
from hatchway.sandboxes.jail import CommandJail, CommandResult, run_command
from hatchway.sandboxes.process.inside import tree

pytestmark = pytest.mark.anyio
SECRET = "TOP-SECRET-CANARY"

if not shutil.which("sh"):
    pytest.skip("there is no sh", allow_module_level=True)


@pytest.fixture
def make(tier: Any) -> Callable[..., CommandJail]:
    return lambda **settings: CommandJail(tier=tier, **settings)


@pytest.fixture
async def jail(make: Callable[..., CommandJail]) -> AsyncIterator[CommandJail]:
    async with make(env={"GREETING": "hello"}) as made:
        yield made


@pytest.fixture
def work() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="hatchway-test-") as made:
        folder = Path(made)
        (folder / ".env").write_text(SECRET)
        (folder / "plain.txt").write_text("plain")
        folder.chmod(0o777)
        yield folder


async def sh(jail: CommandJail, script: str, data: bytes = b"", **limits: Any) -> CommandResult:
    return await jail.run(["sh", "-c", script], data, **({"limits": Limits(**limits)} if limits else {}))


async def test_streams_and_exit_code(jail: CommandJail, tier: str) -> None:
    done = await sh(jail, "cat; echo out; echo err >&2; exit 3", b"in\n")
    assert (done.exit_code, done.stdout, done.stderr) == (3, b"in\nout\n", b"err\n")
    assert (done.limit, done.tier) == ("", tier)


async def test_a_server_is_spoken_with_and_ended(jail: CommandJail) -> None:
    server = await jail.start(["cat"])
    assert server.stdin is not None
    assert server.stdout is not None
    for line in (b"one\n", b"x" * 200_000 + b"\n"):
        server.stdin.write(line)
        await server.stdin.drain()
        assert await server.stdout.readexactly(len(line)) == line
    assert server.returncode is None
    server.stdin.close()
    assert await asyncio.wait_for(server.wait(), 10) == 0


async def test_signals(jail: CommandJail) -> None:
    server = await jail.start(["sh", "-c", "trap 'echo caught; exit 5' TERM; echo ready; while :; do sleep 0.05; done"])
    assert server.stdout is not None
    assert await server.stdout.readline() == b"ready\n"
    server.terminate()
    assert await server.stdout.readline() == b"caught\n"
    assert await server.wait() == 5
    stubborn = await jail.start(["sh", "-c", "trap '' TERM INT; echo ready; sleep 60"])
    assert stubborn.stdout is not None
    assert await stubborn.stdout.readline() == b"ready\n"
    stubborn.send_signal(signal.SIGINT)
    stubborn.kill()
    stubborn.kill()
    assert await stubborn.wait() == -signal.SIGKILL
    stubborn.send_signal(signal.SIGTERM)


async def test_the_environment_is_empty_but_for_what_is_given(
    jail: CommandJail, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOST_SECRET", SECRET)
    done = await jail.run(["env"], env={"MORE": "1"})
    names = {line.split("=")[0] for line in done.stdout.decode().splitlines()}
    assert names == {"HOME", "TMPDIR", "LANG", "PATH", "GREETING", "MORE"}
    assert SECRET.encode() not in (await sh(jail, "cat /proc/*/environ")).stdout


async def test_what_it_sees_of_the_host(jail: CommandJail) -> None:
    for path in ("/etc/shadow", "/root", "/home", "/var/log", str(Path(__file__))):
        done = await sh(jail, f"ls {path} && cat {path}")
        assert done.exit_code, path
    for path in ("/usr/bin/pwned", "/etc/pwned", "/pwned", "/bin/pwned"):
        assert (await sh(jail, f"echo x > {path}")).exit_code
        assert not os.path.exists(path)


@pytest.mark.usefixtures("path_rules_hold")
async def test_a_workspace_to_read_or_to_change(make: Callable[..., CommandJail], work: Path) -> None:
    script = "cat plain.txt; echo new > new.txt; cat .env; pwd"
    async with make(paths=path_rules(write=[work], deny_read=[".env"])) as jail:
        done = await sh(jail, script)
    assert done.stdout.decode().split() == ["plain", str(work)] or done.stdout == f"plain{work}\n".encode()
    assert SECRET.encode() not in done.stdout
    assert (work / "new.txt").read_text() == "new\n"
    async with make(paths=path_rules(read=[work])) as jail:
        assert (await sh(jail, "rm plain.txt")).exit_code
        assert (await sh(jail, "cat .env")).stdout == SECRET.encode()


async def test_mounts(make: Callable[..., CommandJail], work: Path) -> None:
    (work / "plain.txt").chmod(0o644)
    async with make(file_mounts=[(work / "plain.txt", "data/x.txt")]) as jail:
        assert (await sh(jail, "cat input/data/x.txt")).stdout == b"plain"


@pytest.mark.parametrize(
    ("limit", "script", "limits"),
    [
        ("wall_seconds", "sleep 60", {"wall_seconds": 0.3}),
        ("wall_seconds", "trap '' TERM; (setsid sleep 60 &); while :; do :; done", {"wall_seconds": 0.3}),
        ("cpu_seconds", "while :; do :; done", {"cpu_seconds": 1}),
        ("memory_bytes", "exec python3 -c 'x = []\nwhile 1: x.append(bytes(1 << 20))'", {"memory_bytes": 96 * MIB}),
        ("file_bytes", "exec dd if=/dev/zero of=f bs=1M count=5", {"file_bytes": MIB}),
    ],
)
async def test_limits(jail: CommandJail, limit: str, script: str, limits: dict[str, Any]) -> None:
    if "python3" in script and not os.path.exists("/usr/bin/python3"):
        pytest.skip("there is no /usr/bin/python3")
    done = await asyncio.wait_for(sh(jail, script, **limits), 30)
    assert (done.limit, done.exit_code < 0) == (limit, True)


async def test_limits_it_is_told_of_by_the_system(jail: CommandJail) -> None:
    if not os.path.exists("/usr/bin/python3"):
        pytest.skip("there is no /usr/bin/python3")
    opens = "import os\nwhile True: os.dup(1)"
    done = await jail.run(["/usr/bin/python3", "-c", opens], limits=Limits(open_files=32))
    assert done.stderr.endswith(b"OSError: [Errno 24] Too many open files\n")
    forks = "import os, time\nfor _ in range(99):\n    os.fork() or time.sleep(9)"
    done = await jail.run(["/usr/bin/python3", "-c", forks], limits=Limits(processes=12, wall_seconds=20))
    assert b"Resource temporarily unavailable" in done.stderr or done.limit == "processes"


async def test_there_is_no_network(jail: CommandJail) -> None:
    if not os.path.exists("/usr/bin/python3"):
        pytest.skip("there is no /usr/bin/python3")
    code = "import socket\nsocket.create_connection(('127.0.0.1', 9))"
    done = await jail.run(["/usr/bin/python3", "-c", code])
    assert b"PermissionError: [Errno 1] Operation not permitted" in done.stderr


@pytest.mark.parametrize(
    "code",
    [
        pytest.param("fcntl.ioctl(0, 0x5412, b'x')", id="TIOCSTI types for the user"),
        pytest.param("fcntl.ioctl(0, 0x541C, bytes(8))", id="TIOCLINUX pastes on the console"),
        pytest.param("ctypes.CDLL(None).ptrace(0, 0, 0, 0) and 1/0", id="ptrace"),
        pytest.param("libc.syscall(310, os.getppid(), 0, 0, 0, 0, 0) < 0 and 1/0", id="process_vm_readv"),
        pytest.param("libc.unshare(0x10000000) and 1/0", id="a user namespace"),
        pytest.param("libc.mount(b'none', b'/tmp', b'tmpfs', 0, None) and 1/0", id="mount"),
        pytest.param("os.setuid(0)", id="setuid 0"),
        pytest.param("open('/proc/sys/kernel/core_pattern', 'r+')", id="core_pattern opened, never written"),
        pytest.param("open('/proc/1/environ').read()", id="environment of init"),
        pytest.param("os.mknod('d', 0o20666, os.makedev(1, 1))", id="a device"),
        pytest.param("os.kill(os.getppid(), 9) or os.kill(1, 9) or 1/0", id="kills who started it"),
    ],
)
async def test_attacks_by_a_command(jail: CommandJail, code: str) -> None:
    if not os.path.exists("/usr/bin/python3"):
        pytest.skip("there is no /usr/bin/python3")
    prologue = "import ctypes, fcntl, os\nlibc = ctypes.CDLL(None, use_errno=True)\n"
    done = await jail.run(["/usr/bin/python3", "-c", f"{prologue}{code}\nprint('did it')"])
    assert (done.exit_code != 0, b"did it" in done.stdout) == (True, False)
    assert (await sh(jail, "echo on")).stdout == b"on\n"


async def test_setuid_programs_gain_nothing(jail: CommandJail) -> None:
    found = next((p for p in ("/usr/bin/su", "/usr/bin/passwd", "/usr/bin/mount") if os.path.exists(p)), None)
    if found is None or not os.stat(found).st_mode & 0o4000:
        pytest.skip("there is no setuid program in /usr/bin")
    done = await sh(jail, f"ls -n {found} && {found} --help >/dev/null; grep -E 'NoNewPrivs|CapEff' /proc/self/status")
    assert b"NoNewPrivs:\t0" not in done.stdout
    assert (await sh(jail, "id -u")).stdout.strip() != b"0"


async def test_no_descriptor_of_the_host_comes_along(jail: CommandJail, tmp_path: Path) -> None:
    held = os.open(tmp_path, os.O_RDONLY)
    os.set_inheritable(held, True)
    try:
        done = await sh(jail, "for n in 3 4 5 6 7 8 9 10 11 12 13 14 15 20 30; do [ -e /dev/fd/$n ] && echo $n; done")
    finally:
        os.close(held)
    assert done.stdout == b""


async def test_bad_commands(jail: CommandJail) -> None:
    with pytest.raises(InvalidSetting) as missing:
        await jail.run(["no-such-program"])
    assert missing.value.message == "no-such-program cannot be started inside the jail: No such file or directory"
    assert "--read DIR" in missing.value.hint
    for argv in ([], "ls -l"):
        with pytest.raises(InvalidSetting, match="a command is a list"):
            await jail.run(argv)  # type: ignore
    assert (await sh(jail, "echo on")).stdout == b"on\n"


async def test_a_program_elsewhere_is_shown_by_its_directory(make: Callable[..., CommandJail], work: Path) -> None:
    program = work / "tool"
    program.write_text("#!/bin/sh\necho tool\n")
    program.chmod(0o755)
    async with make() as jail:
        with pytest.raises(InvalidSetting, match="cannot be started inside the jail"):
            await jail.run([str(program)])
    async with make(paths=path_rules(read=[work])) as jail:
        assert (await jail.run([str(program)])).stdout == b"tool\n"


async def test_many_at_once_and_closing_leaves_nothing(make: Callable[..., CommandJail]) -> None:
    before = set(tree.descendants(os.getpid()))
    async with make() as jail:
        done = await asyncio.gather(*(sh(jail, f"echo {n}") for n in range(10)))
        assert [d.stdout for d in done] == [b"%d\n" % n for n in range(10)]
        running = [await jail.start(["sh", "-c", "(setsid sleep 60 &) ; sleep 60"]) for _ in range(3)]
    assert [r.returncode for r in running] == [-9] * 3
    assert set(tree.descendants(os.getpid())) <= before


async def test_commands_that_end_at_once_are_no_crash_and_leave_nothing(jail: CommandJail) -> None:
    await jail.run(["true"])
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(10):
        done = await asyncio.gather(*(jail.run(["true"]) for _ in range(8)))
        assert {each.exit_code for each in done} == {0}
    await asyncio.sleep(0.1)
    assert len(os.listdir("/proc/self/fd")) <= before + 32  # slots of eight at once are kept, with a few files each


async def test_a_cancelled_run_kills_the_command(jail: CommandJail) -> None:
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(sh(jail, "sleep 60"), 0.3)
    assert (await sh(jail, "echo on")).stdout == b"on\n"


async def test_a_wall_that_dies_is_no_exit_of_the_command(jail: CommandJail) -> None:
    command = await jail.start(["sleep", "60"])
    below = tree.children(os.getpid())
    wall = [p for p in below if any(w in _line(p) for w in (b"keeper.py", b"landlocked.py"))]
    os.kill(wall[-1], signal.SIGKILL)
    with pytest.raises(SandboxCrashed, match="the process that supervises the command died"):
        await command.wait()
    assert (await sh(jail, "echo on")).stdout == b"on\n"


async def test_one_command_in_a_jail_of_its_own(tier: Any) -> None:
    done = await run_command(["sh", "-c", "cat"], b"in", tier=tier)
    assert (done.exit_code, done.stdout) == (0, b"in")


async def test_the_landlock_tier_has_no_network_to_give() -> None:
    pytest.importorskip("cryptography")
    async with CommandJail(tier="landlock", allowed_domains=["example.com"]) as jail:
        with pytest.raises(SandboxUnavailable, match="has no network to give"):
            await jail.run(["true"])


async def test_the_network_granted_is_behind_the_proxy(tier: Any) -> None:
    pytest.importorskip("cryptography")
    if tier != "namespaces" or not os.path.exists("/usr/bin/python3"):
        pytest.skip("needs namespaces and /usr/bin/python3")
    code = """if True:
        import urllib.request, urllib.error
        try: urllib.request.urlopen('http://refused.example/')
        except urllib.error.HTTPError as e: print(e.code, e.read().decode())
    """
    async with CommandJail(tier=tier, allowed_domains=["granted.example"]) as jail:
        done = await jail.run(["/usr/bin/python3", "-c", code])
    assert done.stdout.startswith(b"403 "), done
    assert b"refused.example" in done.stdout


def _line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
