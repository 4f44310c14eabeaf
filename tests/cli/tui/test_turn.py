"""What the status line says goes on."""

import pytest

from hatchway.cli.tui.turn import doing_after
from hatchway.core.calls import FunctionCall
from hatchway.core.events import AgentEvent, CallFailed, CallStarted, ResponseChunk, ToolOutput


@pytest.mark.parametrize(
    ("event", "doing"),
    [
        (CallStarted(FunctionCall(call_id="1", function_name="send"), run_id="a"), "calling send"),
        (ToolOutput("sent", run_id="a"), "running"),
        (CallFailed("no", run_id="a"), "running"),
        (ToolOutput("sent"), "thinking"),
        (ResponseChunk("hello"), "thinking"),
    ],
)
def test_a_call_that_ended_is_not_said_to_go_on(event: AgentEvent, doing: str) -> None:
    assert doing_after(event) == doing
