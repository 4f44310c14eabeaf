"""A call that asks first: the run pauses, anybody decides later, the run goes on from there."""

import asyncio

from hatchway import ApprovalRequired, CodeMode, Deny, Edit, tool

ACTION = """
sent = []
for person in ["ada", "bob", "cat"]:
    try:
        sent.append(send_mail(to=person, text="lunch?"))
    except RuntimeError as refused:
        sent.append(f"{person}: {refused}")
sent
"""


@tool(approval="ask")
def send_mail(to: str, text: str) -> str:
    """Send a mail. It cannot be unsent, so it asks first."""
    return f"{to}: sent {text!r}"


def decide(call):
    """What a person would answer, here by rote."""
    match call.kwargs["to"]:
        case "ada":
            return True
        case "bob":
            return Edit({"to": "bob", "text": "lunch at noon?"})
        case _:
            return Deny("on holiday")


async def main() -> None:
    async with CodeMode("monty", tools=[send_mail]) as mode:
        try:
            result = await mode.run(ACTION)
        except ApprovalRequired as paused:
            result = await go_on(mode, paused)
    print("\n".join(result.output))


async def go_on(mode: CodeMode, paused: ApprovalRequired):
    while True:
        decisions = {call.call_id: decide(call) for call in paused.pending}
        try:
            return await mode.resume(paused.run_id, decisions)
        except ApprovalRequired as again:
            paused = again


asyncio.run(main())
