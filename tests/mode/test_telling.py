"""What a model is told about code that failed."""

import pytest

from hatchway.core.calls import CallRecord, FunctionCall
from hatchway.core.errors import CodeRuntimeError
from hatchway.mode.mode import CodeMode
from hatchway.mode.telling import failure_text


def test_calls_are_told_with_all_their_arguments() -> None:
    refused = FunctionCall(call_id="1", function_name="pay", args=(3,), kwargs={"to": "ada"})
    error = CodeRuntimeError("ToolDenied: no", calls=[CallRecord(call=refused, state="denied", error="no")])
    assert failure_text(error) == (
        "Runtime error in the code:\nToolDenied: no\n\n"
        "Calls it had made, which are not undone:\n- pay(3, to='ada') denied: no"
    )


@pytest.mark.anyio
async def test_calls_of_which_only_the_last_are_kept_are_all_counted() -> None:
    def f(n: int) -> int:
        return n

    async with CodeMode("monty", tools=[f]) as mode:
        with pytest.raises(CodeRuntimeError) as caught:
            await mode.run("for n in range(350):\n    f(n)\n1 / 0")
    assert "\n- 330 earlier calls\n- f(n=330) returned 330\n" in failure_text(caught.value)
