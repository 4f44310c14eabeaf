"""`hatchway conformance`: one line per check, and an exit code."""

from typing import Any

BROKEN = '''
from hatchway.sandboxes.monty import MontySandbox

class Broken(MontySandbox):
    """Says it is in a stronger tier than it is."""

    name = "broken"

    async def execute(self, code, *args, **kwargs):
        return await super().execute("'wrong'", *args, **kwargs)
'''


def test_a_sandbox_that_conforms(hatchway: Any) -> None:
    ran = hatchway("conformance", "monty", "--only", "results")
    assert ran.returncode == 0
    assert ran.stdout.splitlines()[0] == "results"
    assert "  ✓ the output is the value of the last expression" in ran.stdout
    assert ran.stdout.splitlines()[-1].startswith("monty conforms: ")


def test_one_that_does_not(hatchway: Any) -> None:
    hatchway.file("mine.py", BROKEN)
    ran = hatchway("conformance", "mine:Broken", "--only", "results.last_expression")
    assert ran.returncode == 1
    assert "  ✗ the output is the value of the last expression" in ran.stdout
    assert "      results.last_expression: " in ran.stdout
    assert ran.stdout.splitlines()[-1].startswith("mine:Broken does not conform: 0 passed, 1 failed, 0 skipped in ")


def test_the_json_object(hatchway: Any) -> None:
    told = hatchway.json("conformance", "monty", "--json", "--only", "results.last_expression")
    assert (told["sandbox"], told["conforms"], told["passed"], told["failed"]) == ("monty", True, 1, 0)
    assert [(c["id"], c["state"], c["message"]) for c in told["checks"]] == [("results.last_expression", "passed", "")]


def test_an_unknown_sandbox_and_an_unknown_check(hatchway: Any) -> None:
    assert hatchway("conformance", "montey").returncode == 2
    ran = hatchway("conformance", "monty", "--only", "nonsense")
    assert ran.returncode == 2
    assert "no check fits 'nonsense'" in ran.stderr
