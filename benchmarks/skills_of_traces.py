"""``skillpress skills`` on a hundred thousand traces in lines, a zip and Parquet, beside a plain reading.

    python -m benchmarks.skills_of_traces [--traces 100000] > benchmarks/results/skills_of_traces.json

The log is synthetic: chat completions of a coding agent with seven tools, 4 to 19 calls a trace, 2,000 tasks,
and a bad line in every thousand (Parquet can hold no bad lines). They are stored as lines, as a zip with a
member for every thousand lines, and as Parquet with nested columns.

The peer reads the same file and keeps nothing: ``json.loads`` for lines and the zip, a scan by Polars in
batches for Parquet, each of which every reader must do. Ours runs like a user's command, with a success
field, all sections of the page, and loops that are compiled already. The result has wall-clock and CPU
seconds of the whole process, and its peak memory, also for a tenth of the traces. The peer runs before and
after; ours runs on lines with each search.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator
from datetime import date
from itertools import islice
from pathlib import Path
from typing import Any

import polars as pl

BAD_EVERY = 1000
TASKS = 2000
GROUP = 1000
"""Lines of a zip's member, and rows of a row group."""


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


def write_zip(lines: Path, path: Path) -> None:
    """The same lines in members."""
    with lines.open("rb") as file, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as held:
        while part := list(islice(file, GROUP)):
            held.writestr(f"runs/{len(held.namelist())}.jsonl", b"".join(part))


def write_parquet(lines: Path, path: Path) -> None:
    """The same traces as rows, their messages as lists of structs."""
    values, frames = parsed(lines.open("rb")), []
    while part := list(islice(values, GROUP)):
        frames.append(pl.DataFrame(part, infer_schema_length=None))
    pl.concat(frames).write_parquet(path, row_group_size=GROUP)


def read_alone(path: Path) -> dict[str, float]:
    """The peer."""
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in PEERS[path.suffix](path):
        pass
    return {"wall_s": time.perf_counter() - wall, "cpu_s": time.process_time() - cpu}


def parsed(lines: Iterable[bytes]) -> Iterator[Any]:
    """``json.loads`` of every line."""
    for text in lines:
        try:
            yield json.loads(text)
        except ValueError:
            continue


def members(path: Path) -> Iterator[bytes]:
    """The lines of all members of a zip."""
    with zipfile.ZipFile(path) as held:
        for name in held.namelist():
            with held.open(name) as file:
                yield from file


PEERS: dict[str, Callable[[Path], Iterable[Any]]] = {
    ".jsonl": lambda path: parsed(path.open("rb")),
    ".zip": lambda path: parsed(members(path)),
    ".parquet": lambda path: pl.scan_parquet(path).collect_batches(chunk_size=256),
}


COMMAND = """
import resource, sys
from pathlib import Path
from skillpress.cli.skills import main
code = main(sys.argv[1:])
used = resource.getrusage(resource.RUSAGE_SELF)
peak = Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]
print(used.ru_utime + used.ru_stime, int(peak) / 1024)
sys.exit(code)
"""
"""The command, and then its CPU seconds and its peak memory in MiB. ``ru_maxrss`` would begin with the memory
of the process that started it."""


def run_ours(path: Path, folder: Path, search: str) -> dict[str, Any]:
    """Run the command in a separate process."""
    words = [str(path), "--success", "solved", "--search", search, "--output", str(folder)]
    wall = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", COMMAND, *words], capture_output=True, text=True, check=True)
    wall = time.perf_counter() - wall
    *said, last = done.stdout.splitlines()
    cpu, peak = map(float, last.split())
    return {
        "wall_s": wall,
        "cpu_s": cpu,
        "peak_mib": peak,
        "page_kb": (folder / "skills.html").stat().st_size / 1e3,
        "said": said[:-1],
    }


def measure(traces: int, folder: Path) -> dict[str, Any]:
    """Each way of storing: the peer, ours, ours on a tenth, and the peer again."""
    found: dict[str, Any] = {}
    for size in (max(traces // 10, 1), traces):
        place = folder / str(size)
        place.mkdir(exist_ok=True)
        log = write_log(place / "log.jsonl", size)
        write_zip(place / "log.jsonl", place / "log.zip")
        write_parquet(place / "log.jsonl", place / "log.parquet")
    found["log"] = log
    run_ours(folder / str(max(traces // 10, 1)) / "log.jsonl", folder / "page", "refined")  # compiles
    for suffix in PEERS:
        path = folder / str(traces) / f"log{suffix}"
        peer = [read_alone(path)]
        tenth = run_ours(folder / str(max(traces // 10, 1)) / path.name, folder / "page", "greedy")
        ours = run_ours(path, folder / "page", "refined")
        peer.append(read_alone(path))
        found[suffix[1:]] = {
            "megabytes": path.stat().st_size / 1e6,
            "peer": peer,
            "refined": ours,
            "peak_mib_of_a_tenth": tenth["peak_mib"],
            "cpu_over_peer": ours["cpu_s"] / min(peer, key=lambda one: one["cpu_s"])["cpu_s"],
        }
    found["jsonl"]["greedy"] = run_ours(folder / str(traces) / "log.jsonl", folder / "page", "greedy")
    return found


def main() -> None:
    """Print the result as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--traces", type=int, default=100_000)
    parser.add_argument("--note", default="", help="what else the machine did, for the reader of the result")
    chosen = parser.parse_args()
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        found = measure(chosen.traces, Path(folder))
    machine = {
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "load_before": load,
        "load_after": os.getloadavg()[0],
        "note": chosen.note,
    }
    print(json.dumps({**found, "date": date.today().isoformat(), "machine": machine}, indent=2))


if __name__ == "__main__":
    main()
