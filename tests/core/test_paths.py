"""Path rules: what is shown and denied, as a caller writes it."""

from pathlib import Path

import pytest

from hatchway.core.errors import InvalidSetting
from hatchway.core.paths import PathRules, path_rules


def test_places_are_real_and_the_code_starts_in_the_first_directory(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "f").write_text("")
    (tmp_path / "link").symlink_to(tmp_path / "a")
    rules = path_rules(read=[tmp_path / "f"], write=[tmp_path / "link"], deny_read=[".env"])
    assert rules == PathRules(
        read=(tmp_path / "f",), write=(tmp_path / "a",), deny_read=(".env",), workdir=tmp_path / "a"
    )
    assert rules.is_guarded
    assert not PathRules().is_guarded


@pytest.mark.parametrize(
    ("given", "kept"),
    [(".env", ".env"), ("./keys/", "./keys"), ("a//b", "a/b"), ("/x/*.pem", "/x/*.pem"), ("**/b", "**/b")],
)
def test_patterns_are_made_normal(given: str, kept: str) -> None:
    assert path_rules(deny_read=[given]).deny_read == (kept,)


def test_a_home_is_spelled_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    assert path_rules(deny_write=["~/.ssh"]).deny_write == ("/home/ada/.ssh",)


def test_bad_rules(tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match="does not exist on the host"):
        path_rules(read=[tmp_path / "none"])
    with pytest.raises(InvalidSetting, match="cannot be the whole root"):
        path_rules(write=["/"])
    with pytest.raises(InvalidSetting, match="takes a list, not one entry"):
        path_rules(deny_read=".env")
    for pattern in ("", "/", "../x", "a/../b", "a\0"):
        with pytest.raises(InvalidSetting, match="names nothing"):
            path_rules(deny_read=[pattern])
    with pytest.raises(InvalidSetting, match="lies in no place that is shown"):
        path_rules(workdir=tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(InvalidSetting, match="is not a directory"):
        path_rules(read=[tmp_path], workdir=tmp_path / "file")
