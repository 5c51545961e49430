"""``skillpress skills`` on a hundred thousand traces, beside ``json.loads`` over the same lines.

    python -m benchmarks.skills_of_traces [--traces 100000] > benchmarks/results/skills_of_traces.json

The log is synthetic: chat completions of a coding agent with seven tools, 4 to 19 calls a trace, 2,000 tasks,
and a bad line in every thousand. The peer reads the lines and parses each, which every reader must do, and
keeps nothing. Ours runs like a user's command, with a success field, all sections of the page, and loops that
are compiled already. The result has wall-clock and CPU seconds of the whole process, and its peak memory. The
peer runs before and after; ours runs with each search.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

BAD_EVERY = 1000
TASKS = 2000


def calls(chance: random.Random) -> tuple[list[str], bool]:
    """The tools of one trace, and whether it succeeds: it usually does if tests follow edits."""
    careful = chance.random() < 0.5
    tools: list[str] = []
    for _ in range(chance.randint(1, 3)):
        tools += ["list_dir", "read_file"]
    for _ in range(chance.randint(1, 3)):
        careless = chance.choice([["edit", "edit"], ["edit", "bash"], ["bash", "bash", "read_file"]])
        tools += ["edit", "run_tests"] if careful else careless
        if chance.random() < 0.3:
            tools.append("search")
        if chance.random() < 0.2:
            tools.append(chance.choice(["read_file", "list_dir", "bash"]))
    return [*tools, "submit"], chance.random() < (0.8 if careful else 0.3)


def line(number: int, chance: random.Random) -> str:
    """One trace as a line of a chat log, or a bad one."""
    if number % BAD_EVERY == BAD_EVERY - 1:
        return '{"messages": [{"role": "user", "content": "cut of'
    messages: list[dict[str, Any]] = [{"role": "user", "content": f"Repair what test {number} complains of."}]
    tools, solved = calls(chance)
    for place, tool in enumerate(tools):
        arguments = json.dumps({"path": f"src/module_{chance.randint(0, 99)}.py", "lines": [1, place]})
        call = {"id": f"call_{place}", "type": "function", "function": {"name": tool, "arguments": arguments}}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        answer = "x = 1\n" * chance.randint(5, 60)
        messages.append({"role": "tool", "tool_call_id": f"call_{place}", "content": answer})
    task = f"task-{number % TASKS}"
    return json.dumps({"task_id": task, "messages": messages, "solved": solved, "created": number})


def write_log(path: Path, traces: int) -> dict[str, Any]:
    """Write the log; returns a summary of it."""
    chance = random.Random(0)
    with path.open("w", encoding="utf-8") as file:
        for number in range(traces):
            file.write(line(number, chance) + "\n")
    return {"lines": traces, "bad_lines": traces // BAD_EVERY, "megabytes": path.stat().st_size / 1e6}


def parse_alone(path: Path) -> dict[str, float]:
    """The peer."""
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in parsed(path):
        pass
    return {"wall_s": time.perf_counter() - wall, "cpu_s": time.process_time() - cpu}


def parsed(path: Path) -> Iterator[Any]:
    """``json.loads`` of every line."""
    with path.open("rb") as file:
        for text in file:
            try:
                yield json.loads(text)
            except ValueError:
                continue


def run_ours(path: Path, folder: Path, search: str) -> dict[str, Any]:
    """Run the command in a separate process."""
    command = [
        sys.executable, "-m", "skillpress.console.command", "skills", str(path),
        "--success", "solved", "--search", search, "--output", str(folder),
    ]  # fmt: skip
    before, wall = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    wall = time.perf_counter() - wall
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "wall_s": wall,
        "cpu_s": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        "peak_mib": after.ru_maxrss / 1024,
        "page_kb": (folder / "skills.html").stat().st_size / 1e3,
        "said": done.stdout.splitlines()[:-1],
    }


def measure(traces: int, folder: Path) -> dict[str, Any]:
    """The log, the peer, ours, and the peer again."""
    path = folder / "log.jsonl"
    log = write_log(path, traces)
    small = folder / "small.jsonl"
    write_log(small, 2000)
    run_ours(small, folder / "warm", "refined")  # compiles, if no process has done so
    found: dict[str, Any] = {"log": log, "json_loads": [parse_alone(path)]}
    found["refined"] = run_ours(path, folder / "refined", "refined")
    found["greedy"] = run_ours(path, folder / "greedy", "greedy")
    found["json_loads"].append(parse_alone(path))
    cpu = min(peer["cpu_s"] for peer in found["json_loads"])
    found["cpu_over_json_loads"] = {name: found[name]["cpu_s"] / cpu for name in ("refined", "greedy")}
    return found


def main() -> None:
    """Print what was measured as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--traces", type=int, default=100_000)
    chosen = parser.parse_args()
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        found = measure(chosen.traces, Path(folder))
    print(json.dumps({
        **found,
        "date": date.today().isoformat(),
        "machine": {"python": platform.python_version(), "load_before": load, "cores": os.cpu_count()},
    }, indent=2))  # fmt: skip


if __name__ == "__main__":
    main()
