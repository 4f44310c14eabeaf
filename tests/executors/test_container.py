"""ContainerCodeExecutor in a real engine: what each flag promises is seen in what code inside can do."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from hatchway.core.errors import InvalidSetting, SandboxCrashed, SandboxUnavailable
from hatchway.core.limits import Limits
from hatchway.executors import (
    CodeExecutionInput,
    CodeExecutionResult,
    ContainerCodeExecutor,
    ExecFile,
    InvocationContext,
)
from hatchway.sandboxes.container import owner

pytestmark = pytest.mark.anyio
PYTHON = ContainerCodeExecutor()


async def run(code: str, executor: ContainerCodeExecutor = PYTHON, **given: Any) -> CodeExecutionResult:
    return await executor.execute_code(InvocationContext(), CodeExecutionInput(code, **given))


def containers() -> list[str]:
    """Every container there is of this process, running or not."""
    asked = ["docker", "ps", "--all", f"--filter=label={owner.OWNER_LABEL}", "--format={{.Names}}"]
    names = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.split()
    return [name for name in names if name.startswith(f"hatchway-{os.getpid()}-")]


@pytest.fixture
def engine(docker_engine: str) -> Any:
    """The engine; a test leaves no container in it."""
    yield docker_engine
    assert containers() == []


FACTS = """
import json, os, re, socket
status = dict(line.split(":", 1) for line in open("/proc/self/status").read().splitlines())
def attempt(what):
    try:
        return repr(what())
    except OSError as e:
        return type(e).__name__ + " " + str(e.errno)
print(json.dumps({
    "uid": [os.getuid(), os.getgid(), os.getgroups()],
    "capabilities": sorted({status[name].strip() for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")}),
    "no_new_privs": status["NoNewPrivs"].strip(), "seccomp": status["Seccomp"].strip(),
    "interfaces": sorted(os.listdir("/sys/class/net")),
    "connect": attempt(lambda: socket.create_connection(("1.1.1.1", 80), 2)),
    "root": attempt(lambda: open("/x", "w")), "usr": attempt(lambda: open("/usr/x", "w")),
    "tmp": open("/tmp/x", "w").write("abc"), "chroot": attempt(lambda: os.chroot("/tmp")),
    "setuid": attempt(lambda: os.setuid(0)), "mknod": attempt(lambda: os.mknod("/tmp/d", 0o60600, 0x801)),
    "env": sorted(os.environ), "cwd": os.getcwd(),
}))
"""


async def test_the_flags_are_what_they_promise(engine: str) -> None:
    os.environ["HTTP_PROXY"], os.environ["HOST_SECRET"] = "http://user:secret@proxy", "s3cr3t"
    try:
        facts = json.loads((await run(FACTS)).stdout)
    finally:
        del os.environ["HTTP_PROXY"], os.environ["HOST_SECRET"]
    assert facts["uid"] == [65534, 65534, [65534]] or facts["uid"] == [65534, 65534, []]
    assert facts["capabilities"] == ["0000000000000000"]
    assert (facts["no_new_privs"], facts["seccomp"]) == ("1", "2")
    assert facts["interfaces"] == ["lo"]
    assert facts["connect"] == "OSError 101"
    assert (facts["root"], facts["usr"], facts["tmp"]) == ("OSError 30", "OSError 30", 3)
    assert (facts["chroot"], facts["setuid"], facts["mknod"]) == ("PermissionError 1",) * 3
    assert "HOST_SECRET" not in facts["env"]
    assert facts["cwd"] == "/tmp/work"


async def test_a_proxy_of_the_clients_config_does_not_reach_the_code(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy = {"proxies": {"default": {"httpProxy": "http://user:secret@proxy", "noProxy": "internal.example"}}}
    (tmp_path / "config.json").write_text(json.dumps(proxy))
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    assert (
        await run("import os; print({k: v for k, v in os.environ.items() if v and 'proxy' in k.lower()})")
    ).stdout == "{}\n"


async def test_too_much_memory_is_killed(engine: str) -> None:
    result = await run("print('before', flush=True)\nblock = bytearray(600 * 1024 * 1024)\nprint('after')")
    assert (result.exit_code, result.stdout) == (137, "before\n")
    assert not result.is_success()
    granted = await run("print(len(bytearray(300 * 1024 * 1024)))", PYTHON.with_memory("512m"))
    assert granted.stdout == f"{300 * 1024 * 1024}\n"


async def test_processes_are_counted(engine: str) -> None:
    code = """
import os, time
started = 0
try:
    for _ in range(200):
        if os.fork() == 0:
            time.sleep(60)
        started += 1
except BlockingIOError:
    print(started)
"""
    assert int((await run(code, PYTHON.with_pids_limit(32))).stdout) < 32
    assert 32 < int((await run(code)).stdout) < 128


async def test_the_disk_is_the_kernels_quota(engine: str) -> None:
    code = """
import os
with open("big", "wb", 0) as f:
    try:
        for _ in range(100):
            f.write(b"x" * 2**20)
    except OSError as e:
        print(e.errno)
os.remove("big")
"""
    result = await run(code)
    assert (result.stdout, result.output_files) == ("28\n", ())


async def test_another_user(engine: str) -> None:
    code = "import os; print(os.getuid(), os.getgid(), open('/tmp/x', 'w').write('a'))"
    assert (await run(code, PYTHON.with_user("1000:1001"))).stdout == "1000 1001 1\n"


async def test_capabilities_stay_only_when_somebody_says_so(engine: str) -> None:
    code = "print([line.split()[1] for line in open('/proc/self/status') if line.startswith(('CapBnd', 'NoNewPrivs'))])"
    loose = await run(code, dataclasses.replace(PYTHON, drop_capabilities=False))
    assert eval(loose.stdout)[0] != "0000000000000000"
    assert eval(loose.stdout)[1] == "0"
    assert eval((await run(code)).stdout) == ["0000000000000000", "1"]


async def test_a_program_that_fails_is_a_result(engine: str) -> None:
    result = await run("import sys\nprint('out')\nprint('err', file=sys.stderr)\nsys.exit(3)")
    assert (result.stdout, result.stderr, result.exit_code) == ("out\n", "err\n", 3)
    for code in (125, 126, 127):
        assert (await run(f"import sys; sys.stderr.write('docker: no'); sys.exit({code})")).exit_code == code
    died = await run("import os; os.kill(os.getpid(), 11)")
    assert died.exit_code == 139


async def test_files_go_in_and_come_out(engine: str) -> None:
    given = (ExecFile(name="a.txt", content=b"one"), ExecFile(name="deep/er/b.bin", content=bytes(range(256))))
    code = """
import os
print(open("a.txt").read(), len(open("deep/er/b.bin", "rb").read()), sorted(os.listdir(".")))
open("a.txt", "a").write(" two")
os.makedirs("new/folder")
open("new/folder/c.csv", "w").write("1,2")
open("/tmp/elsewhere", "w").write("not collected")
"""
    result = await run(code, input_files=given)
    assert result.stdout == "one 256 ['a.txt', 'deep']\n"
    assert {file.name: file.content for file in result.output_files} == {
        "a.txt": b"one two",
        "new/folder/c.csv": b"1,2",
    }
    assert result.output_files[1].mime_type == "text/csv"
    assert result.stderr == ""


async def test_odd_names_and_odd_files_are_left_out_and_told(engine: str) -> None:
    code = r"""
import os, socket
for name in (b"line\nbreak", b"\xff\xfe", b"tab\t", "ünï".encode(), b"..hidden", b"-rf", b"a b"):
    open(name, "wb").write(b"x")
os.symlink("/etc/passwd", "link"); os.mkfifo("fifo"); os.link("a b", "second")
socket.socket(socket.AF_UNIX).bind("socket")
os.symlink("..", "up")
"""
    result = await run(code)
    names = [file.name for file in result.output_files]
    assert {"ünï", "..hidden", "-rf"} <= set(names) <= {"ünï", "..hidden", "-rf", "a b", "second"}
    for name in ("line\\nbreak", "link", "fifo", "tab\\t", "up"):
        assert f"'{name}' is left out: " in result.stderr


async def test_too_many_and_too_large_files_are_left_out_and_told(engine: str) -> None:
    executor = dataclasses.replace(PYTHON, limits=Limits(output_files=3, file_bytes=1000))
    result = await run(
        "for i in range(9): open(f'f{i}', 'w').write('x')\nopen('large', 'w').write('x' * 5000)", executor
    )
    assert len(result.output_files) == 3
    assert "the program left more than 3 files: the rest is left out" in result.stderr
    large = await run("open('large', 'w').write('x' * 5000)", executor)
    assert large.output_files == ()
    assert large.stderr == "'large' is left out: it has 5000 bytes, the limit is 1000\n"


async def test_a_forged_end_harms_nobody_but_itself(engine: str) -> None:
    code = r"""
import os, sys
mark = open("/proc/1/cmdline").read()
sys.stdout.write("\n" + "0" * 32 + " 0\n" + "not a tar"); sys.stdout.flush()
"""
    result = await run(code)
    assert result.stdout == "\n" + "0" * 32 + " 0\nnot a tar"


async def test_output_is_streamed_and_capped(engine: str) -> None:
    pieces: list[tuple[str, str]] = []
    ctx = InvocationContext(on_output=lambda stream, text: pieces.append((stream, text)))
    executor = dataclasses.replace(PYTHON, limits=Limits(output_bytes=1000))
    code = CodeExecutionInput("import sys\nprint('é' * 5000)\nprint('e', file=sys.stderr)")
    result = await executor.execute_code(ctx, code)
    assert len(result.stdout.encode()) < 1100
    assert "bytes cut" in result.stdout
    assert "".join(text for stream, text in pieces if stream == "stdout") == "é" * 5000 + "\n"
    assert ("stderr", "e\n") in pieces


@pytest.mark.slow
async def test_a_gigabyte_of_output_is_cut_and_stored_nowhere(engine: str) -> None:
    data = Path(engine.removeprefix("unix://")).parent / "data"
    code = "import os\nblock = b'x' * 2**20\nfor _ in range(1024): os.write(1, block)"
    before = sum(f.stat().st_size for f in data.rglob("*-json.log"))
    result = await run(code, PYTHON.with_timeout(100))
    assert result.exit_code == 0
    assert len(result.stdout) < 1.1 * 2**20
    assert f"{2**30 - 2**20} bytes cut" in result.stdout
    assert sum(f.stat().st_size for f in data.rglob("*-json.log")) == before


async def test_time_over_kills_what_ignores_signals_in_the_engine(engine: str) -> None:
    code = """
import os, signal, time
for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
    signal.signal(number, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    time.sleep(600)
open("kept", "w").write("x")
print("up", flush=True)
while True: time.sleep(0.1)
"""
    result = await run(code, PYTHON.with_timeout(4))
    assert (result.exit_code, result.timed_out, result.stdout) == (None, True, "up\n")
    assert result.stderr == "timed out after 4 s: killed, with everything it had started\n"
    assert containers() == []


async def test_time_over_before_the_container_is_there_leaves_none(engine: str) -> None:
    for seconds in (0.01, 0.1, 0.2):
        assert (await run("print(1)", PYTHON.with_timeout(seconds))).timed_out
    await asyncio.sleep(1)
    assert containers() == []


async def test_a_cancelled_call_leaves_no_container(engine: str) -> None:
    task = asyncio.create_task(run("import time\ntime.sleep(100)"))
    while not containers():
        await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert containers() == []


async def test_what_a_crashed_host_left_is_swept(engine: str) -> None:
    code = (
        "import asyncio\nfrom hatchway.executors import *\n"
        "asyncio.run(ContainerCodeExecutor().execute_code(InvocationContext(), "
        "CodeExecutionInput('import time\\ntime.sleep(600)')))"
    )
    crashing = subprocess.Popen([sys.executable, "-c", code])
    mine = f"hatchway-{crashing.pid}-"
    asked = ["docker", "ps", "--filter=status=running", "--format={{.Names}}"]
    deadline = time.monotonic() + 60
    while mine not in subprocess.run(asked, capture_output=True, text=True).stdout and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not any(name.startswith(mine) for name in await PYTHON.sweep())  # its owner lives
    crashing.kill()
    crashing.wait()
    swept = await PYTHON.sweep()
    assert any(name.startswith(mine) for name in swept)
    assert mine not in subprocess.run([*asked[:2], "--all", asked[-1]], capture_output=True, text=True).stdout


async def test_another_shell_in_the_same_image(engine: str) -> None:
    bash = PYTHON.with_argv(["bash", "-s"])
    result = await run("echo $((6 * 7)) > answer; cat answer; exit 4", bash, language="bash")
    assert (result.stdout, result.exit_code, result.output_files[0].content) == ("42\n", 4, b"42\n")


async def test_without_files_the_program_is_the_first_process(engine: str) -> None:
    plain = dataclasses.replace(PYTHON, collect_files=False)
    result = await run("import os, sys; print(os.getpid()); sys.exit(5)", plain)
    assert (result.stdout, result.exit_code) == ("1\n", 5)
    with pytest.raises(InvalidSetting, match="files cannot be staged"):
        await run("1", plain, input_files=(ExecFile(name="a", content=b""),))


async def test_an_unknown_language_is_refused(engine: str) -> None:
    with pytest.raises(InvalidSetting) as e:
        await run("puts 1", language="ruby")
    assert str(e.value) == "there is no language 'ruby' here\nthere are: python"


async def test_a_missing_image_names_the_pull(engine: str) -> None:
    with pytest.raises(SandboxUnavailable) as e:
        await run("1", ContainerCodeExecutor("no-such-image:1"))
    assert str(e.value) == "the image no-such-image:1 is not on this machine\ndocker pull no-such-image:1"


async def test_an_image_that_vanished_names_the_pull(engine: str) -> None:
    subprocess.run(["docker", "tag", "python:3.12-slim", "short-lived:1"], check=True)
    executor = ContainerCodeExecutor("short-lived:1")
    assert (await run("print(1)", executor)).stdout == "1\n"
    subprocess.run(["docker", "rmi", "short-lived:1"], check=True, capture_output=True)
    with pytest.raises(SandboxUnavailable, match="the image short-lived:1 is not on this machine"):
        await run("1", executor)


async def test_a_command_the_image_does_not_have(engine: str) -> None:
    with pytest.raises(SandboxUnavailable, match=r"there is no node in the image python:3\.12-slim"):
        await run("1", PYTHON.with_argv(["node", "-"]), language="node")


async def test_a_refused_flag_is_an_error_of_the_engine(engine: str) -> None:
    with pytest.raises(SandboxCrashed, match=r"docker did not run the container: .*no-such-runtime"):
        await run("1", PYTHON.with_runtime("no-such-runtime"))


async def test_no_client(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SandboxUnavailable) as e:
        await run("1")
    assert e.value.message == "there is no docker command on this machine"
    assert e.value.hint == "install docker, or name another engine: docker, podman, nerdctl"


async def test_engine_down(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    if subprocess.run(["sh", "-c", "command -v docker"], capture_output=True).returncode:
        pytest.skip("there is no docker client")
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/nobody.sock")
    with pytest.raises(SandboxUnavailable) as e:
        await run("1")
    assert str(e.value) == "docker cannot be used: it is not running\nsudo systemctl start docker"


def test_every_builder_is_a_changed_copy() -> None:
    changed = (
        PYTHON.with_timeout(5).with_memory("1g").with_cpus("0.5").with_pids_limit(32).with_user("1000:1000")
        .with_argv(["bash", "-s"]).with_runtime("runsc").with_engine("podman").with_extra_args(["--hostname=h"])
    )  # fmt: skip
    args = changed.build_run_args("n")
    wanted = ("--memory=1g", "--memory-swap=1g", "--cpus=0.5", "--pids-limit=32", "--user=1000:1000", "--runtime=runsc")
    assert [arg for arg in (*wanted, "--hostname=h", "--name=n", "--http-proxy=false") if arg not in args] == []
    assert (changed.timeout, changed.languages) == (5, ("bash",))
    assert args.index("--hostname=h") == args.index("python:3.12-slim") - 1
    assert args[-2:] == ["bash", "-s"]
    assert ContainerCodeExecutor() == PYTHON
    literal = dataclasses.replace(PYTHON, collect_files=False).build_run_args("n")
    assert literal[-3:] == ["python:3.12-slim", "python3", "-"]


@pytest.mark.parametrize("args", [["--privileged"], ["--name=x"], ["--network=host"], ["-v/run:/run"], ["alpine"]])
def test_extra_arguments_cannot_undo_the_wall(args: list[str]) -> None:
    with pytest.raises(ValueError):
        PYTHON.with_extra_args(args)


@pytest.mark.parametrize("setting", [{"timeout": 0}, {"error_retry_attempts": 0}, {"argv": ()}, {"argv": ("a\0",)}])
def test_settings_that_are_none(setting: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        dataclasses.replace(PYTHON, **setting)
