"""Path rules in the jail: a workspace at its own path, and what is denied in it by name. The code is hostile."""

from __future__ import annotations

import asyncio
import os
import tempfile
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hatchway.core.errors import CodeRuntimeError, CodeTimeoutError, InvalidSetting
from hatchway.core.limits import Limits
from hatchway.core.paths import path_rules
from hatchway.core.results import ExecutionResult
from hatchway.sandboxes.jail import JailSandbox

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("path_rules_hold")]
MakeJail = Callable[..., JailSandbox]
SECRET = "TOP-SECRET-CANARY"


@pytest.fixture
def work() -> Iterator[Path]:
    """A workspace anybody may change: the landlock tier of root runs code as a uid of its own."""
    with tempfile.TemporaryDirectory(prefix="hatchway-test-") as made:
        folder = Path(made) / "work"
        (folder / "sub" / "deep").mkdir(parents=True)
        (folder / "keys").mkdir()
        for name in (".env", "sub/.env", "sub/deep/server.pem", "keys/id"):
            (folder / name).write_text(SECRET)
        (folder / "plain.txt").write_text("plain")
        (folder / "fixed.cfg").write_text("fixed")
        for path in (Path(made), folder, *folder.rglob("*")):
            path.chmod(0o777 if path.is_dir() else 0o666)
        yield folder


RULES: dict[str, Any] = {"deny_read": [".env", "*.pem", "keys/id"], "deny_write": ["fixed.cfg", ".git"]}


async def run(runs: Any, code: str, **settings: Any) -> ExecutionResult:
    execution = await runs.execute(textwrap.dedent(code), **settings)
    result = await execution.next()
    assert isinstance(result, ExecutionResult)
    return result


async def test_a_workspace_is_changed_at_its_own_path(make_jail: MakeJail, work: Path) -> None:
    code = """
        import os
        open('new.txt', 'w').write('new')
        os.rename('plain.txt', 'moved.txt')
        os.mkdir('made'); os.rmdir('made')
        os.getcwd(), sorted(os.listdir('.')), open('moved.txt').read()
    """
    async with make_jail(paths=path_rules(write=[work])) as jail:
        result = await run(jail, code)
    assert result.output == (str(work), [".env", "fixed.cfg", "keys", "moved.txt", "new.txt", "sub"], "plain")
    assert (work / "new.txt").read_text() == "new"
    assert result.files == ()


async def test_what_may_be_read_cannot_be_changed(make_jail: MakeJail, work: Path) -> None:
    async with make_jail(paths=path_rules(read=[work])) as jail:
        assert (await run(jail, "open('plain.txt').read()")).output == "plain"
        for code in ("open('plain.txt', 'a')", "open('new', 'w')", "import os\nos.unlink('plain.txt')"):
            with pytest.raises(CodeRuntimeError, match=r"Read-only file system|Permission denied"):
                await run(jail, code)
    assert (work / "plain.txt").read_text() == "plain"


ATTRIBUTES = """
import os
def tried(act, *arguments, **settings):
    try:
        act(*arguments, **settings)
    except OSError as e:
        return type(e).__name__
    return "done"
def changes(path):
    fd = os.open(path, os.O_PATH)
    return {
        tried(os.chmod, path, 0o707), tried(os.utime, path, (1, 2)), tried(os.chown, path, -1, os.getgid()),
        tried(os.utime, path), tried(os.lchown, path, -1, os.getgid()), tried(os.chmod, f"/proc/self/fd/{fd}", 0o707),
    }
"""


async def test_what_a_file_is_like_changes_where_the_code_may_write(make_jail: MakeJail, work: Path) -> None:
    code = ATTRIBUTES + textwrap.dedent("""
        import shutil
        os.chdir(os.environ["TMPDIR"])
        open("own", "w").close()
        os.chmod("own", 0o640)
        os.utime("own", (5, 6))
        with open("own") as f:
            os.fchmod(f.fileno(), 0o604)
            os.utime(f.fileno(), (7, 8))
        os.mkdir("below")
        os.chdir("below")
        os.chmod("../below/../own", 0o600)
        os.chdir("..")
        shutil.copy2("own", "below/copy")
        seen = os.stat("below/copy")
        oct(seen.st_mode), seen.st_mtime, tried(os.chmod, "none", 0o600), tried(os.chmod, "", 0o600)
    """)
    async with make_jail() as jail:
        result = await run(jail, code)
    assert result.output == ("0o100600", 8.0, "FileNotFoundError", "FileNotFoundError")


async def test_what_a_file_is_like_changes_nowhere_else(make_jail: MakeJail, work: Path) -> None:
    """Landlock stands before no mode: where the code has the caller's uid, it is a deputy of it that does."""
    beside = work.parent / "beside"
    beside.write_text("beside")
    for path in (beside, work / "plain.txt"):
        path.chmod(0o644)
        os.utime(path, (10, 10))
    code = ATTRIBUTES + textwrap.dedent(f"""
        places = {{{str(work)!r} + "/plain.txt"}}
        if os.path.exists({str(beside)!r}):  # the landlock tier: it can be looked up
            os.chdir(os.environ["TMPDIR"])
            os.symlink({str(beside)!r}, "link")
            os.symlink({str(work.parent)!r}, "folder")
            places |= {{{str(beside)!r}, "folder/beside", "/proc/self/root" + {str(beside)!r}}}
            places |= {{os.path.relpath({str(beside)!r}), os.path.abspath(".") + "/.." + {str(beside)!r}[4:]}}
            print(tried(os.chmod, "link", 0o707), tried(os.utime, "link", (1, 2)))
        {{answer for place in places for answer in changes(place)}} - {{"PermissionError", "OSError"}}
    """)
    async with make_jail(paths=path_rules(read=[work])) as jail:
        result = await run(jail, code)
    assert result.output == set()
    assert result.stdout in ("", "PermissionError PermissionError\n")
    for path in (beside, work / "plain.txt"):
        assert (path.stat().st_mode & 0o777, path.stat().st_mtime) == (0o644, 10)


async def test_what_is_denied_for_writing_keeps_its_mode_and_times(make_jail: MakeJail, work: Path) -> None:
    code = ATTRIBUTES + "changes('fixed.cfg'), tried(os.utime, 'plain.txt')"
    os.utime(work / "fixed.cfg", (10, 10))
    async with make_jail(paths=path_rules(write=[work], **RULES)) as jail:
        assert (await run(jail, code)).output == ({"PermissionError"}, "done")
    assert (work / "fixed.cfg").stat().st_mtime == 10


async def test_a_deputy_answers_beside_a_storm_of_questions(make_jail: MakeJail) -> None:
    code = """
        import os, time
        os.chdir(os.environ["TMPDIR"])
        open("own", "w").close()
        for _ in range(8):
            if not os.fork():
                while True:
                    try: os.chmod("own", 0o600)
                    except OSError: pass
        time.sleep(60)
    """
    async with make_jail() as jail:
        with pytest.raises(CodeTimeoutError):
            await run(jail, code, limits=Limits(wall_seconds=1))
        assert (await run(jail, "1 + 1")).output == 2


async def test_notes_on_files_beside_are_not_told(make_jail: MakeJail, work: Path) -> None:
    beside = work.parent / "beside"
    beside.write_text("beside")
    beside.chmod(0o644)
    try:
        os.setxattr(beside, "user.origin", b"elsewhere")
    except OSError:
        pytest.skip("this file system keeps no notes")
    code = f"import os\nos.getxattr({str(beside)!r}, 'user.origin')"
    async with make_jail() as jail:
        with pytest.raises(CodeRuntimeError, match=r"No such file|not supported"):
            await run(jail, code)


async def test_nothing_beside_the_workspace_is_in_sight(make_jail: MakeJail, work: Path) -> None:
    (work.parent / "beside").write_text(SECRET)
    (work / "out").symlink_to(work.parent / "beside")
    async with make_jail(paths=path_rules(write=[work])) as jail:
        for path in ("../beside", "out", str(work.parent / "beside")):
            with pytest.raises(CodeRuntimeError, match=r"No such file|Permission denied"):
                await run(jail, f"open({path!r})")


READS = {
    "open": "open('.env')",
    "deep": "open('sub/.env')",
    "glob": "open('sub/deep/server.pem')",
    "anchored": "open('keys/id')",
    "by another way": "open('sub/../sub/deep/../.env')",
    "absolute": "import os\nopen(os.getcwd() + '/.env')",
    "as a directory": "import os\nos.mkdir('d')\nos.symlink('../.env', 'd/x')\nopen('d/x')",
    "through a link": "import os\nos.symlink('.env', 'l')\nopen('l')",
    "through a link to its directory": "import os\nos.symlink('keys', 'k')\nopen('k/id')",
    "for writing": "open('.env', 'r+')",
    "renamed": "import os\nos.rename('.env', 'x')",
    "renamed with its directory": "import os\nos.rename('keys', 'k2')",
    "exchanged": (
        "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\n"
        "assert libc.renameat2(-100, b'plain.txt', -100, b'.env', 2) == 0, 'Permission denied'"
    ),
    "linked": "import os\nos.link('.env', 'x')",
    "linked by a handle": "import os\nos.link('/proc/self/cwd/.env', 'x')",
    "as a path handle": "import os\nfd = os.open('.env', os.O_PATH)\nopen(f'/proc/self/fd/{fd}')",
    "by a directory handle": "import os\nos.open('.env', 0, dir_fd=os.open('.', os.O_DIRECTORY))",
    "in another process": (
        "import os\nr, w = os.pipe()\nif os.fork() == 0:\n    try: open('.env')\n"
        "    except OSError: os.write(w, b'Permission denied')\n    os._exit(0)\nraise OSError(os.read(r, 99).decode())"
    ),
    "by a raw call": (
        "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\n"
        "assert libc.syscall(257, -100, b'.env', 0, 0) >= 0, 'Permission denied'"
    ),
    "mapped by the loader": "import ctypes\nctypes.CDLL('./.env')",
}


@pytest.mark.parametrize("name", READS)
async def test_what_is_denied_cannot_be_read(make_jail: MakeJail, work: Path, name: str) -> None:
    async with make_jail(paths=path_rules(write=[work], **RULES)) as jail:
        with pytest.raises(CodeRuntimeError, match=r"ermission denied"):
            await run(jail, READS[name])
        assert (await run(jail, "open('plain.txt').read()")).output == "plain"
    assert (work / ".env").read_text() == SECRET


WRITES = {
    "opened": "open('fixed.cfg', 'w')",
    "appended": "open('fixed.cfg', 'a')",
    "truncated": "import os\nos.truncate('fixed.cfg', 0)",
    "removed": "import os\nos.unlink('fixed.cfg')",
    "moved away": "import os\nos.rename('fixed.cfg', 'x')",
    "moved over": "import os\nos.rename('plain.txt', 'fixed.cfg')",
    "linked": "import os\nos.link('fixed.cfg', 'x')",
    "linked over": "import os\nos.link('plain.txt', '.git')",
    "made": "import os\nos.mkdir('.git')",
    "made as a link": "import os\nos.symlink('plain.txt', '.git')",
    "made as a pipe": "import os\nos.mkfifo('.git')",
    "created": "open('.git', 'x')",
    "through a link": "import os\nos.symlink('fixed.cfg', 'l')\nopen('l', 'w')",
}


@pytest.mark.parametrize("name", WRITES)
async def test_what_is_denied_cannot_be_changed(make_jail: MakeJail, work: Path, name: str) -> None:
    async with make_jail(paths=path_rules(write=[work], **RULES)) as jail:
        with pytest.raises(CodeRuntimeError, match=r"ermission denied"):
            await run(jail, WRITES[name])
        assert (await run(jail, "open('fixed.cfg').read()")).output == "fixed"
    assert not (work / ".git").exists()


BROUGHT = {
    "moved": "os.rename('ours', '.git')",
    "linked": "os.symlink('ours', '.git')",
    "exchanged": "os.mkdir('.git')\nassert libc.renameat2(-100, b'ours', -100, b'.git', 2) == 0, 'Permission denied'",
}


@pytest.mark.parametrize("name", BROUGHT)
async def test_nothing_is_brought_behind_a_denied_name(make_jail: MakeJail, work: Path, name: str) -> None:
    """The denied path is not there yet: what was prepared elsewhere must not become it by a move or a link."""
    code = "import ctypes, os\nlibc = ctypes.CDLL(None)\nos.makedirs('ours/hooks')\nopen('ours/hooks/pre', 'w')\n"
    async with make_jail(paths=path_rules(write=[work], deny_write=[".git/hooks"])) as jail:
        with pytest.raises(CodeRuntimeError, match=r"ermission denied"):
            await run(jail, code + BROUGHT[name])
    assert not (work / ".git" / "hooks").exists()


async def test_nothing_leaves_the_place_a_pattern_is_about(make_jail: MakeJail, work: Path) -> None:
    leave = "import os\nos.rename('sub', os.environ['TMPDIR'] + '/sub')"
    async with make_jail(paths=path_rules(write=[work], deny_read=["**/deep/*.pem"])) as jail:
        with pytest.raises(CodeRuntimeError, match="Invalid cross-device link"):
            await run(jail, leave)
    assert (work / "sub/deep/server.pem").read_text() == SECRET


@pytest.mark.parametrize("mode", [0o4755, 0o2755])
async def test_no_file_lends_the_rights_of_its_owner(make_jail: MakeJail, work: Path, mode: int) -> None:
    """In a place granted by root it would be root's."""
    code = f"""
        import os
        refused = []
        try: os.open('lent', os.O_CREAT | os.O_WRONLY, {mode})
        except PermissionError: refused.append('made')
        try: os.chmod('plain.txt', {mode})
        except PermissionError: refused.append('changed')
        os.chmod('plain.txt', 0o755)
        refused
    """
    async with make_jail(paths=path_rules(write=[work])) as jail:
        (work / "plain.txt").unlink()
        assert (await run(jail, "open('plain.txt', 'w').write('own')")).output == 3
        if (work / "plain.txt").stat().st_uid not in (0, os.geteuid()):
            (work / "plain.txt").unlink()  # in the landlock tier of root each guest has a uid of its own
            code = "open('plain.txt', 'w').close()\n" + textwrap.dedent(code)
        assert (await run(jail, code)).output == ["made", "changed"]
    assert not any(path.stat().st_mode & 0o6000 for path in work.rglob("*"))


async def test_files_that_appear_or_are_replaced_later_are_denied(make_jail: MakeJail, work: Path) -> None:
    rules = path_rules(write=[work], **RULES)
    async with make_jail(paths=rules) as jail, jail.session() as session:
        await run(session, "kept = 1")
        (work / "late").mkdir(0o777)
        (work / "late" / ".env").write_text(SECRET)
        (work / "other").write_text(SECRET)
        (work / "other").rename(work / ".env")  # as an editor saves
        for path in ("late/.env", ".env"):
            with pytest.raises(CodeRuntimeError, match="Permission denied"):
                await run(session, f"open({path!r})")
        assert (await run(session, "kept")).output == 1


async def test_links_swapped_in_a_race_are_never_followed(make_jail: MakeJail, work: Path) -> None:
    """One thread swaps a link between a plain and a denied file, another opens it all the time."""
    code = """
        import os, threading, time
        stop = time.monotonic() + 1.5
        def swap():
            n = 0
            while time.monotonic() < stop:
                n += 1
                os.symlink('.env' if n % 2 else 'plain.txt', 'next')
                os.rename('next', 'here')
        os.symlink('plain.txt', 'here')
        threading.Thread(target=swap).start()
        seen = set()
        while time.monotonic() < stop:
            try: seen.add(open('here').read())
            except PermissionError: seen.add('refused')
        sorted(seen)
    """
    async with make_jail(paths=path_rules(write=[work], deny_read=[".env"])) as jail:
        seen = (await run(jail, code)).output
    assert set(seen) <= {"plain", "refused"}
    assert "plain" in seen


async def test_a_path_changed_in_memory_during_the_call_opens_nothing_else(make_jail: MakeJail, work: Path) -> None:
    code = """
        import ctypes, os, threading, time
        libc = ctypes.CDLL(None)
        path = ctypes.create_string_buffer(b'plain.txt')
        stop = time.monotonic() + 1.5
        def change():
            while time.monotonic() < stop:
                path.raw = b'.env\\0' + b'x' * 5
                path.raw = b'plain.txt\\0'
        threading.Thread(target=change).start()
        seen = set()
        while time.monotonic() < stop:
            if (fd := libc.open(path, 0)) >= 0:
                seen.add(os.read(fd, 99)); os.close(fd)
        sorted(seen)
    """
    async with make_jail(paths=path_rules(write=[work], deny_read=[".env"])) as jail:
        assert set((await run(jail, code)).output) <= {b"plain"}


ON_THE_WARDEN = {
    "its memory": "import os\nopen(f'/proc/{os.getppid()}/mem', 'rb')",
    "its descriptors": "import os\nos.listdir(f'/proc/{os.getppid()}/fd')",
    "itself as the warden sees itself": "import os\nos.chdir('/proc')\nopen('self/mem', 'rb')",
    "its threads": "import os\nos.listdir(f'/proc/{os.getppid()}/task/{os.getppid()}/fd')",
    "traced": (
        "import ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)\n"
        "assert libc.ptrace(16, os.getppid(), 0, 0) == 0, 'Permission denied'"
    ),
}


@pytest.mark.parametrize("name", ON_THE_WARDEN)
async def test_the_warden_cannot_be_reached(make_jail: MakeJail, work: Path, name: str) -> None:
    async with make_jail(paths=path_rules(write=[work], deny_read=[".env"])) as jail:
        with pytest.raises(CodeRuntimeError, match=r"ermission denied|No such file"):
            await run(jail, ON_THE_WARDEN[name])


@pytest.mark.parametrize("number", ["SIGKILL", "SIGSTOP", "SIGTERM", "SIGINT"])
async def test_a_warden_that_is_killed_opens_nothing_any_more(make_jail: MakeJail, work: Path, number: str) -> None:
    code = f"""
        import os, signal, sys, time
        for n in (signal.SIGTERM, signal.SIGINT): signal.signal(n, signal.SIG_IGN)
        os.kill(os.getppid(), signal.{number})
        time.sleep(0.2)
        sys.stdout.write(open('.env').read())
    """
    async with make_jail(paths=path_rules(write=[work], deny_read=[".env"])) as jail:
        with pytest.raises(Exception) as ended:  # dead, timed out or refused: how is the kernel's choice
            await asyncio.wait_for(run(jail, code), 5)
        assert SECRET not in str(ended.value)
        assert SECRET not in getattr(ended.value, "stdout", "")
        assert (await run(jail, "open('plain.txt').read()")).output == "plain"


async def test_ordinary_work_goes_on_below_a_warden(make_jail: MakeJail, work: Path) -> None:
    code = """
        import json, os, pathlib, shutil, tempfile, threading
        os.umask(0o027)
        with tempfile.TemporaryDirectory() as scratch:
            pathlib.Path(scratch, 'x').write_text('x')
            shutil.copytree(scratch, scratch + '/copy')
        os.mkfifo(os.environ['TMPDIR'] + '/pipe')
        def write():
            with open(os.environ['TMPDIR'] + '/pipe', 'w') as f: f.write('piped')
        threading.Thread(target=write).start()
        piped = open(os.environ['TMPDIR'] + '/pipe').read()
        fd = os.open('.', os.O_TMPFILE | os.O_RDWR)
        os.write(fd, b'unnamed')
        try: os.open('plain.txt', os.O_CREAT | os.O_EXCL)
        except FileExistsError as e: exists = e.errno
        try: open('nowhere/x')
        except FileNotFoundError as e: missing = e.errno
        try: open('keys')
        except IsADirectoryError as e: directory = e.errno
        os.makedirs('a/b/c'); shutil.rmtree('a')
        piped, os.pread(fd, 9, 0), exists, missing, directory, os.fork() == -1
    """
    async with make_jail(paths=path_rules(write=[work], **RULES)) as jail:
        assert (await run(jail, code)).output == ("piped", b"unnamed", 17, 2, 21, False)


async def test_a_handle_for_a_path_alone_opens_nothing(make_jail: MakeJail, work: Path) -> None:
    code = """
        import os
        fds = [os.open(path, os.O_PATH) for path in (".", "plain.txt", ".env")]
        print(os.fstat(fds[1]).st_size, open("plain.txt", opener=lambda p, f: os.open(p, f, dir_fd=fds[0])).read())
        open(f"/proc/self/fd/{fds[2]}")
    """
    async with make_jail(paths=path_rules(write=[work], **RULES)) as jail:
        with pytest.raises(CodeRuntimeError, match=r"ermission denied") as failed:
            await run(jail, code)
    assert failed.value.stdout == "5 plain\n"


async def test_rules_hold_for_input_too(make_jail: MakeJail, work: Path) -> None:
    rules = path_rules(deny_read=[".env", str(work / "keys")])
    async with make_jail(workspace_root=work, paths=rules) as jail:
        assert (await run(jail, "open('input/plain.txt').read()")).output == "plain"
        for path in ("input/.env", "input/sub/.env", "input/keys/id"):
            with pytest.raises(CodeRuntimeError, match="Permission denied"):
                await run(jail, f"open({path!r})")


async def test_mounts_made_later_on_the_host_do_not_appear(make_jail: MakeJail, work: Path, tier: str) -> None:
    if os.geteuid() != 0 or tier != "namespaces":
        pytest.skip("only root mounts, and only namespaces have mounts of their own")
    import subprocess

    (work / "point").mkdir()
    async with make_jail(paths=path_rules(write=[work])) as jail, jail.session() as session:
        await run(session, "1")
        subprocess.run(["mount", "-t", "tmpfs", "none", work / "point"], check=True)
        try:
            (work / "point" / "x").write_text(SECRET)
            assert (await run(session, "import os\nos.listdir('point')")).output == []
        finally:
            subprocess.run(["umount", work / "point"], check=True)


async def test_places_the_jail_has_of_its_own_cannot_be_shown(make_jail: MakeJail) -> None:
    for place in ("/proc/self", "/dev/shm", "/etc/hostname", "/usr", "/tmp"):
        with pytest.raises(InvalidSetting, match="cannot be shown: the jail has its own there"):
            make_jail(paths=path_rules(read=[place]))
