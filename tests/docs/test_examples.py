"""Every example runs as a stranger would run it and prints what it promises."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.weaker_wall import without_warning

EXAMPLES = Path(__file__).parents[2] / "examples"
PRINTS = {
    "agent.py": (
        "thinks:  Which tools are there?\n"
        "asks:    pytools_list_tools\n"
        "gives:   pytools_list_tools\n"
        "action:  from mcptools.time.convert_time import Params, run …\n"
        "asks:    time.convert_time\n"
        "gives:   time.convert_time\n"
        "output:  '21:00'\n"
        "answers: It is 21:00 in Tokyo.\n"
    ),
    "agent_permissions.py": "sub: Done: 'ada is gone'\nsub: Done: 'bob is gone'\nended: rejected\n",
    "code_agent.py": (
        "model:  I will add them up.\n"
        "code:   print(sum(i * i for i in range(11) if i % 2)\n"
        "failed: SyntaxError\n"
        "model:  A bracket is missing.\n"
        "code:   print(sum(i * i for i in range(11) if i % 2))\n"
        "output: 165\n"
        "model:  The squares of the odd numbers up to 10 add up to 165.\n"
        "answer: The squares of the odd numbers up to 10 add up to 165. (2 rounds)\n"
    ),
    "hello.py": "printed: asked for 2 prices\noutput:  7.5\n",
    "parallel.py": f"lengths: {list(range(20))}\ncalls at one time: 20\n",
    "approval.py": "ada: sent 'lunch?'\nbob: sent 'lunch at noon?'\ncat: ToolDenied: on holiday\n",
    "durable.py": (
        "first process: killed\n['paid ada', 'paid bob', '2 payments, books closed']\nada 10\nbob 10\n"
    ),
    "session.py": (
        "in a session: [3.14, 12.57, 28.27]\noutside it:   NameError: name 'area' is not defined\n"
    ),
    "container.py": (
        "uid: 65534\nno network\nroot file system: Read-only file system\nfile: note.txt b'from inside'\n"
    ),
    "events.py": (
        "code says: measuring\n"
        "returned:  thermometer 20\n"
        "asked:     set_oven {'celsius': 180}\n"
        "returned:  set_oven None\n"
        "failed:    thermometer KeyError: 'moon'\n"
        "code says: never mind: ToolError: KeyError: 'moon'\n"
    ),
    "hosted.py": (
        "openai: A cake costs 5 euro.  (text(await price({item: 'cake'})))\n"
        "monty:  A cake costs 5 euro.  (print(await price('cake')))\n"
    ),
    "jailed_command.py": "no keys for me\nseen: data.csv\n",
    "mcp_tools.py": "asked:  git.git_add(['note.txt'])\noutput: 21:00\n",
    "network.py": (
        "request: GET\nrequest: DELETE\nrefused: only GET is allowed there\n"
        "request: GET\nrefused: it is not among the allowed domains\noutput:  tea, cake\n"
    ),
    "pictures.py": (
        "display-1.svg: bars of tea, cake (image/svg+xml, 119 bytes)\n"
        "display-2.svg: bars of milk (image/svg+xml, 82 bytes)\n"
    ),
    "agent_framework_agent.py": "ada stays: ToolDenied: a friend\nmallory is gone\n",
    "pydantic_ai_agent.py": "ada stays: a friend\nmallory is gone\n",
    "pull_loop.py": (
        "call:   add (20, 22)\ncall:   add ('one', 'two')\nstdout: caught: add takes numbers\noutput: 42\n"
    ),
}  # fmt: skip

NEEDS = {"container.py": "docker_engine", "agent.py": "agent_jail", "agent_permissions.py": "agent_jail"}
"""Fixtures that bring what an example needs; they skip where there is none."""


def test_every_example_is_tried() -> None:
    assert sorted(path.name for path in EXAMPLES.glob("*.py")) == sorted(PRINTS)


@pytest.mark.parametrize("name", PRINTS)
def test_an_example_prints_what_it_promises(request: pytest.FixtureRequest, name: str, tmp_path: Path) -> None:
    if name in NEEDS:
        request.getfixturevalue(NEEDS[name])
    command = [sys.executable, "-W", "error", str(EXAMPLES / name)]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=60)
    if ran.stdout.startswith("not on this machine: "):
        pytest.skip(ran.stdout)
    assert (without_warning(ran.stderr), ran.stdout, ran.returncode) == ("", PRINTS[name], 0)


@pytest.mark.parametrize("name", PRINTS)
def test_an_example_is_short(name: str) -> None:
    assert len((EXAMPLES / name).read_text(encoding="utf-8").splitlines()) < 60
