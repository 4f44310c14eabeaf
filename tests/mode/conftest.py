"""Every test of the mode runs on each real backend that needs no set-up."""

import pytest


@pytest.fixture(params=["monty", "process"])
def sandbox(request: pytest.FixtureRequest) -> str:
    """The name of a real sandbox."""
    return request.param
