"""The agent as an SDK: it acts by code in the jail, every action and call is asked about, and it keeps its state."""

import asyncio
import sys
import tempfile
from pathlib import Path

from hatchway.agent import Agent, ApprovalRequest, CodeExecutionOutput, Response, Thoughts, ToolOutput
from hatchway.agent.config import Config, init_config
from hatchway.testing import Call, Reply, ScriptedAgentModel, Thinking
from hatchway.tools.apigen import generate_mcp_sources

TIME = {"command": sys.executable, "args": ["-m", "mcp_server_time", "--local-timezone", "UTC"]}
NOON = "Params(source_timezone='UTC', target_timezone='Asia/Tokyo', time='12:00')"
SCRIPT = [  # what a vendor's model would say; give Agent its name instead: Agent("anthropic:claude-sonnet-4-5", …)
    [Thinking("Which tools are there?"), Call("pytools_list_tools", {"category": "time"})],
    Reply(code=f"from mcptools.time.convert_time import Params, run\nrun({NOON})['target']['datetime'][11:16]"),
    "It is 21:00 in Tokyo.",
]


async def main(workspace: Path) -> None:
    init_config(workspace)
    config = Config(workspace)
    await generate_mcp_sources({"time": TIME}, workspace)
    async with Agent(
        model=ScriptedAgentModel(SCRIPT),
        model_settings=config.model_settings,
        system_prompt=config.system_prompt,
        mcp_servers=config.mcp_servers,
        ptc_servers={"time": TIME},
        working_dir=workspace,
    ) as agent:
        async for event in agent.stream("What time is it in Tokyo when it is noon in London in winter?"):
            match event:
                case ApprovalRequest(tool_name="execute_code", tool_args=args) as request:
                    print(f"action:  {args['code'].splitlines()[0]} …")
                    request.approve(True)
                case ApprovalRequest(tool_name=name) as request:
                    print(f"asks:    {name}")
                    request.approve(True)
                case Thoughts(content=content):
                    print(f"thinks:  {content}")
                case ToolOutput(tool_name=name):
                    print(f"gives:   {name}")
                case CodeExecutionOutput(text=text):
                    print(f"output:  {text}")
                case Response(content=content):
                    print(f"answers: {content}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(dir=".") as folder:
        asyncio.run(main(Path(folder)))
