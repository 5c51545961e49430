"""Environments on other machines against the same ones here, and the episodes of a machine that is killed.

    python -m benchmarks.remote_workers [--parts here machines killed rounds] [--episodes 500]

Two servers of ``skillpress serve-workers`` on this computer play the part of two machines, with half of the
slots each. A random explorer plays short episodes of question answering in real sandboxes. The questions are
made here, so no data are needed. Every part plays the same episodes, and writes them to a file:

- ``here``: the local pool of sandboxes.
- ``machines``: both servers.
- ``killed``: both servers, one of which gets ``kill -9`` when a third of the episodes have ended.
- ``rounds``: the same with an agent that decides for all episodes at once, so that the episodes must take
  turns on the server that is left.

``lost`` and ``twice`` count episodes, ``same_bytes`` compares the files with that of ``here``. Servers and
trainer share this computer's cores, so ``machines`` shows what the messages cost, and not what further
computers gain. A run adds its figures to those in the file.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl

from benchmarks.machine import machine
from benchmarks.workers import Timed
from skillpress.cli.evaluations.parameters import tasks_of
from skillpress.cli.parameter_options import playing_params
from skillpress.core.rollout_files import write_rollouts
from skillpress.core.storage import write_json
from skillpress.core.trajectory import Trajectory
from skillpress.experiment.experiment import Experiment
from skillpress.rollouts.collection import requests
from skillpress.rollouts.remote.slot import KEY_VARIABLE

ENVIRONMENT = "notebook_qa"
STEPS = 4
PARTS = ("here", "machines", "killed", "rounds")


@dataclass(frozen=True)
class Machine:
    """A server that starts or runs."""

    process: subprocess.Popen[str]
    log: Path

    @cached_property
    def url(self) -> str:
        """Its address; waits until it is ready."""
        assert self.process.stdout is not None
        ready = self.process.stdout.readline().split()
        assert ready[:1] == ["ready:"], self.log.read_text()
        return ready[1]

    def kill(self) -> None:
        """End it as a power cut would."""
        self.process.kill()
        self.process.wait()


@contextmanager
def started(folder: Path, settings: list[str], slots: int, key: str) -> Iterator[Machine]:
    """A server of these settings, whose log is in the folder."""
    log = folder / f"workers-{secrets.token_hex(4)}.log"
    command = [sys.executable, "-m", "skillpress.cli.command", "serve-workers"]
    command += ["--environment", ENVIRONMENT, "--slots", str(slots), "--port", "0"]
    command += [word for setting in settings for word in ("--set", setting)]
    with log.open("w") as said:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=said, env={**os.environ, KEY_VARIABLE: key}, text=True
        )
    try:
        yield Machine(process, log)
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()


def make_world(folder: Path, questions: int) -> list[str]:
    """Questions about films and their directors, as data of the environment; returns its settings."""
    films, rows = [], []
    for number in range(questions):
        film, director, town = f"Film {number}", f"Director {number}", f"Town {number % 97}"
        films += [
            (f"f{number}", film, f"{film} was directed by {director}."),
            (f"d{number}", director, f"{director} was born in {town}."),
        ]
        rows.append(
            {
                "id": f"q{number}",
                "dataset": "hotpotqa",
                "split": "test" if number else "train",
                "question": f"Where was the director of the film {film} born?",
                "answers": [town],
                "supporting_titles": [film, director],
                "kind": "bridge",
            }
        )
    pl.DataFrame(films, schema=["id", "title", "text"], orient="row").write_parquet(
        folder / "paragraphs.parquet"
    )
    pl.DataFrame(rows).write_parquet(folder / "questions.parquet")
    return [
        f"environment.data={folder}",
        f"environment.indexes={folder / 'indexes'}",
        "environment.reachable=false",
        f"environment.max_steps={STEPS}",
        "tasks.train=1",
        "tasks.validation=0",
        f"tasks.test={questions - 1}",
    ]


def played(
    settings: list[str],
    file: Path,
    in_rounds: bool = False,
    on_episode: Callable[[int], None] = lambda n: None,
) -> dict[str, Any]:
    """Play every test task once and write the episodes to a file.

    Args:
        on_episode: called with the number of episodes that have ended.
    """
    params = playing_params(ENVIRONMENT, [], settings)
    tasks, experiment = tasks_of(params, "test"), Experiment(params)
    explorer = experiment.explorer()
    ended: dict[int, Trajectory] = {}
    times: Counter[int] = Counter()

    def note(number: int, trajectory: Trajectory) -> None:
        ended[number] = trajectory
        times[number] += 1
        on_episode(len(ended))

    with experiment.collector(Timed(explorer) if in_rounds else explorer) as collector:
        began = time.perf_counter()
        collector.play(enumerate(requests(tasks, 1, params.seed, "test")), note)
        seconds = time.perf_counter() - began
    write_rollouts(file, [ended[number] for number in sorted(ended)])
    return {
        "episodes": len(ended),
        "steps": sum(len(trajectory.steps) for trajectory in ended.values()),
        "lost": len(tasks) - len(ended),
        "twice": sum(count - 1 for count in times.values()),
        "lost_sandboxes": sum(trajectory.outcome == "sandbox" for trajectory in ended.values()),
        "episodes_per_second": len(ended) / seconds,
    }


def measure(part: str, settings: list[str], slots: int, folder: Path) -> dict[str, Any]:
    """The figures of one part; its episodes are in ``folder``."""
    load, file = os.getloadavg()[0], folder / f"{part}.parquet"
    settings = [*settings, f"sampling.slots={slots}"]
    if part == "here":
        return played(settings, file) | {"load": [load, os.getloadavg()[0]]}
    os.environ[KEY_VARIABLE] = key = secrets.token_hex(32)
    with ExitStack() as stack:
        machines = [stack.enter_context(started(folder, settings, slots // 2, key)) for _ in range(2)]
        killed_after = int(dict(one.split("=", 1) for one in settings)["tasks.test"]) // 3

        def count(ended: int) -> None:
            if part != "machines" and ended == killed_after:
                machines[0].kill()

        urls = f"workers.urls=[{machines[0].url},{machines[1].url}]"
        figures = played([*settings, urls], file, in_rounds=part == "rounds", on_episode=count)
    same = file.read_bytes() == (folder / "here.parquet").read_bytes()
    return figures | {"same_bytes": same, "load": [load, os.getloadavg()[0]]}


def main() -> None:
    """Measure the requested parts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results/remote_workers.json"))
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--episodes", type=int, default=500)
    parser.add_argument("--slots", type=int, default=8, help="episodes at once")
    parser.add_argument("--repetitions", type=int, default=2)
    chosen = parser.parse_args()
    found: dict[str, list[dict[str, Any]]] = {}
    if chosen.output.exists():
        found = json.loads(chosen.output.read_text())["parts"]
    with TemporaryDirectory() as name:
        folder = Path(name)
        settings = make_world(folder, chosen.episodes + 1)
        for _ in range(chosen.repetitions):
            for part in ("here", *(part for part in chosen.parts if part != "here")):
                found.setdefault(part, []).append(measure(part, settings, chosen.slots, folder))
                print(part, found[part][-1], file=sys.stderr)
                write_json(chosen.output, {"parts": found, "slots": chosen.slots, "machine": machine()})


if __name__ == "__main__":
    main()
