"""MCP: what a nested call, generating an API and a search cost, and what a prompt weighs."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import nested
from tables import Section, Target, duration, times

from hatchway import CodeMode
from hatchway.tools.apigen import write_sources
from hatchway.tools.functions import Tool
from hatchway.tools.mcp.offered import offered
from hatchway.tools.mcp.servers import McpServers
from hatchway.tools.mcp.settings import StdioSettings
from hatchway.tools.search.discovery import Finder
from hatchway.tools.search.settings import SearchSettings
from hatchway.tools.stubs import render_stubs

HERE = Path(__file__).parent
NODE = HERE.parent / ".node" / "node_modules" / "@modelcontextprotocol"
KINDS = {
    "words": {"vector_weight": 0.0},
    "meaning": {"bm25_weight": 0.0},
    "hybrid without the table": {"wish_weight": 0.0},
    "hybrid": {},
}
NOTE = """\
A nested call is `get_current_time` of PyPI's mcp-server-time, {calls} in a loop from an action of a session, beside
the same calls made by the SDK's own client, each with a server process of its own; {busy} rounds on a busy core, {idle}
on the machine as it is. CPU is that of host, guest and server together and decides. Generating is CPU beyond the list
of the server, from that to files on disk. Search is over 1,000 tools, the index warm. Tokens are characters / 4.
hit@3 is over {queries} queries that share few words with the tools (`later.json`), against {tools} tools of real
servers: {names}. They were written after the table of wishes, by one who had read it; those that came near
to a saying were replaced, and their scores chose nothing.
Beside it: the same by words, by meaning and without the table; {known} queries that are older than the table and known
to its writers (`queries.json`; what came near to one of them is not in it any more); and {others} for invented tools
of kinds the table mostly leaves out, by which the search was tuned (`uncommon.json`)."""


def report(*, quick: bool) -> Section:
    """The section of the report."""
    calls, busy, idle = (50, 2, 2) if quick else (200, 5, 5)
    numbers = nested.measured(calls, busy, idle)
    with tempfile.TemporaryDirectory(prefix="hatchway-bench-") as folder:
        os.environ["PYTOOLS_DIR"] = folder
        made = [_generated(number, Path(folder)) for number in (20, 500)]
        searching = _searching(Path(folder))
        sizes = asyncio.run(_prompts())
        tools = asyncio.run(_real_tools(folder))
    asked, known = _asked(tools, "later.json"), _asked(tools, "queries.json")
    others, uncommon = _uncommon()
    hits = {kind: _hit_rate(tools, asked, **weights) for kind, weights in KINDS.items()}
    hits["hybrid, queries the table knew"] = _hit_rate(tools, known)
    hits["hybrid, uncommon tools"] = _hit_rate(others, uncommon)
    targets = nested.targets(numbers)
    targets += [
        Target(what="generating 20 tools", limit=0.2, values=[made[0]], unit=" s"),
        Target(what="generating 500 tools", limit=2, values=[made[1]], unit=" s"),
        Target(what="search over 1,000 tools", limit=5, values=[each * 1000 for each in searching], unit=" ms"),
        Target(what="prompt of 100 tools with discovery", limit=1000, values=[sizes["discovery"]], unit=" tokens"),
        Target(what="hit@3, hybrid", limit=90, values=[hits["hybrid"]], unit=" %", at_least=True),
    ]
    floor = numbers[nested.DIRECT]
    rows = [[name, *map(duration, each), *map(times, nested.ratios(each, floor))] for name, each in numbers.items()]
    rows += [[f"prompt of 100 tools: {name}", f"{tokens:.0f} tokens"] for name, tokens in sizes.items()]
    rows += [[f"hit@3, {name}", f"{percent:.0f} %"] for name, percent in hits.items()]
    names = ", ".join(sorted({name.partition(".")[0] for name in tools}))
    note = NOTE.format(
        calls=calls,
        busy=busy,
        idle=idle,
        queries=len(asked),
        known=len(known),
        tools=len(tools),
        names=names,
        others=len(uncommon),
    )
    return Section(
        title="MCP",
        note=note,
        targets=targets,
        head=["", "CPU, min", "busy core, min", "idle, median", "CPU ÷ direct", "busy ÷ direct", "idle ÷ direct"],
        columns=("CPU, or value", "busy core, min", "idle, median"),
        rows=rows,
    )


def _listed(number: int) -> list[dict[str, Any]]:
    """A list as servers send it: a few parameters each, nested ones among them."""
    item = {
        "type": "object",
        "properties": {"id": {"type": "integer"}, "label": {"type": "string"}},
        "required": ["id"],
    }
    said = "Look through the records of an account and give those that fit, newest first, with their labels. "
    properties = {
        "query": {"type": "string", "description": "What to look for."},
        "limit": {"type": "integer", "minimum": 1, "default": 10, "description": "How many at most."},
        "kind": {"enum": ["open", "closed", "all"], "description": "Which of them."},
        "items": {"type": "array", "items": item, "description": "Where to begin."},
    }
    takes = {"type": "object", "properties": properties, "required": ["query"]}
    gives = {"type": "object", "properties": {"rows": {"type": "array", "items": item}}, "required": ["rows"]}
    return [
        {"name": f"find_records_{n}", "description": said * 3, "inputSchema": takes, "outputSchema": gives}
        for n in range(number)
    ]


def _tools(number: int) -> list[Tool]:
    async def call(_name: str, _arguments: dict[str, Any]) -> dict[str, Any]:
        return {}

    return list(offered("records", _listed(number), StdioSettings(command="x"), call).tools)


def _generated(number: int, folder: Path) -> float:
    started = time.process_time()
    write_sources(_tools(number), ["records"], folder / str(number))
    return time.process_time() - started


def _searching(folder: Path) -> tuple[float, float, float]:
    """CPU at the median, wall clock at best and at the median."""
    tools = {tool.name: tool for tool in _tools(1000)}
    finder = Finder("hybrid", SearchSettings(directory=folder, database=folder / "search.db"))
    finder.offer(tools)
    finder.search("warm up")
    spent: list[tuple[float, float]] = []
    for number in range(50):
        wall, cpu = time.perf_counter(), time.process_time()
        finder.search(f"newest open account records with label {number}")
        spent.append((time.perf_counter() - wall, time.process_time() - cpu))
    finder.close()
    walls = [wall for wall, _ in spent]
    return median(cpu for _, cpu in spent), min(walls), median(walls)


async def _prompts() -> dict[str, float]:
    listed, tools = _listed(100), _tools(100)
    as_json = json.dumps([{k: each[k] for k in ("name", "description", "inputSchema")} for each in listed])
    async with CodeMode("monty", tools=tools, discovery="hybrid") as mode:
        discovered = mode.prompt()
    return {
        "JSON tools": len(as_json) / 4,
        "typed stubs": len(render_stubs(tools)) / 4,
        "discovery": len(discovered) / 4,
    }


async def _real_tools(folder: str) -> dict[str, Tool]:
    python = {"time": "mcp_server_time", "git": "mcp_server_git", "fetch": "mcp_server_fetch"}
    entries: dict[str, Any] = {
        name: {"command": sys.executable, "args": ["-m", module]} for name, module in python.items()
    }
    for name, server, args in (("fs", "filesystem", [folder]), ("everything", "everything", ["stdio"])):
        script = NODE / f"server-{server}" / "dist" / "index.js"
        if script.exists():
            entries[name] = {"command": "node", "args": [str(script), *args]}
    async with McpServers(entries) as servers:
        return {tool.name: tool for tool in await servers.tools()}


def _asked(tools: dict[str, Tool], file: str) -> list[tuple[str, str]]:
    known = json.loads((HERE / file).read_text(encoding="utf-8"))
    return [(query, name) for name, queries in known.items() if name in tools for query in queries]


def _uncommon() -> tuple[dict[str, Tool], list[tuple[str, str]]]:
    known = json.loads((HERE / "uncommon.json").read_text(encoding="utf-8"))
    schema = {"type": "object", "properties": {}}
    tools = {
        name: Tool(name=name, description=each["description"], parameters=schema, func=lambda: None)
        for name, each in known.items()
    }
    return tools, [(query, name) for name, each in known.items() for query in each["queries"]]


def _hit_rate(tools: dict[str, Tool], asked: list[tuple[str, str]], **weights: float) -> float:
    """Percent of queries whose tool is among the first three."""
    finder = Finder("hybrid", SearchSettings(database=None, **weights))
    finder.offer(tools)
    right = sum(name in [each.name for each in finder.search(query, 3)] for query, name in asked)
    finder.close()
    return 100 * right / len(asked)
