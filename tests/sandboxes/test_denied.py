"""Which paths a pattern denies."""

import pytest

from hatchway.sandboxes.jail.inside.denied import Denied


@pytest.mark.parametrize(
    ("pattern", "path", "is_denied"),
    [
        (".env", "/w/.env", True),
        (".env", "/w/a/b/.env", True),
        (".env", "/w/.env/inside", True),
        (".env", "/w/.envrc", False),
        (".env", "/w/x.env", False),
        (".env", "/usr/.env", False),
        ("*.pem", "/w/keys/server.pem", True),
        ("*.pem", "/w/server.pem.txt", False),
        ("[ab].key", "/w/a.key", True),
        ("[!ab].key", "/w/a.key", False),
        ("[!ab].key", "/w/c.key", True),
        ("k?y", "/w/key", True),
        ("a.b", "/w/axb", False),
        ("/w/keys", "/w/keys", True),
        ("/w/keys", "/w/keys/deep/er", True),
        ("/w/keys", "/w/keysx", False),
        ("/w/*/id", "/w/one/id", True),
        ("/w/*/id", "/w/one/two/id", False),
        ("/w/**/id", "/w/id", True),
        ("/w/**/id", "/w/one/two/id", True),
        ("odd\nname", "/w/odd\nname", True),
    ],
)
def test_a_pattern_covers(pattern: str, path: str, is_denied: bool) -> None:
    assert Denied([pattern], ["/w"]).covers(path) is is_denied


def test_what_would_leave_a_patterns_sight_cannot_be_moved() -> None:
    denied = Denied(["/w/config/keys/*.pem", "*.key", "/w/**/x/y"], ["/w"])
    assert [p for p in ("/w", "/w/config", "/w/config/keys", "/w/other", "/w/a/x", "/w/a") if denied.guards(p)] == [
        "/w", "/w/config", "/w/config/keys", "/w/a/x",
    ]  # fmt: skip


def test_without_patterns_nothing_is_denied() -> None:
    assert not Denied([], ["/w"]).covers("/w/.env")
    assert not Denied([".env"], []).covers("/w/.env")
