"""Sandboxes against Jupyter's kernels and against a loop without isolation, in one run.

    python -m benchmarks.sandboxes [--output benchmarks/results/sandboxes.json] [--parts start kills]

The others are not isolated. ``pip install ipykernel jupyter_client`` is needed beside skillpress.

- ``start``: milliseconds until the first reply, cold and from a stocked pool; milliseconds of one call;
  memory of one.
- ``at_once``: two threads start 1, 16, 64 and 128 of a kind, and then one thread each makes its calls:
  seconds until all are ready, calls per second, memory of each.
- ``episodes``: episodes of a scripted agent (four cells, two of which call a tool), 64 at once, each in a
  fresh one.
- ``kills``: 2,000 such episodes while a seeded draw kills sandboxes in the middle of their work; every task
  must have its outcome, and the right one.

Memory is the proportional set size in the kernel's accounting, summed over all processes of a sandbox, after
a value was shown. Results are written after each part, and a part that is in the file is not measured again.
Wall-clock times on a busy machine say little: every part has the load average before and after it, and
``cpu_ms`` is the processor time of a start over all processes.
"""

from __future__ import annotations

import argparse
import heapq
import json
import os
import platform
import signal
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.sandbox_peers import PATIENT, BareKernel, BareLoop, Peer
from skillpress.core.seeds import generator
from skillpress.core.storage import write_json
from skillpress.rollouts.sandbox import Sandbox, SandboxPool
from skillpress.rollouts.sandbox.processes import children_of_all, tree

AT_ONCE = (1, 16, 64, 128)
STARTERS = 2
GOALS = {"ready_from_pool_ms": 15.0, "round_trip_ms": 0.3, "memory_mb": 20.0, "at_once": 128}
DEATH_SHARE = 0.25
"""The share of attempts that are marked to be killed. Attempts that end before their moment survive."""
DEATH_SECONDS = 0.02
"""The moment is drawn uniformly from this many seconds after an attempt's start."""


KINDS: dict[str, Callable[[], Peer]] = {
    "sandbox": partial(Sandbox.start, PATIENT),
    "bare_loop": BareLoop,
    "bare_ipykernel": BareKernel,
}


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """The result of the work, and its milliseconds."""
    started = time.perf_counter()
    done = work()
    return done, 1000 * (time.perf_counter() - started)


def spread(times: Iterable[float]) -> dict[str, float]:
    """Statistics in milliseconds."""
    ordered = sorted(times)
    return {
        "median": statistics.median(ordered),
        "p90": ordered[int(0.9 * len(ordered))],
        "largest": ordered[-1],
    }


def processor_ms(pids: Iterable[int]) -> float:
    """Processor time so far of these processes, and of this one with its ended children."""
    ticks = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += sum(map(int, fields[11:15]))
    own = os.times()
    return 1000 * (ticks / os.sysconf("SC_CLK_TCK") + own.user + own.system)


def memory_mb(pids: Iterable[int]) -> float:
    """Proportional set size of these processes, in megabytes."""
    kib = 0
    for pid in pids:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        kib += next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return kib * 1024 / 1e6


def measure_start(kind: str, starts: int, calls: int) -> dict[str, Any]:
    """One at a time: cold starts, their processor time, calls, memory."""
    times, processor, trips, memory = [], [], [], []
    for _ in range(starts):
        before = processor_ms([])
        peer, milliseconds = timed(KINDS[kind])
        times.append(milliseconds)
        pids = tree(peer.pid, children_of_all())
        processor.append(processor_ms(pids) - before)
        trips += [timed(partial(peer.execute, "1 + 1"))[1] for _ in range(calls // starts)]
        memory.append(memory_mb(tree(peer.pid, children_of_all())))
        peer.close()
    return {
        "starts": starts,
        "cold_ms": spread(times),
        "cpu_ms": statistics.median(processor),
        "round_trip_ms": spread(trips),
        "memory_mb": statistics.median(memory),
    }


def measure_pool(takes: int) -> dict[str, Any]:
    """The time to get a ready sandbox from a full stock, as while an agent thinks."""
    times = []
    with SandboxPool(PATIENT, ready=4) as pool:
        for _ in range(takes):
            pool.wait_until_ready()
            started = time.perf_counter()
            with pool.sandbox() as sandbox:
                sandbox.execute("1")
                times.append(1000 * (time.perf_counter() - started))
    return {"takes": takes, "ready_and_first_reply_ms": spread(times)}


def measure_at_once(kind: str, number: int, calls: int) -> dict[str, Any]:
    """``number`` of a kind at the same time."""
    peers: list[Peer] = []
    try:
        with ThreadPoolExecutor(STARTERS) as starters:
            started = [starters.submit(KINDS[kind]) for _ in range(number)]
            _, until_ready = timed(lambda: peers.extend(future.result() for future in started))
        with ThreadPoolExecutor(number) as threads:
            work = [partial(repeat, peer, calls) for peer in peers]
            _, calling = timed(lambda: [done.result() for done in [threads.submit(one) for one in work]])
        children = children_of_all()
        memory = memory_mb(pid for peer in peers for pid in tree(peer.pid, children))
    finally:
        for peer in peers:
            peer.close()
    return {
        "all_ready_seconds": until_ready / 1000,
        "calls_per_second": 1000 * number * calls / calling,
        "memory_mb_each": memory / number,
    }


def repeat(peer: Peer, calls: int) -> None:
    """Repeat the same small call."""
    for _ in range(calls):
        peer.execute("sum(range(100))")


def scripted(sandbox: Sandbox, task: int) -> int:
    """An agent's episode: it searches, computes, notes and submits."""
    submitted: list[int] = []

    def search(query: str) -> list[str]:
        return [f"{query} {n}" for n in range(3)]

    def submit(answer: int) -> None:
        submitted.append(answer)

    sandbox.use_tools({"search": search, "submit": submit})
    for cell in (
        f"found = search('task {task}')",
        "def number(text):\n    return int(text.split()[1])",
        "notes = [number(text) for text in found]\nprint(notes)\nsum(notes)",
        "submit(sum(notes))",
    ):
        told = sandbox.execute(cell)
        if told.error is not None:
            raise RuntimeError(told.error)
    return submitted[0]


def measure_episodes(episodes: int, at_once: int) -> dict[str, Any]:
    """The scripted agent, each episode in its own sandbox."""
    with SandboxPool(PATIENT, ready=at_once, max_concurrency=at_once) as pool:
        pool.wait_until_ready()
        before = time.process_time()
        outcomes, milliseconds = timed(
            lambda: list(pool.run(range(episodes), scripted, deadline_seconds=3600))
        )
    assert all(outcome.result == 3 * outcome.task for outcome in outcomes), outcomes
    return {
        "episodes": episodes,
        "at_once": at_once,
        "episodes_per_second": 1000 * episodes / milliseconds,
        "host_cpu_ms_per_episode": 1000 * (time.process_time() - before) / episodes,
    }


class Killer:
    """Kills sandboxes at times that are drawn for each attempt of each task."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._attempts: dict[int, int] = {}
        self._due: list[tuple[float, int]] = []
        """Time and descriptor of a process, the earliest first."""
        self._changed = threading.Condition()
        self._over = False
        self.killed = 0
        self._thread = threading.Thread(target=self._work)

    def __enter__(self) -> Killer:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        with self._changed:
            self._over = True
            self._changed.notify()
        self._thread.join()
        for _, process in self._due:
            os.close(process)

    def haunt(self, sandbox: Sandbox, task: int) -> None:
        """Schedule this sandbox's end if the draw decides it."""
        with self._changed:
            attempt = self._attempts[task] = self._attempts.get(task, 0) + 1
        chance = generator(self._seed, "killed", task, attempt)
        if chance.random() < DEATH_SHARE:
            moment = time.monotonic() + chance.random() * DEATH_SECONDS
            with suppress(ProcessLookupError), self._changed:
                heapq.heappush(self._due, (moment, os.pidfd_open(sandbox.pid)))
                self._changed.notify()

    def _work(self) -> None:
        with self._changed:
            while not self._over:
                if not self._due or self._due[0][0] > time.monotonic():
                    self._changed.wait(self._due[0][0] - time.monotonic() if self._due else None)
                    continue
                _, process = heapq.heappop(self._due)
                with suppress(ProcessLookupError):
                    signal.pidfd_send_signal(process, signal.SIGKILL)
                    self.killed += 1
                os.close(process)


def measure_kills(episodes: int, at_once: int, seed: int) -> dict[str, Any]:
    """The outcomes of tasks whose sandboxes are killed."""

    def episode(sandbox: Sandbox, task: int) -> int:
        killer.haunt(sandbox, task)
        return scripted(sandbox, task)

    with Killer(seed) as killer, SandboxPool(PATIENT, ready=4, max_concurrency=at_once) as pool:
        outcomes = list(pool.run(range(episodes), episode, deadline_seconds=3600, attempts=10))
    failed = [outcome for outcome in outcomes if outcome.error is not None]
    return {
        "episodes": episodes,
        "at_once": at_once,
        "seed": seed,
        "killed": killer.killed,
        "retried": sum(outcome.attempts - 1 for outcome in outcomes),
        "most_attempts": max(outcome.attempts for outcome in outcomes),
        "failed": len(failed),
        "failures": sorted({type(outcome.error).__name__ for outcome in failed}),
        "wrong": sum(o.result != 3 * o.task for o in outcomes if o.error is None),
        "lost": len(set(range(episodes)) - {outcome.task for outcome in outcomes}),
        "twice": len(outcomes) - len({outcome.task for outcome in outcomes}),
    }


class Results:
    """Figures by part and name, written to disk after each."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.parts: dict[str, dict[str, Any]] = json.loads(path.read_text())["parts"] if path.exists() else {}

    def add(self, part: str, name: str, measure: Callable[[], dict[str, Any]]) -> None:
        """Measure a part unless it is in the file."""
        if name in self.parts.setdefault(part, {}):
            return
        load, started = os.getloadavg()[0], time.perf_counter()
        figures = measure()
        figures |= {"load": [load, os.getloadavg()[0]], "took_seconds": time.perf_counter() - started}
        self.parts[part][name] = figures
        print(part, name, json.dumps(figures), file=sys.stderr)
        write_json(self._path, {"parts": self.parts, "goals": GOALS, "machine": machine()})


def machine() -> dict[str, Any]:
    """The machine of the figures."""
    return {
        "python": platform.python_version(),
        "kernel": platform.release(),
        "cores": os.cpu_count(),
        "niceness": os.nice(0),
        "root": os.geteuid() == 0,
        "ipykernel": version("ipykernel"),
    }


def main() -> None:
    """Measure the requested parts that are not in the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results/sandboxes.json"))
    parts = ("start", "at_once", "episodes", "kills")
    parser.add_argument("--parts", nargs="+", choices=parts, default=parts)
    parser.add_argument("--episodes", type=int, default=2000, help="episodes of the part kills")
    parser.add_argument("--seed", type=int, default=0, help="seed of the part kills")
    chosen = parser.parse_args()
    results = Results(chosen.output)
    if "start" in chosen.parts:
        for kind in KINDS:
            results.add("start", kind, partial(measure_start, kind, 10, 500))
        results.add("start", "pool", partial(measure_pool, 30))
    if "at_once" in chosen.parts:
        for number in AT_ONCE:
            for kind in KINDS:
                results.add("at_once", f"{kind} {number}", partial(measure_at_once, kind, number, 20))
    if "episodes" in chosen.parts:
        results.add("episodes", "sandbox", partial(measure_episodes, 256, 64))
    if "kills" in chosen.parts:
        results.add("kills", "sandbox", partial(measure_kills, chosen.episodes, 64, chosen.seed))


if __name__ == "__main__":
    main()
