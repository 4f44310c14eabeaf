"""Programs nobody thought of: made by Hypothesis, killed somewhere, resumed; they end as without the death."""

import shutil
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

PLACES = ("before the intent", "after the intent", "tool ends", "answered")
HEAD = "import asyncio\nt = []\nasync def pair(n):\n    return await fetch_one(await fetch_one(n) % 7)\n"

leaves = st.one_of(
    st.integers(1, 9).map(lambda n: [f"t.append(write({n} + len(t)))"]),
    st.integers(1, 9).map(lambda n: [f"t.append(charge({n}))"]),
    st.integers(1, 4).map(lambda n: [f"t += await asyncio.gather(*[fetch_one(i) for i in range({n})])"]),
    st.integers(1, 3).map(lambda n: [f"t += await asyncio.gather(*[pair(i) for i in range({n})])"]),
    st.just(["try:", "    write(-1)", "except RuntimeError:", "    t.append(-1)"]),
)


def indented(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def nested(inner: st.SearchStrategy[list[str]]) -> st.SearchStrategy[list[str]]:
    block = st.lists(inner, min_size=1, max_size=3).map(lambda parts: [line for part in parts for line in part])
    return st.one_of(
        block,
        st.tuples(st.integers(1, 3), block).map(lambda of: [f"for _ in range({of[0]}):", *indented(of[1])]),
        st.tuples(block, block).map(lambda of: ["if sum(t) % 3:", *indented(of[0]), "else:", *indented(of[1])]),
    )


programs = st.recursive(leaves, nested, max_leaves=6).map(lambda lines: "\n".join([*lines, "print(len(t))", "t"]))


@pytest.fixture
def folder() -> Generator[Path]:
    """Not tmp_path, which one test has once: Hypothesis runs it many times."""
    made = Path(tempfile.mkdtemp(prefix="hatchway-programs-"))
    yield made
    shutil.rmtree(made)


def check(lab: Any, backend: dict[str, Any], folder: Path, code: str, place: str, number: int) -> None:
    with tempfile.TemporaryDirectory(dir=folder) as own:
        job = {**backend, "code": HEAD + code, "journal": f"{own}/whole.db", "effects": f"{own}/whole"}
        killed = job | {"journal": f"{own}/killed.db", "effects": f"{own}/killed", "kill": [place, number]}
        plain, death = lab.run(job, killed)
        assert plain["status"] == 0, plain
        [again] = lab.run(killed | {"kill": ["", 0], "run_id": death["run_id"]})
        assert again["told"] == plain["told"], (death, again)
        whole, both = (sorted(_effects(Path(own) / name)) for name in ("whole", "killed"))
        assert both == whole


def _effects(path: Path) -> list[str]:
    return [line.rpartition(" ")[0] for line in path.read_text().splitlines()] if path.exists() else []


SETTINGS = settings(deadline=None, suppress_health_check=list(HealthCheck), print_blob=True, database=None)


@settings(SETTINGS, max_examples=3)
@given(code=programs, place=st.sampled_from(PLACES), number=st.integers(1, 8))
def test_a_few_programs(lab: Any, backend: dict[str, Any], folder: Path, code: str, place: str, number: int) -> None:
    check(lab, backend, folder, code, place, number)


@pytest.mark.slow
@pytest.mark.timeout(400)
@settings(SETTINGS, max_examples=25)
@given(code=programs, place=st.sampled_from(PLACES), number=st.integers(1, 12))
def test_many_programs(lab: Any, backend: dict[str, Any], folder: Path, code: str, place: str, number: int) -> None:
    check(lab, backend, folder, code, place, number)
