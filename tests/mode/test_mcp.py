"""MCP servers of other people, called from code on each sandbox, every call through the gate as `server.tool`."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from hatchway import ApprovalRequired, CodeMode, Rule
from hatchway.core.errors import CodeRuntimeError, ServerUnavailable
from hatchway.mode.mcp import mcp_servers
from hatchway.sandboxes.jail import JailSandbox
from hatchway.tools.mcp.servers import McpServers

pytestmark = pytest.mark.anyio
VENV = Path(sys.executable).parent.parent
TIME = {"command": sys.executable, "args": ["-m", "mcp_server_time", "--local-timezone", "UTC"]}
ODD = {"command": sys.executable, "args": [str(Path(__file__).parents[1] / "tools" / "mcp" / "odd_server.py")]}
NODE = Path(__file__).parents[2] / ".node" / "node_modules"
ALLOWED = (Rule("allow", "*"),)
AWAY = {"command": "no-such-program", "optional": True}


def python_server(name: str, *args: str) -> dict[str, Any]:
    return {"command": str(VENV / "bin" / f"mcp-server-{name}"), "args": list(args), "connect_timeout": 100}


def node_server(name: str, *args: str) -> dict[str, Any]:
    script = NODE / "@modelcontextprotocol" / f"server-{name}" / "dist" / "index.js"
    if not script.exists():
        pytest.skip(f"server-{name} is not installed: `.ci/packages` does it")
    return {"command": "node", "args": [str(script), *args], "connect_timeout": 100}


@asynccontextmanager
async def opened(entries: Mapping[str, Any]) -> AsyncIterator[McpServers]:
    servers, _ = mcp_servers(entries)
    async with servers:
        yield servers


async def everywhere(servers: McpServers, code: str, *, also: str = "jail") -> list[Any]:
    """What the code gives on Monty, in a process and in the jail."""
    outputs: list[Any] = []
    for sandbox in ("monty", "process", *([also] if also else [])):
        async with CodeMode(sandbox, mcp_servers=servers, rules=ALLOWED) as mode:
            outputs.append((await mode.run(code)).output)
    return outputs


def jail() -> str:
    return "jail" if JailSandbox.probe().state == "usable" else ""


def repository(folder: Path) -> Path:
    here = folder / "repo"
    here.mkdir()
    for command in (
        ["init", "-q", "-b", "main"],
        ["config", "user.email", "a@b.test"],
        ["config", "user.name", "A"],
        ["commit", "-q", "--allow-empty", "-m", "first"],
    ):
        subprocess.run(["git", *command], cwd=here, check=True, stdin=subprocess.DEVNULL)
    (here / "new.txt").write_text("one\n")
    return here


async def test_every_tool_of_the_time_server() -> None:
    code = (
        "a = time.get_current_time(timezone='UTC')\n"
        "b = time.convert_time(source_timezone='UTC', time='12:00', target_timezone='Asia/Tokyo')\n"
        "[a['timezone'], b['target']['datetime'][11:16]]"
    )
    async with opened({"time": TIME}) as servers:
        outputs = await everywhere(servers, code, also=jail())
        assert servers.connection("time").starts == 1
    assert outputs == [["UTC", "21:00"]] * len(outputs)


@pytest.mark.slow
async def test_every_tool_of_the_git_server(tmp_path: Path) -> None:
    code = (
        "repo = {repo!r}\n"
        "said = [git.git_status(repo_path=repo), git.git_diff_unstaged(repo_path=repo)]\n"
        "said += [git.git_add(repo_path=repo, files=['new.txt']), git.git_diff_staged(repo_path=repo)]\n"
        "said += [git.git_reset(repo_path=repo), git.git_add(repo_path=repo, files=['new.txt'])]\n"
        "said += [git.git_commit(repo_path=repo, message='second'), git.git_log(repo_path=repo, max_count=1)]\n"
        "said += [git.git_create_branch(repo_path=repo, branch_name='side')]\n"
        "said += [git.git_checkout(repo_path=repo, branch_name='side')]\n"
        "said += [git.git_branch(repo_path=repo, branch_type='local')]\n"
        "said += [git.git_show(repo_path=repo, revision='HEAD'), git.git_diff(repo_path=repo, target='main~1')]\n"
        "[len(said), 'new.txt' in said[0], 'second' in said[7], 'side' in said[10], '+one' in said[12]]"
    )
    async with opened({"git": python_server("git")}) as servers:
        for number, sandbox in enumerate(name for name in ("monty", "process", jail()) if name):
            folder = tmp_path / str(number)
            folder.mkdir()
            async with CodeMode(sandbox, mcp_servers=servers, rules=ALLOWED) as mode:
                result = await mode.run(code.format(repo=str(repository(folder))))
            assert result.output == [13, True, True, True, True]


@pytest.mark.slow
async def test_the_tools_of_the_filesystem_server(tmp_path: Path) -> None:
    code = (
        "here = {here!r}\n"
        "said = [fs.list_allowed_directories(), fs.create_directory(path=here + '/d')]\n"
        "said += [fs.write_file(path=here + '/d/a.txt', content='one\\ntwo')]\n"
        "said += [fs.read_text_file(path=here + '/d/a.txt')]\n"
        "said += [fs.edit_file(path=here + '/d/a.txt', edits=[{{'oldText': 'two', 'newText': 'three'}}])]\n"
        "said += [fs.read_file(path=here + '/d/a.txt', tail=1), fs.read_multiple_files(paths=[here + '/d/a.txt'])]\n"
        "said += [fs.list_directory(path=here), fs.list_directory_with_sizes(path=here)]\n"
        "said += [fs.directory_tree(path=here)]\n"
        "said += [fs.move_file(source=here + '/d/a.txt', destination=here + '/d/b.txt')]\n"
        "said += [fs.search_files(path=here, pattern='**/b.txt'), fs.get_file_info(path=here + '/d/b.txt')]\n"
        "said += [fs.read_media_file(path=here + '/d/b.txt')]\n"
        "[len(said), said[3], 'three' in str(said[5]), 'b.txt' in str(said[11])]"
    )
    async with opened({"fs": node_server("filesystem", str(tmp_path))}) as servers:
        assert len(await servers.tools()) == 14
        for sandbox in (name for name in ("monty", "process", jail()) if name):
            here = tmp_path / sandbox
            here.mkdir()
            async with CodeMode(sandbox, mcp_servers=servers, rules=ALLOWED) as mode:
                result = await mode.run(code.format(here=str(here)))
            assert result.output == [14, {"content": "one\ntwo"}, True, True]


@pytest.mark.slow
async def test_every_tool_of_the_sqlite_server(tmp_path: Path) -> None:
    command = NODE.parents[1] / ".servers" / "sqlite" / "bin" / "mcp-server-sqlite"
    if not command.exists():
        pytest.skip("mcp-server-sqlite is not installed: `.ci/packages` does it")
    code = (
        "name = {name!r}\n"
        "said = [db.create_table(query='CREATE TABLE ' + name + ' (n INTEGER)')]\n"
        "said += [db.write_query(query='INSERT INTO ' + name + ' VALUES (1), (2)')]\n"
        "said += [db.read_query(query='SELECT sum(n) AS total FROM ' + name), db.list_tables()]\n"
        "said += [db.describe_table(table_name=name), db.append_insight(insight='two rows')]\n"
        "[said[1], said[2], name in said[3], 'INTEGER' in said[4], said[5]]"
    )
    entry = {"command": str(command), "args": ["--db-path", str(tmp_path / "a.db")], "connect_timeout": 100}
    async with opened({"db": entry}) as servers:
        assert len(await servers.tools()) == 6
        for sandbox in (name for name in ("monty", "process", jail()) if name):
            async with CodeMode(sandbox, mcp_servers=servers, rules=ALLOWED) as mode:
                result = await mode.run(code.format(name=f"t_{sandbox}"))
            assert result.output == ["[{'affected_rows': 2}]", "[{'total': 3}]", True, True, "Insight added to memo"]


@pytest.mark.slow
async def test_the_fetch_server(web: Any) -> None:
    code = f"fetch.fetch(url={web.url + '/'!r}, raw=True)"
    async with opened({"fetch": python_server("fetch", "--ignore-robots-txt", "--allow-private-ips")}) as servers:
        outputs = await everywhere(servers, code, also=jail())
    assert all("hello" in output for output in outputs)


@pytest.mark.slow
async def test_the_reference_server_of_every_kind_of_content() -> None:
    code = (
        "e = everything\n"
        "said = [e.echo(message='hi'), e.get_sum(a=1, b=2), e.get_structured_content(location='Chicago')]\n"
        "said += [e.get_tiny_image(), e.get_annotated_message(messageType='error'), e.get_resource_links(count=2)]\n"
        "said += [e.get_resource_reference(resourceType='Text', resourceId=1), e.get_env()]\n"
        "said += [e.trigger_long_running_operation(duration=0.2, steps=2), e.toggle_simulated_logging()]\n"
        "said += [e.toggle_subscriber_updates(), e.toggle_simulated_logging(), e.toggle_subscriber_updates()]\n"
        "[said[0], said[1], sorted(said[2]), [p['mime_type'] for p in said[3] if isinstance(p, dict)], len(said)]"
    )
    async with opened({"everything": node_server("everything", "stdio")}) as servers:
        outputs = await everywhere(servers, code, also=jail())
    expected = ["Echo: hi", "The sum of 1 and 2 is 3.", ["conditions", "humidity", "temperature"], ["image/png"], 13]
    assert outputs == [expected] * len(outputs)


async def test_calls_wait_for_approval_under_the_servers_name(sandbox: str) -> None:
    async with CodeMode(sandbox, mcp_servers={"odd": ODD}) as mode:
        with pytest.raises(ApprovalRequired) as raised:
            await mode.run("odd.echo(text='x')")
        call = raised.value.pending[0]
        assert (call.function_name, dict(call.kwargs)) == ("odd.echo", {"text": "x"})
        assert (await mode.resume(raised.value.run_id, {call.call_id: True})).output == "x"


async def test_rules_go_by_name_arguments_and_what_a_tool_says_of_itself() -> None:
    rules = [
        Rule("allow", "odd.*", read_only=True),
        Rule("deny", "*.echo", {"text": "secret*"}, "not that"),
    ]
    async with CodeMode("monty", mcp_servers={"odd": ODD}, rules=rules) as mode:
        assert (await mode.run("odd.echo(text='x')")).output == "x"
        with pytest.raises(CodeRuntimeError, match="not that"):
            await mode.run("odd.echo(text='secret 1')")
        with pytest.raises(ApprovalRequired):
            await mode.run("odd.pid()")


async def test_a_changed_list_is_there_in_the_next_action() -> None:
    async with CodeMode("monty", mcp_servers={"odd": ODD}, rules=ALLOWED) as mode:
        await mode.run("odd.change()")
        while "odd.added" not in mode.tools:
            await mode.run("1")
        assert (await mode.run("odd.added()")).output == "added"
        assert "def added(" in mode.prompt()


async def test_calls_in_parallel_when_asked_for() -> None:
    async with CodeMode("monty", mcp_servers={"odd": ODD}, rules=ALLOWED, calls="async") as mode:
        code = "import asyncio\nawait asyncio.gather(odd.echo(text='a'), odd.echo(text='b'))"
        assert (await mode.run(code)).output == ["a", "b"]


async def test_a_server_behind_the_wall(tmp_path: Path) -> None:
    if JailSandbox.probe().tier != "namespaces":
        pytest.skip("no namespaces here")
    secret = tmp_path / "secret"
    secret.write_text("s")
    here = tmp_path / "here"
    here.mkdir()
    wall = {"read": [str(VENV), str(Path(ODD["args"][0]).parent)], "write": [str(here)]}
    reader = {"command": "sh", "args": ["-c", f"cat {secret}; exit 7"], "sandbox": wall, "optional": True}
    async with opened({"odd": {**ODD, "sandbox": wall}, "reader": reader}) as servers:
        async with CodeMode("monty", mcp_servers=servers, rules=ALLOWED) as mode:
            assert int((await mode.run("odd.pid()")).output) < 10  # a process table of its own
        assert "No such file or directory" in servers.problems["reader"]


async def test_a_server_that_cannot_be_had_is_told_when_the_mode_opens() -> None:
    with pytest.raises(ServerUnavailable, match="no-such-program"):
        async with CodeMode("monty", mcp_servers={"gone": {"command": "no-such-program"}}):
            pass


async def test_a_mode_that_does_not_open_leaves_no_server_behind(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    script = f"echo $$ > {pid}; exec {ODD['command']} {ODD['args'][0]}"
    entries = {"odd": {"command": "sh", "args": ["-c", script]}, "gone": {"command": "sleep", "args": ["600"]}}
    entries["gone"]["connect_timeout"] = 3
    with pytest.raises(ServerUnavailable, match="'gone'"):
        async with CodeMode("monty", mcp_servers=entries):
            pass
    assert not Path(f"/proc/{pid.read_text().strip()}").exists()


async def test_code_that_calls_a_server_that_is_away_is_told_so() -> None:
    async with CodeMode("monty", mcp_servers={"wiki-search": AWAY}) as mode:
        with pytest.raises(CodeRuntimeError) as failed:
            await mode.run("wiki_search.find()")
    assert failed.value.hint == (
        "the MCP server wiki_search cannot be had at the moment: do without it, or try again later"
    )
