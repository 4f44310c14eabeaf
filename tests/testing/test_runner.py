"""The runner: which checks it tries, on which sandbox, and what it reports."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from hatchway.core.errors import InvalidSetting, SandboxUnavailable
from hatchway.core.sandbox import CodeExecution, CodeSandbox
from hatchway.sandboxes.process import ProcessSandbox
from hatchway.testing import CHECKS, Check, CheckOutcome, ConformanceReport, pytest_checks, run_check, run_conformance
from hatchway.testing.conformance import TOPICS
from hatchway.testing.conformance.checks import FULL_LIBRARY, NotOffered

pytestmark = pytest.mark.anyio

test_the_one_line_for_pytest = pytest_checks(ProcessSandbox, only="results.last_expression")


class Watched(ProcessSandbox):
    """Counts how often it is made and closed."""

    made = 0
    closed = 0

    def __init__(self) -> None:
        super().__init__()
        type(self).made += 1

    async def aclose(self) -> None:
        await super().aclose()
        type(self).closed += 1


class Hangs(ProcessSandbox):
    """Never starts anything."""

    async def execute(self, *args: Any, **options: Any) -> CodeExecution:
        await asyncio.sleep(3600)
        raise AssertionError


def own_check(function: Any, **settings: Any) -> Check:
    return Check(id="own.check", description="a check of this test", function=function, **settings)


def test_there_are_many_checks_with_ids_of_their_own_in_the_order_of_topics() -> None:
    assert len(CHECKS) >= 200
    assert len({check.id for check in CHECKS}) == len(CHECKS)
    assert tuple(dict.fromkeys(check.topic for check in CHECKS)) == TOPICS
    assert all(check.description and check.description[-1] != "." for check in CHECKS)


async def test_only_chooses_by_topic_id_and_pattern() -> None:
    seen: list[CheckOutcome] = []
    report = await run_conformance(ProcessSandbox, ["sandbox.pr*", "results.tier"], seen.append)
    assert [outcome.check.id for outcome in report.outcomes] == ["sandbox.probe", "results.tier"]
    assert report.passed == seen == list(report.outcomes)
    assert report.conforms
    assert all(outcome.seconds > 0 for outcome in seen)


async def test_only_that_fits_nothing_names_the_topics() -> None:
    with pytest.raises(InvalidSetting, match=r"^no check fits 'resluts'\ntopics: sandbox, results, output, ") as e:
        await run_conformance(ProcessSandbox, "resluts")
    assert e.value.hint == "topics: " + ", ".join(TOPICS)


async def test_an_instance_stays_open_and_is_not_given_to_checks_that_close_it() -> None:
    Watched.made = Watched.closed = 0
    sandbox = Watched()
    report = await run_conformance(sandbox, ["results.tier", "cancellation.aclose"])
    assert [outcome.state for outcome in report.outcomes] == ["passed", "skipped"]
    assert report.skipped[0].message == "it closes its sandbox: give a factory, not an instance"
    assert (Watched.made, Watched.closed) == (1, 0)
    await sandbox.aclose()


async def test_a_factory_makes_one_for_all_and_one_for_each_check_that_closes_it() -> None:
    Watched.made = Watched.closed = 0
    await run_conformance(Watched, ["results.tier", "results.usage", "cancellation.async_with"])
    assert Watched.made == 2
    assert Watched.closed == 3  # the check itself closed its own, and the runner closes again


async def test_after_a_failure_the_next_check_gets_a_new_sandbox() -> None:
    class Misnamed(Watched):
        name = "Misnamed"

    Misnamed.made = 0
    report = await run_conformance(Misnamed, ["sandbox.described", "results.usage"])
    assert [outcome.state for outcome in report.outcomes] == ["failed", "passed"]
    assert report.failed[0].message == "the name is 'Misnamed', not a lower-case word"
    assert not report.conforms
    assert Misnamed.made == 2


async def test_a_sandbox_that_hangs_fails_the_check_and_not_the_suite() -> None:
    check = next(check for check in CHECKS if check.id == "results.tier")
    outcome = await run_check(replace(check, seconds=0.2), Hangs)
    assert (outcome.state, outcome.message) == ("failed", "still running after 0.2 s")


async def test_a_check_may_say_that_something_is_not_offered_or_raise_anything() -> None:
    async def not_offered(sandbox: CodeSandbox) -> None:
        raise NotOffered("no such thing here")

    async def odd(sandbox: CodeSandbox) -> None:
        raise KeyError("surprise")

    outcomes = [await run_check(own_check(function), ProcessSandbox) for function in (not_offered, odd)]
    assert [(o.state, o.message) for o in outcomes] == [
        ("skipped", "no such thing here"),
        ("failed", "KeyError: 'surprise'"),
    ]


async def test_what_a_sandbox_does_not_claim_is_skipped_with_the_reason() -> None:
    async def never(sandbox: CodeSandbox) -> None:
        raise AssertionError("not to be tried")

    sandbox = ProcessSandbox()
    sandbox.constraints = replace(sandbox.constraints, supports_threads=False, modules=("math",))
    for needs, missing in (
        (("supports_threads",), "supports_threads"),
        (("import math", "import asyncio"), "import asyncio"),
        ((FULL_LIBRARY, "stateful"), "the whole standard library"),
    ):
        outcome = await run_check(own_check(never, needs=needs), sandbox)
        assert (outcome.state, outcome.message) == ("skipped", f"the sandbox does not claim {missing}")


async def test_a_factory_that_fails_is_the_callers_to_handle() -> None:
    def absent() -> CodeSandbox:
        raise SandboxUnavailable("not on this machine")

    with pytest.raises(SandboxUnavailable, match=r"^not on this machine$"):
        await run_conformance(absent, "results.tier")


def test_nothing_passed_is_not_conformance() -> None:
    assert not ConformanceReport(outcomes=()).conforms


def test_under_pytest_a_failure_is_a_failure_and_a_skip_a_skip() -> None:
    test = pytest_checks(Hangs, only="results.tier")
    check = next(check for check in CHECKS if check.id == "results.tier")
    with pytest.raises(
        pytest.fail.Exception, match=r"^the result says which tier it ran in\nstill running after 0.1 s$"
    ):
        test(replace(check, seconds=0.1))
    with pytest.raises(pytest.skip.Exception, match=r"^the sandbox does not claim packages$"):
        test(replace(check, needs=("packages",)))
