"""Grants: the three input forms become one, and what makes no sense is refused."""

from pathlib import Path

import pytest

from hatchway.core.errors import InvalidSetting
from hatchway.core.grants import AllowedDomain, FileMount, as_allowed_domains, as_environment, as_file_mounts


def test_the_three_forms_of_a_mount(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "data").mkdir()
    file = tmp_path / "data" / "x.csv"
    file.write_text("1")
    monkeypatch.chdir(tmp_path)
    expected = FileMount(file.resolve(), "/input/data/x.csv")
    assert as_file_mounts(["data/x.csv"]) == (expected,)
    assert as_file_mounts([Path("data/x.csv")]) == (expected,)
    assert as_file_mounts([(file, "data/x.csv")]) == (expected,)
    assert as_file_mounts([FileMount(str(file), "data/x.csv")]) == (expected,)
    assert as_file_mounts([(file, "/srv/x.csv")]) == (FileMount(file.resolve(), "/srv/x.csv"),)


@pytest.mark.parametrize("inside", ["../x", "a/../../x", "", "/", "."])
def test_a_mount_path_stays_inside(tmp_path: Path, inside: str) -> None:
    with pytest.raises(InvalidSetting, match="must name a place inside the sandbox"):
        as_file_mounts([(tmp_path, inside)])


def test_missing_and_doubled_mounts_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match="does not exist on the host"):
        as_file_mounts([(tmp_path / "nope", "x")])
    with pytest.raises(InvalidSetting, match="two mounts share the path /input/x"):
        as_file_mounts([(tmp_path, "x"), (tmp_path, "/input/x")])
    with pytest.raises(InvalidSetting, match="an absolute host path needs a path inside"):
        as_file_mounts([str(tmp_path)])
    with pytest.raises(InvalidSetting, match="file_mounts takes a list, not one entry"):
        as_file_mounts("data")
    with pytest.raises(InvalidSetting, match="file_mounts takes a list, not one entry"):
        as_file_mounts(tmp_path)  # type: ignore[arg-type]
    with pytest.raises(InvalidSetting, match="an absolute host path needs a path inside"):
        as_file_mounts([tmp_path])
    for wrong in (("a", "b", "ro"), ("a", 1)):
        with pytest.raises(InvalidSetting, match="is no mount"):
            as_file_mounts([wrong])  # type: ignore[list-item]


def test_the_three_forms_of_a_domain() -> None:
    assert as_allowed_domains(["GitHub.com.", ("x.org", "get"), ("y.org", ["get", "head"])]) == (
        AllowedDomain("github.com"),
        AllowedDomain("x.org", ("GET",)),
        AllowedDomain("y.org", ("GET", "HEAD")),
    )


@pytest.mark.parametrize("env", [{"": "KEY"}, {"A=B": "KEY"}, {"A\0": "KEY"}, {"A": "KEY\0"}, {"A": 3}, {3: "KEY"}])
def test_what_is_no_variable_is_refused_without_its_value(env: dict[str, str]) -> None:
    with pytest.raises(InvalidSetting, match=r"^env\[") as refused:
        as_environment(env)
    assert "KEY" not in str(refused.value)


def test_an_environment() -> None:
    assert as_environment(None) == {}
    assert as_environment({"A": "", "b_1": "é=\n"}) == {"A": "", "b_1": "é=\n"}
