"""Writes the table of attacks into docs/security.md from the list that the tests run; a test checks that it is true."""

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

PAGE = Path(__file__).with_name("security.md")
ATTACKS = Path(__file__).parents[1] / "tests" / "sandboxes" / "attacks"
BLOCK = re.compile(r"(<!-- attacks -->\n).*?(<!-- end -->)", re.DOTALL)
KINDS = {
    "fs": "files",
    "net": "network",
    "proc": "processes, environment, memory",
    "kernel": "system calls",
    "pyjail": "the interpreter's innards",
    "dos": "time, memory, disk, descriptors",
    "protocol": "the channel",
    "value": "values that lie",
}
AT_THE_HOST = ("protocol", "value")
WORDS = {
    "blocked": "refused",
    "contained": "held",
    "ended": "held",
    "error": "ended",
    "timeout": "killed",
    "died": "killed",
}


def rendered(page: str) -> str:
    """The page with the table as the list says today."""
    attacks = [a for name in ("attacks.json", "more.json") for a in json.loads((ATTACKS / name).read_text("utf-8"))]
    head = "| attacks on | how many | `jail`, namespaces | `jail`, landlock | `monty` | `process` |"
    rows = [_row(kind, [a for a in attacks if a["category"] == kind]) for kind in KINDS]
    table = "\n".join([head, "|---|---:|---|---|---|---|", *rows])
    return BLOCK.sub(lambda m: f"{m[1]}{table}\n{m[2]}", page)


def _row(kind: str, attacks: list[dict[str, Any]]) -> str:
    tiers = [_told(Counter(_word(a["outcomes"][tier][0]) for a in attacks)) for tier in ("namespaces", "landlock")]
    process = "all held" if kind in AT_THE_HOST else "not run: no wall"
    return f"| {KINDS[kind]} | {len(attacks)} | {tiers[0]} | {tiers[1]} | all held | {process} |"


def _word(outcome: str) -> str:
    return WORDS.get(outcome, "killed")  # else over a limit


def _told(counted: Counter[str]) -> str:
    return ", ".join(f"{count} {word}" for word, count in counted.most_common())


if __name__ == "__main__":
    PAGE.write_text(rendered(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
