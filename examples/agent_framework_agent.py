"""An agent of Microsoft Agent Framework that acts by code; a person is asked about single calls inside it.

Needs `pip install 'hatchway[agent-framework]'`; no key, no network: the chat client follows a script.
"""

import asyncio

from agent_framework import Agent, BaseChatClient, ChatResponse, Content, FunctionInvocationLayer, Message, tool

from hatchway import Deny
from hatchway.adapters.agent_framework import MontyCodeActProvider

CODE = """
for user in users():
    try:
        print(user, remove(user))
    except RuntimeError as refused:
        print(user, "stays:", refused)
"""


class Client(FunctionInvocationLayer, BaseChatClient):
    def __init__(self):
        FunctionInvocationLayer.__init__(self)
        BaseChatClient.__init__(self)

    async def _inner_get_response(self, *, messages, stream, options, **kwargs):
        results = [c.result for m in messages for c in m.contents if c.type == "function_result"]
        call = Content.from_function_call(call_id="1", name="execute_code", arguments={"code": CODE})
        return ChatResponse(messages=Message(role="assistant", contents=[results[0] if results else call]))


def users() -> list[str]:
    """Every user."""
    return ["ada", "mallory"]


@tool(approval_mode="always_require")
def remove(user: str) -> str:
    """Remove a user."""
    return "is gone"


async def main():
    codeact = MontyCodeActProvider(tools=[users, remove], per_call_approval=True)  # or JailCodeActProvider, …
    agent = Agent(client=Client(), context_providers=[codeact])
    session = agent.create_session()
    response = await agent.run("Remove who does not belong here.", session=session)
    while response.user_input_requests:  # the code stands still; with journal=… the process may end here
        [request] = response.user_input_requests
        [call] = request.additional_properties["hatchway"]["calls"]
        answer = call["arguments"]["user"] == "mallory" or Deny("a friend")
        said = Message(role="user", contents=[codeact.decide(request, answer, session=session)])
        response = await agent.run(said, session=session)
    print(response.text)
    await codeact.aclose()


asyncio.run(main())
