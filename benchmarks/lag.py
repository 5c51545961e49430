"""Training with rollouts that are up to k steps behind (``training.lag`` k) against training without lag.

    python -m benchmarks.lag [--params OVERLAY] [--lags 0 1] [--steps 20] [--seeds 0] [--processes 1]
        [--servers 0] [--test] [--folder FOLDER]

For each seed an experiment's policy is imitated once. Then the lags take turns from that start, each in its
own process. With ``--servers`` that many vLLM servers, started once, sample for all of them (this Python
needs vLLM); without, the engine is the experiment's own.

``success`` of a run is that of the last ten steps' own rollouts. ``--test`` plays the start and every trained
policy on the test tasks, once each, by the local engine, which draws the same for equal weights. Intervals
are 95%, over seeds and tasks; differences to the first lag are task by task. Seconds per step are means over
all steps except the first, including checkpoints and the on-policy step after each of them; core seconds per
step are processor time of the training's first process and of the servers over the same steps. The parts are
rank 0's (``rollout`` is its wait for rollouts). Seconds on a busy machine are useful as ratios only, if at
all; the result includes the load.

With ``--folder`` the starts and finished measurements are kept there, and an interrupted run continues.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import socket
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import psutil

from benchmarks.machine import machine
from benchmarks.methods import Rows, estimate, kept, less, scores
from skillpress.core.resume import ResumeStore
from skillpress.core.storage import read_json, write_json
from skillpress.core.task_files import write_tasks
from skillpress.environments.section import SplitSizes
from skillpress.experiment.imitation import ImitationJob, imitate_demonstrations
from skillpress.experiment.params import Params, check_params, load_params, merge
from skillpress.experiment.training import job_in, train
from skillpress.models.engines.serve import ModelServer, ServerOptions

LAST = 10
"""Steps over which the success of rollouts is averaged."""
READY_SECONDS = 1800.0
LOGGED = (
    "clip_fraction",
    "approximate_kl",
    "gradient_norm",
    "staleness",
    "staleness_oldest",
    "groups_too_old",
)


def changed(params: Params, **sections: Any) -> Params:
    """The experiment with some keys changed."""
    return check_params(merge(params.model_dump(mode="json"), sections), "benchmark")


def prepare(params: Params, folder: Path, tested: int = 1) -> None:
    """Make the training tasks, ``tested`` test tasks, and the start of one seed."""
    if (folder / "start").is_dir():
        return
    folder.mkdir(parents=True, exist_ok=True)
    sizes = SplitSizes(params.tasks.train, 1, tested)
    made = list(params.environment.checked_tasks(sizes, params.seed))
    for split in ("train", "test"):
        write_tasks(folder / f"{split}.parquet", [task for task in made if task.split == split])
    store = ResumeStore(folder, "unfinished")
    job = ImitationJob(params, folder / "train.parquet", output=folder / "start", store=store)
    imitate_demonstrations(job, lambda rank, progress: None)


@contextmanager
def serving(params: Params, model: Path, count: int, folder: Path) -> Iterator[dict[str, Any]]:
    """Servers of the model's shape: the overlay that uses them, and their pids; nothing without servers."""
    if not count:
        yield {"overlay": {}, "pids": []}
        return
    with ExitStack() as stack:
        longest = int(read_json(model / "config.json")["max_position_embeddings"])
        asked = params.policy.context_tokens + params.sampling.max_new_tokens
        servers = [
            ModelServer(
                ServerOptions(
                    model=str(model),
                    port=free_port(),
                    longest=min(longest, asked),
                    dtype=params.policy.dtype,
                    cache_gib=0.5,
                ),
                folder / f"server-{number}.log",
            )
            for number in range(count)
        ]
        for server in servers:
            stack.enter_context(server)
        for server in servers:
            server.wait_until_ready(READY_SECONDS)
        urls = [server.options.url for server in servers]
        engine = {"name": "server", "urls": urls, "answer_seconds": READY_SECONDS}
        yield {"overlay": {"engine": engine}, "pids": [server.pid for server in servers]}


def free_port() -> int:
    """A port that nothing listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def core_seconds(pids: Sequence[int]) -> float:
    """Processor time of this process, and of these processes with all below them."""
    found = time.process_time()
    for pid in pids:
        top = psutil.Process(pid)
        for process in (top, *top.children(recursive=True)):
            times = process.cpu_times()
            found += times.user + times.system
    return found


def measure(params: Params, folder: Path, policy: Path, pids: Sequence[int]) -> dict[str, Any]:
    """One training, which leaves its policy."""
    with tempfile.TemporaryDirectory(dir=folder) as name:
        job = job_in(Path(name), params, folder)
        ends: list[tuple[float, float]] = []
        load = os.getloadavg()[0]
        curve = train(job, lambda step, metrics: ends.append((time.perf_counter(), core_seconds(pids))))
        shutil.rmtree(policy, ignore_errors=True)  # of a run that was killed here
        job.output.rename(policy)
    parts = [name for name in curve[-1] if name.startswith("seconds/")]
    (begun, used), (ended, used_up) = ends[0], ends[-1]
    return {
        "seconds_per_step": (ended - begun) / (len(ends) - 1),
        "core_seconds_per_step": (used_up - used) / (len(ends) - 1),
        "parts": {name: statistics.fmean(row.get(name, 0.0) for row in curve[1:]) for name in parts},
        "environment_steps": sum(row["environment_steps"] for row in curve),
        "success": statistics.fmean(row["success"] for row in curve[-LAST:]),
        "curve": [row["success"] for row in curve],
        **{
            name: statistics.fmean(row[name] for row in curve if name in row)
            for name in LOGGED
            if any(name in row for row in curve)
        },
        "load": {"before": load, "after": os.getloadavg()[0]},
    }


def in_own_process(*arguments: Any) -> dict[str, Any]:
    """:func:`measure` in a fresh process, where nothing is warm."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(measure, *arguments).result()


@dataclass(frozen=True)
class Comparison:
    """Trainings of one experiment with several lags. Results in the folder are not computed again."""

    params: Params
    processes: int
    servers: int
    tested: bool
    """Whether policies play the test tasks."""
    folder: Path

    def __call__(self, lags: Sequence[int], seeds: Sequence[int]) -> dict[str, Any]:
        """Every lag with every seed."""
        runs: dict[str, dict[str, Any]] = {}
        tests: dict[int, list[Rows]] = {lag: [] for lag in lags}
        starts: list[Rows] = []
        for seed in seeds:
            prepare(changed(self.params, seed=seed), self.folder / f"seed-{seed}", self.params.tasks.test)
        model = self.folder / f"seed-{seeds[0]}" / "start"
        with serving(self.params, model, self.servers, self.folder) as served:
            for seed in seeds:
                if self.tested:
                    starts.append(self._test(seed, "start"))
                for lag in lags:
                    name = f"processes-{self.processes}-servers-{self.servers}-lag-{lag}"
                    runs[f"seed {seed}, lag {lag}"] = self._trained(seed, lag, name, served)
                    if self.tested:
                        tests[lag].append(self._test(seed, f"{name}-policy"))
        return {
            "processes": self.processes,
            "servers": self.servers,
            "steps": self.params.training.steps,
            **({"test_tasks": self.params.tasks.test} if self.tested else {}),
            **({"start": estimate(starts, "pass_at_1")} if self.tested else {}),
            "lags": {str(lag): summary(lag, seeds, runs, tests) for lag in lags},
            "runs": runs,
            "machine": machine(),
        }

    def _trained(self, seed: int, lag: int, name: str, served: dict[str, Any]) -> dict[str, Any]:
        """One training's measurement; its policy is in the folder."""
        own = self.folder / f"seed-{seed}"
        done = own / f"{name}.json"
        if not done.exists():
            keys = {"seed": seed, "processes": self.processes, "training": {"lag": lag}}
            variant = changed(self.params, **keys, **served["overlay"])
            write_json(done, in_own_process(variant, own, own / f"{name}-policy", served["pids"]))
        found: dict[str, Any] = read_json(done)
        return found

    def _test(self, seed: int, policy: str) -> Rows:
        """The results of a policy in the seed's folder on the test tasks."""
        own = self.folder / f"seed-{seed}"
        alone = changed(self.params, seed=seed, engine={"name": "local"})
        where = own / f"{policy}-test"
        found: Rows = kept(
            where.with_suffix(".json"), scores, alone, own / policy, own / "test.parquet", where
        )
        return found


def summary(
    lag: int, seeds: Sequence[int], runs: dict[str, dict[str, Any]], tests: dict[int, list[Rows]]
) -> dict[str, Any]:
    """One lag beside the first of them: success and times."""
    first, tested = next(iter(tests)), {}
    if tests[lag]:
        tested["test"] = estimate(tests[lag], "pass_at_1")
        if lag != first:
            tested[f"test_less_lag_{first}"] = estimate(less(tests[lag], tests[first]), "pass_at_1")
    of_lag = [runs[f"seed {seed}, lag {lag}"] for seed in seeds]
    of_first = [runs[f"seed {seed}, lag {first}"] for seed in seeds]
    pairs = list(zip(of_first, of_lag, strict=True))
    times = ("seconds_per_step", "core_seconds_per_step")
    return {
        **tested,
        "times_as_fast": statistics.median(a["seconds_per_step"] / b["seconds_per_step"] for a, b in pairs),
        **{name: statistics.fmean(each[name] for each in of_lag) for name in times},
        **{
            name: statistics.fmean(each[name] for each in of_lag if name in each)
            for name in ("success", *LOGGED)
            if any(name in each for each in of_lag)
        },
    }


def main() -> None:
    """Print the measurement as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--params", action="append", default=[])
    parser.add_argument("--lags", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--servers", type=int, default=0, help="vLLM servers that sample; 0: none")
    parser.add_argument("--test", action="store_true", help="play the policies on the test tasks")
    parser.add_argument("--folder", type=Path, help="keeps starts and finished measurements")
    chosen = parser.parse_args()
    params = changed(load_params("params.yaml", *chosen.params), training={"steps": chosen.steps})
    with tempfile.TemporaryDirectory() as name:
        folder = (chosen.folder or Path(name)).resolve()
        comparison = Comparison(
            params, chosen.processes, servers=chosen.servers, tested=chosen.test, folder=folder
        )
        result = comparison(chosen.lags, chosen.seeds)
    json.dump(result, sys.stdout, indent=2)
    print()


if __name__ == "__main__":
    main()
