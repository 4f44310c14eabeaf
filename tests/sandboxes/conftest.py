"""What tests of several sandboxes share: wheels written on the spot, and jails in each tier that works here."""

from __future__ import annotations

import io
import os
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path

import pytest

from hatchway.core.errors import SandboxUnavailable
from hatchway.sandboxes.jail import JailSandbox
from hatchway.sandboxes.jail.landlock_checks import check_path_rules
from hatchway.sandboxes.packages import Packages
from hatchway.sandboxes.wall import landlock

BUILD_BACKEND = """
import pathlib
pathlib.Path({marker!r}).touch()
raise SystemExit("the build code ran")
"""


def wheel_in(folder: Path, name: str, version: str, source: str, requires: tuple[str, ...] = ()) -> None:
    """A wheel of one pure package."""
    info = f"{name}-{version}.dist-info"
    metadata = [f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}", *(f"Requires-Dist: {r}" for r in requires)]
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as wheel:
        wheel.writestr(f"{name}/__init__.py", source)
        wheel.writestr(f"{info}/METADATA", "\n".join(metadata) + "\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")


def sdist_in(folder: Path, name: str, marker: Path) -> None:
    """A source distribution whose build code leaves a file behind."""
    files = {
        "pyproject.toml": '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n',
        "backend.py": BUILD_BACKEND.format(marker=str(marker)),
        "PKG-INFO": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
    }
    with tarfile.open(folder / f"{name}-1.0.tar.gz", "w:gz") as archive:
        for path, text in files.items():
            entry = tarfile.TarInfo(f"{name}-1.0/{path}")
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))


@pytest.fixture
def open_path() -> Iterator[Path]:
    """A folder every uid gets to: pytest's own is closed to the one a sealed root runs code as."""
    with tempfile.TemporaryDirectory(prefix="hatchway-test-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.fixture
def wheelhouse(tmp_path: Path) -> Path:
    """`numbers_of` (which needs `small`), two versions of `small`, and `unbuilt`, of which there is only the source."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    wheel_in(folder, "small", "1.0", "ONE = 1\n")
    wheel_in(folder, "small", "2.0", "ONE = 'one'\n")
    wheel_in(folder, "numbers_of", "1.0", "import small\n\ndef one():\n    return small.ONE\n", ("small<2",))
    sdist_in(folder, "unbuilt", tmp_path / "built")
    return folder


@pytest.fixture
def write_wheel(wheelhouse: Path) -> Callable[..., None]:
    """Adds a wheel to the wheelhouse."""
    return partial(wheel_in, wheelhouse)


@pytest.fixture
def packages(wheelhouse: Path, open_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Packages]:
    """Packages out of the wheelhouse and of nowhere else, in a cache of the test's own."""
    folder = open_path / "cache"
    monkeypatch.setenv("UV_CACHE_DIR", str(open_path / "uv"))
    monkeypatch.setenv("UV_OFFLINE", "1")

    def wanted(*requirements: str, **settings: object) -> Packages:
        return Packages(requirements, no_index=True, find_links=(wheelhouse,), cache=folder, **settings)  # type: ignore

    return wanted


@pytest.fixture(scope="session")
def reachable_python() -> str | None:
    """For root the landlock tier runs code as a uid that must be let through to its interpreter; None: this one is."""
    real = os.path.realpath(getattr(sys, "_base_executable", sys.executable))  # not a copy in a venv
    if os.geteuid() != 0 or all(p.stat().st_mode & 1 for p in Path(real).parents):
        return None
    python = f"/usr/bin/python3.{sys.version_info.minor}"
    if not os.path.exists(python):
        pytest.skip(f"{real} is closed to other users, and there is no {python}")
    return python


@cache
def why_not(tier: str) -> str:
    """Why a tier cannot be built here; empty when it can."""
    if tier == "landlock":
        version = landlock.abi()
        return "" if version >= 6 else f"needs Landlock version 6, this kernel has {version}"
    seen = JailSandbox.probe()
    return "" if seen.tier == "namespaces" else f"{seen.reason} {seen.hint}"


@pytest.fixture(params=["namespaces", "landlock"])
def tier(request: pytest.FixtureRequest) -> str:
    """Each tier of the jail that works here."""
    if reason := why_not(request.param):
        pytest.skip(reason)
    return request.param


@pytest.fixture
def make_jail(tier: str, reachable_python: str | None) -> Callable[..., JailSandbox]:
    """Makes jails in that tier."""
    python = reachable_python if tier == "landlock" else None
    return lambda **settings: JailSandbox(tier=tier, python=python, **settings)  # type: ignore


@pytest.fixture
def path_rules_hold(tier: str) -> None:
    """Skips where nothing can be denied by name in that tier."""
    if tier == "landlock":
        try:
            check_path_rules()
        except SandboxUnavailable as e:
            pytest.skip(str(e))


@pytest.fixture
def environment_python(open_path: Path, reachable_python: str | None) -> str:
    """The interpreter of an environment that has what the tests have, in a place every uid gets to."""
    prefix, version = open_path / "environment", f"python3.{sys.version_info.minor}"
    (prefix / "bin").mkdir(parents=True)
    (prefix / "lib" / version).mkdir(parents=True)
    found = find_spec("PIL")
    assert found is not None
    assert found.origin is not None
    (prefix / "lib" / version / "site-packages").symlink_to(Path(found.origin).parents[1])
    base = reachable_python or sys._base_executable  # type: ignore[attr-defined]
    (prefix / "pyvenv.cfg").write_text(f"home = {Path(base).parent}\n")
    (prefix / "bin" / "python").symlink_to(base)
    return str(prefix / "bin" / "python")
