"""Rules: what a pattern matches, and which rule counts."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hatchway.core.calls import FunctionCall
from hatchway.core.errors import InvalidSetting
from hatchway.gate.approval import Verdict, verdict
from hatchway.gate.rules import Rule, strongest


def call(name: str, **kwargs: Any) -> FunctionCall:
    return FunctionCall(call_id="1", function_name=name, kwargs=kwargs)


def said(rules: list[Rule], one: FunctionCall, approval: Any = "allow", asks_all: bool = False) -> Verdict:
    return verdict(approval, rules, one.function_name, one.kwargs, asks_all=asks_all)


def test_args_of_a_rule_are_patterns_by_name() -> None:
    with pytest.raises(InvalidSetting, match="a rule's args are patterns by name, not 'x'"):
        Rule("deny", "f", "x")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("rule", "one", "matches"),
    [
        (Rule("allow"), call("anything"), True),
        (Rule("allow", "files.*"), call("files.read"), True),
        (Rule("allow", "files.*"), call("filesXread"), False),
        (Rule("allow", "read"), call("read_all"), False),
        (Rule("allow", "f", {"path": "/data/*"}), call("f", path="/data/x"), True),
        (Rule("allow", "f", {"path": "/data/*"}), call("f", path="/data/x/y"), False),
        (Rule("allow", "f", {"path": "/data/**"}), call("f", path="/data/x/y"), True),
        (Rule("allow", "f", {"path": "/data/**"}), call("f", path="/data/../etc/passwd"), False),
        (Rule("deny", "f", {"path": "/data/**"}), call("f", path="/data/../etc/passwd"), True),
        (Rule("allow", "f", {"path": "/data/**"}), call("f"), False),
        (Rule("allow", "f", {"n": "3"}), call("f", n=3), True),
        (Rule("allow", "f", {"n": "3"}), call("f", n=33), False),
        (Rule("allow", "f", {"flag": "true"}), call("f", flag=True), True),
        (Rule("allow", "f", {"text": "a.c"}), call("f", text="abc"), False),
        (Rule("allow", "f", {"text": "[ab]"}), call("f", text="a"), False),
        (Rule("allow", "f", {"text": "**"}), call("f", text="two\nlines"), True),
    ],
)
def test_patterns(rule: Rule, one: FunctionCall, matches: bool) -> None:
    assert rule.matches(one.function_name, one.kwargs) is matches


@given(st.text(), st.text())
def test_a_pattern_without_wildcards_matches_itself_only(pattern: str, text: str) -> None:
    if not set(pattern) & set("*?"):
        assert Rule("deny", "f", {"x": pattern}).matches("f", {"x": text}) is (pattern == text)


def test_deny_beats_allow_beats_ask_in_any_order() -> None:
    deny, allow, ask = Rule("deny", "f"), Rule("allow", "f"), Rule("ask", "f")
    assert strongest([ask, allow, deny], "f", {}) is deny
    assert strongest([deny, allow, ask], "f", {}) is deny
    assert strongest([ask, allow], "f", {}) is allow
    assert strongest([ask], "f", {}) is ask
    assert strongest([ask], "g", {}) is None


@pytest.mark.parametrize(
    ("approval", "rules", "asks_all", "kind"),
    [
        ("allow", [], False, "run"),
        ("allow", [], True, "ask"),
        ("ask", [], False, "ask"),
        ("ask", [Rule("allow", "f")], False, "run"),
        ("ask", [Rule("allow", "f")], True, "run"),
        ("deny", [Rule("allow", "f")], True, "deny"),
        ("allow", [Rule("deny", "f")], True, "deny"),
        ("allow", [Rule("ask", "f")], False, "ask"),
        ("allow", [Rule("ask", "f"), Rule("allow", "f")], False, "run"),
    ],
)
def test_precedence(approval: Any, rules: list[Rule], asks_all: bool, kind: str) -> None:
    assert said(rules, call("f"), approval, asks_all).kind == kind


def test_a_denial_gives_its_reason() -> None:
    assert said([Rule("deny", "f", reason="not on Sundays")], call("f")).reason == "not on Sundays"
    assert said([Rule("deny", "f")], call("f")).reason == "a rule denies f"
    assert said([], call("f"), "deny").reason == "the tool f is switched off"


def test_a_rule_must_make_sense() -> None:
    with pytest.raises(InvalidSetting, match="a rule's effect is one of allow, ask, deny, not 'maybe'"):
        Rule("maybe")  # type: ignore[arg-type]
    with pytest.raises(InvalidSetting, match="a rule needs a tool pattern"):
        Rule("allow", "")
    with pytest.raises(InvalidSetting, match="a rule needs a tool pattern"):
        Rule("allow", 3)  # type: ignore[arg-type]
    with pytest.raises(InvalidSetting, match="a rule's pattern for euros is text, not 5") as refused:
        Rule("deny", "pay", {"euros": 5})  # type: ignore[dict-item]
    assert refused.value.hint == '{"euros": "5"}: other values are matched as JSON'
