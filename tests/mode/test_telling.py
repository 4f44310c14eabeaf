"""What a model is told about code that failed."""

from hatchway.core.calls import CallRecord, FunctionCall
from hatchway.core.errors import CodeRuntimeError
from hatchway.mode.telling import failure_text


def test_calls_are_told_with_all_their_arguments() -> None:
    refused = FunctionCall(call_id="1", function_name="pay", args=(3,), kwargs={"to": "ada"})
    error = CodeRuntimeError("ToolDenied: no", calls=[CallRecord(call=refused, state="denied", error="no")])
    assert failure_text(error) == (
        "Runtime error in the code:\nToolDenied: no\n\n"
        "Calls it had made, which are not undone:\n- pay(3, to='ada') denied: no"
    )
