"""What the project promises as a whole: a cheap import, a small install, a lock without addresses, a readable shape."""

import ast
import os
import re
import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import hatchway

REPO = Path(__file__).parents[1]
PROJECT = tomllib.loads((REPO / "pyproject.toml").read_text(encoding="utf-8"))
MODULES = sorted((REPO / "src").rglob("*.py"))
LOCK = (REPO / "requirements" / "dev.lock").read_text(encoding="utf-8")


def python(code: str, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """A fresh interpreter in an empty directory and an empty HOME."""
    command = [sys.executable, "-W", "error", "-c", code]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env={"HOME": str(cwd), **env}, timeout=60)


def test_importing_prints_creates_and_configures_nothing(tmp_path: Path) -> None:
    code = (
        "import sys, logging, signal, threading; before = logging.root.handlers[:], signal.getsignal(signal.SIGINT)\n"
        "import hatchway; after = logging.root.handlers[:], signal.getsignal(signal.SIGINT)\n"
        "assert before == after and threading.active_count() == 1\n"
        "assert not {'pydantic', 'asyncio', 'rich', 'click', 'anyio', 'pydantic_monty'} & set(sys.modules)"
    )
    ran = python(code, tmp_path)
    assert (ran.stdout, ran.stderr, ran.returncode) == ("", "", 0)
    assert os.listdir(tmp_path) == []


def test_every_exported_name_is_there_and_they_are_few() -> None:
    assert len(hatchway.__all__) <= 35
    assert [name for name in hatchway.__all__ if getattr(hatchway, name).__name__ != name] == []
    assert set(hatchway.__all__) <= set(dir(hatchway))
    with pytest.raises(AttributeError, match="module 'hatchway' has no attribute 'nonsense'"):
        hatchway.nonsense  # noqa: B018


def test_every_module_can_be_imported(tmp_path: Path) -> None:
    names = [
        _dotted(path) for path in MODULES if not {"guest", "inside"} & set(path.parts) and path.name != "__main__.py"
    ]
    code = "import importlib, sys\nfor name in sys.argv[1:]: importlib.import_module(name)"
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, *names], capture_output=True, text=True, cwd=tmp_path, timeout=60
    )
    assert (ran.stdout, ran.stderr, ran.returncode) == ("", "", 0)


def test_the_version_is_one() -> None:
    assert PROJECT["project"]["version"] == hatchway.__version__


def test_the_base_install_is_small() -> None:
    needed: set[str] = set()
    waiting = ["hatchway"]
    while waiting:
        name = waiting.pop()
        if name in needed:
            continue
        needed.add(name)
        try:
            requires = distribution(name).requires or []
        except PackageNotFoundError:
            continue
        found = [Requirement(line) for line in requires]
        waiting += [r.name.lower() for r in found if r.marker is None or r.marker.evaluate({"extra": ""})]
    assert len(needed) <= 25, sorted(needed)


def test_every_dependency_is_bounded_on_both_sides() -> None:
    extras = PROJECT["project"].get("optional-dependencies", {})
    groups = [PROJECT["project"]["dependencies"], *extras.values(), *PROJECT["dependency-groups"].values()]
    for requirement in [Requirement(line) for group in groups for line in group]:
        kinds = {spec.operator for spec in requirement.specifier}
        assert kinds == {">=", "<"}, str(requirement)


def test_the_lock_is_hashed_and_carries_no_address() -> None:
    assert [line for line in LOCK.splitlines() if "://" in line or "file:" in line or line.startswith("-")] == []
    pins = re.split(r"\n(?=[a-z])", LOCK)[1:]
    assert [pin for pin in pins if "==" not in pin or "--hash=sha256:" not in pin] == []


def test_the_lock_is_up_to_date() -> None:
    pinned = dict(re.findall(r"^([a-z0-9-]+)==(\S+)", LOCK, re.MULTILINE))
    extras = PROJECT["project"].get("optional-dependencies", {})
    groups = [PROJECT["project"]["dependencies"], *extras.values(), *PROJECT["dependency-groups"].values()]
    for requirement in [Requirement(line) for group in groups for line in group]:
        assert pinned[requirement.name] in requirement.specifier, f"run ./dev lock: {requirement}"


def test_ci_runs_the_command_of_the_readme_last() -> None:
    lines = (REPO / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    assert [line.split()[:2] for line in lines if line.startswith("./dev")] == [["./dev", "check"], ["./dev", "test"]]
    assert "./dev test " in (REPO / "README.md").read_text(encoding="utf-8")


def test_dev_is_readable_by_an_old_python() -> None:
    tree = ast.parse((REPO / "dev").read_text(encoding="utf-8"), feature_version=(3, 7))
    assert [n.lineno for n in ast.walk(tree) if isinstance(n, ast.NamedExpr | ast.Match)] == []


def test_dev_without_a_known_word_says_which_there_are() -> None:
    helped = subprocess.run([sys.executable, REPO / "dev"], capture_output=True, text=True, timeout=30)
    wrong = subprocess.run([sys.executable, REPO / "dev", "tset"], capture_output=True, text=True, timeout=30)
    assert (helped.returncode, wrong.returncode) == (0, 2)
    assert wrong.stdout == helped.stdout
    assert re.findall(r"^\./dev (\w+)", helped.stdout, re.MULTILINE) == [
        "demo", "test", "check", "bench", "docs", "lock",
    ]  # fmt: skip


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(REPO / "src")))
def test_a_module_is_one_thing(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    assert len(source.splitlines()) <= 400
    assert path.stem not in {"utils", "helpers", "common", "base", "manager"}
    assert re.findall(r"\b(?:TODO|FIXME|XXX)\b", source) == []
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    long = [
        f"{node.name}: {length} lines"
        for node in ast.walk(ast.parse(source))
        if isinstance(node, kinds) and (length := (node.end_lineno or 0) - node.lineno + 1) > 80
    ]
    assert long == []


def test_one_small_tree_of_errors() -> None:
    source = (REPO / "src" / "hatchway" / "core" / "errors.py").read_text(encoding="utf-8")
    names = [node.name for node in ast.parse(source).body if isinstance(node, ast.ClassDef)]
    assert len(names) <= 25
    assert [name for name in names if name not in source.partition('"""')[2].partition('"""')[0]] == []  # all are drawn


def test_every_folder_says_what_it_is_for() -> None:
    folders = [path for path in (REPO / "src" / "hatchway").iterdir() if (path / "__init__.py").exists()]
    assert [folder.name for folder in folders if not (folder / "README.md").exists()] == []


def _dotted(path: Path) -> str:
    parts = path.relative_to(REPO / "src").with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")
