"""The page on security says what the tests of attacks hold."""

import json
import runpy
from pathlib import Path

REPO = Path(__file__).parents[2]
TABLE = runpy.run_path(str(REPO / "docs" / "attack_table.py"))


def test_the_table_of_attacks_is_up_to_date() -> None:
    page = (REPO / "docs" / "security.md").read_text(encoding="utf-8")
    assert TABLE["rendered"](page) == page, "run ./dev docs"


def test_every_attack_is_in_the_table() -> None:
    folder = REPO / "tests" / "sandboxes" / "attacks"
    attacks = [a for name in ("attacks.json", "more.json") for a in json.loads((folder / name).read_text())]
    assert {a["category"] for a in attacks} == set(TABLE["KINDS"])
