"""One table: framework × sandbox × case. Real agents of the real frameworks, models that follow a script."""

import json
import os
import runpy
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hatchway.core.limits import Limits
from hatchway.sandboxes.registry import availability, make_sandbox

HERE = Path(__file__).parent
FRAMEWORKS = ["pydantic_ai", "agent_framework"]
SANDBOXES = ["monty", "process", "jail", pytest.param("container", marks=pytest.mark.slow)]
pytestmark = pytest.mark.anyio

ASKING = """
before = read("x")
try:
    done = wipe("/p7")
except RuntimeError as refused:
    done = "refused: " + str(refused).removeprefix("ToolDenied: ")
[before, done, read("y")]
"""
BOTH = "import asyncio\nawait asyncio.gather(wipe('/a'), read('x'), wipe('/b'))"


@pytest.fixture(params=FRAMEWORKS)
def framework(request: pytest.FixtureRequest) -> dict[str, Any]:
    """The driver of a framework."""
    path = HERE / f"{request.param}_driver.py"
    return {**runpy.run_path(str(path)), "path": path}


@pytest.fixture(params=SANDBOXES)
def sandbox(request: pytest.FixtureRequest) -> str:
    """A sandbox that works here."""
    if request.param == "container":
        request.getfixturevalue("docker_engine")
    found = availability(request.param)
    if found.state != "usable":
        pytest.skip(f"{request.param}: {found.reason}")
    return request.param


@pytest.fixture(autouse=True)
def effects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """What the tools did, in order, also in other processes."""
    monkeypatch.setenv("HATCHWAY_TEST_EFFECTS", str(tmp_path / "effects"))
    monkeypatch.setenv("HATCHWAY_KEY_FILE", str(tmp_path / "key"))
    return runpy.run_path(str(HERE / "effects.py"))["effects"]


def elsewhere(framework: dict[str, Any], *, dies: bool = False, **given: Any) -> dict[str, Any]:
    """Go on in a process of its own, which may be killed in the middle of the approved call."""
    done = subprocess.run(
        [sys.executable, str(framework["path"])],
        input=json.dumps(given), capture_output=True, text=True, timeout=100, check=False,
        env={**os.environ, **({"HATCHWAY_TEST_DIES": "1"} if dies else {})},
    )  # fmt: skip
    assert done.returncode == (-signal.SIGKILL if dies else 0), done.stderr
    return {} if dies else json.loads(done.stdout.splitlines()[-1])


async def test_plain(framework: dict[str, Any], sandbox: str) -> None:
    end = await framework["act"](sandbox, "print('adding up')\nsum(range(5))")
    assert not end["failed"]
    assert "adding up" in end["saw"]
    assert "10" in end["saw"]


@pytest.mark.parametrize(
    "code",
    ["[add(1), add(2, 5), add(a=3, b=4)]", "[await add(1), await add(2, 5), await add(a=3, b=4)]"],
    ids=["called", "awaited"],
)
async def test_tools(framework: dict[str, Any], sandbox: str, code: str, effects: Any) -> None:
    end = await framework["act"](sandbox, code)
    assert json.loads(end["saw"]) == [3, 7, 7]
    assert effects() == ["add 1 2", "add 2 5", "add 3 4"]


async def test_parallel(framework: dict[str, Any], sandbox: str, effects: Any) -> None:
    end = await framework["act"](sandbox, "import asyncio\nawait asyncio.gather(*[read(str(i)) for i in range(20)])")
    assert json.loads(end["saw"]) == [f"value of {i}" for i in range(20)]
    assert sorted(effects()) == sorted(f"read {i}" for i in range(20))


async def test_error(framework: dict[str, Any], sandbox: str) -> None:
    end = await framework["act"](sandbox, "print('so far')\nadd(1)\n1 / 0")
    assert end["failed"]
    for told in ("so far", "ZeroDivisionError", "line 3", "add(a=1)"):
        assert told in end["saw"]


async def test_values_that_cannot_be_written_as_they_are(framework: dict[str, Any], sandbox: str) -> None:
    """Numbers longer than Python writes, halves of characters: told all the same, also when somebody must approve."""
    odd = "[2 ** 20000, '\\ud800', float('nan'), {(1, 2): b'\\xff'}]"
    end = await framework["act"](sandbox, odd)
    assert not end["failed"]
    json.loads(end["saw"].encode().decode(), parse_int=str)
    end = await framework["act"](sandbox, "add(1)\nboom([2 ** 20000, '\\ud800'])")
    assert end["failed"]
    end["saw"].encode()
    paused = await framework["act"](sandbox, "wipe(str(2 ** 20000 % 10 ** 20) + '\\ud800')")
    json.dumps(paused["state"]).encode()
    assert len(paused["waiting"]) == 1


async def test_failing_tool_can_be_caught(framework: dict[str, Any], sandbox: str) -> None:
    end = await framework["act"](
        sandbox, "try:\n    boom()\nexcept RuntimeError as e:\n    told = str(e)\ntold.removeprefix('ToolError: ')"
    )
    assert "LookupError: nothing there" in end["saw"]


async def test_wrong_arguments_are_told(framework: dict[str, Any], sandbox: str, effects: Any) -> None:
    end = await framework["act"](sandbox, "add('one')")
    assert end["failed"]
    assert effects() == []


async def test_time_limit(framework: dict[str, Any], sandbox: str) -> None:
    end = await framework["act"](sandbox, "print('begun')\nwhile True: pass", limits=Limits(wall_seconds=1))
    assert end["failed"]
    assert "begun" in end["saw"]
    assert "1 s" in end["saw"]


async def test_call_limit(framework: dict[str, Any], sandbox: str, effects: Any) -> None:
    end = await framework["act"](sandbox, "[add(i) for i in range(9)]", limits=Limits(calls=3))
    assert end["failed"]
    assert len(effects()) == 3


async def test_files(framework: dict[str, Any], sandbox: str, tmp_path: Path) -> None:
    if sandbox == "process":
        pytest.skip("process: no files are granted where there is no wall")
    (tmp_path / "report.csv").write_text("3,4")
    mounts = [(tmp_path / "report.csv", "report.csv")]
    code = "from pathlib import Path\ntext = Path('input/report.csv').read_text()\n"
    if sandbox != "monty":  # it has nowhere to write
        code += "Path('output/copy.csv').write_text(text)\n"
    if framework["path"].name.startswith("agent_framework"):
        end = await framework["act"](sandbox, code + "text", file_mounts=mounts)
    else:
        async with make_sandbox(sandbox, file_mounts=mounts) as wall:
            end = await framework["act"](wall, code + "text")
    assert "3,4" in end["saw"]
    assert sandbox == "monty" or end["files"] == ["copy.csv"]


ANSWERS = {
    "allow": (["value of x", "wiped /p7", "value of y"], ["read x", "wipe /p7", "read y"]),
    "deny": (["value of x", "refused: not today", "value of y"], ["read x", "read y"]),
    "edit": (["value of x", "wiped /other", "value of y"], ["read x", "wipe /other", "read y"]),
}


@pytest.mark.parametrize("answer", ANSWERS)
async def test_approval_and_resume(
    framework: dict[str, Any], sandbox: str, answer: str, tmp_path: Path, effects: Any
) -> None:
    journal = str(tmp_path / "journal.db")
    paused = await framework["act"](sandbox, ASKING, journal=journal)
    assert [tuple(call) for call in paused["waiting"]] == [("wipe", {"path": "/p7"})]
    assert effects() == ["read x"]
    state = json.loads(json.dumps(paused["state"]))
    given = {"sandbox": sandbox, "code": ASKING, "state": state, "journal": journal}
    if answer == "allow":
        end = elsewhere(framework, **given, answer=answer)
    else:  # another agent and another sandbox; the process was killed once, that is enough
        end = await framework["go_on"](**given, answer=answer)
    saw, did = ANSWERS[answer]
    assert json.loads(end["saw"]) == saw
    assert effects() == did
    again = await framework["go_on"](**given, answer="allow")  # the same once more: nothing runs, it is told again
    assert json.loads(again["saw"]) == saw
    assert effects() == did


async def test_parallel_calls_wait_together(
    framework: dict[str, Any], sandbox: str, tmp_path: Path, effects: Any
) -> None:
    journal = str(tmp_path / "journal.db")
    paused = await framework["act"](sandbox, BOTH, journal=journal)
    assert sorted(call[1]["path"] for call in paused["waiting"]) == ["/a", "/b"]
    assert effects() == ["read x"]
    given = {"sandbox": sandbox, "code": BOTH, "state": json.loads(json.dumps(paused["state"])), "journal": journal}
    end = await framework["go_on"](**given, answer="allow")
    assert json.loads(end["saw"]) == ["wiped /a", "value of x", "wiped /b"]
    assert sorted(effects()) == ["read x", "wipe /a", "wipe /b"]


@pytest.mark.parametrize(
    ("settled", "gave", "did"),
    [
        ("ran", "was wiped", ["read x", "wipe /p7", "read y"]),
        ("not_run", "wiped /p7", ["read x", "wipe /p7", "wipe /p7", "read y"]),
    ],
)
async def test_death_inside_an_approved_call(
    framework: dict[str, Any], sandbox: str, settled: str, gave: str, did: list[str], tmp_path: Path, effects: Any
) -> None:
    """Nobody knows whether it ran: a person looks, and says so. An approval alone never runs it a second time."""
    journal = str(tmp_path / "journal.db")
    paused = await framework["act"](sandbox, ASKING, journal=journal)
    assert not paused["in_doubt"]
    given = {"sandbox": sandbox, "code": ASKING, "journal": journal}
    elsewhere(framework, dies=True, **given, state=paused["state"], answer="allow")
    assert effects() == ["read x", "wipe /p7"]
    doubtful = await framework["go_on"](**given, state=paused["state"], answer="allow")
    assert doubtful["in_doubt"]
    assert doubtful["waiting"] == [("wipe", {"path": "/p7"})]
    assert effects() == ["read x", "wipe /p7"]
    end = await framework["go_on"](**given, state=json.loads(json.dumps(doubtful["state"])), answer=settled)
    assert json.loads(end["saw"]) == ["value of x", gave, "value of y"]
    assert effects() == did
