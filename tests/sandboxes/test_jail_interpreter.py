"""Which files make up a Python, asked for by several at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from hatchway.sandboxes.jail.interpreter import interpreter_files


def test_several_threads_may_ask_at_once_and_nothing_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    asked = interpreter_files.__wrapped__  # each asks anew: agents that start together find nothing in the cache
    with ThreadPoolExecutor(16) as threads:
        told = list(threads.map(lambda _: asked(), range(200)))
    assert set(told) == {told[0]}
    assert capsys.readouterr().out == ""
