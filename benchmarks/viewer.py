"""How fast ``skillpress view`` opens and browses a rollout file of 10^6 steps, against reading it whole.

    nice -n 10 python -m benchmarks.viewer > benchmarks/results/viewer.json

The file is made from a seed: 64,680 episodes of 1 to 30 steps of Countdown's actions by three policies, with
prompts of about 150 tokens, and thoughts and observations of made-up words. It lies in an experiment's folder
beside tasks, a dictionary and a tokenizer, and is requested over HTTP:

    open            the index alone, in a process that has loaded the libraries
    first_answer    the command, from its start to its first answer, imports included
    pages           milliseconds per answer, while the costs of all episodes are computed and after
    text            until the first answer, until the whole file is searched, and the number of requests
    peak_mib        of the server's process, after all of this

The peer reads the file into memory with Polars, makes the table of episodes there and filters one episode out
of it. The file is in the page cache for both.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import polars as pl

from skillpress.core.http_clients import open_directly
from skillpress.core.rollout_files import ROLLOUT_SCHEMA, ROW_GROUP, TRAJECTORY_KEY, join_rollouts
from skillpress.core.tables import write_table
from skillpress.core.task_files import write_tasks
from skillpress.core.trajectory import Task
from skillpress.pipeline.files import BASE_POLICY, DICTIONARY, EVALUATION_ROLLOUTS, split_file

CHUNK, TASKS, LONGEST_EPISODE = 65_536, 2000, 30
WORDS, TOKENS = 5000, 32_000
REQUESTS, WARM = 40, 3
"""Measured requests of each kind, and unmeasured ones before them."""
PAGES = {
    "list": "episodes",
    "list_sorted": "episodes?sort=reward&descending=1",
    "list_sorted_by_text": "episodes?sort=group&descending=1&offset=30000",
    "list_filtered": "episodes?won=0&policy=trained&min_steps=5&sort=steps",
    "list_by_cost": "episodes?min_cost=3&sort=cost",
    "list_by_phrase": "episodes?phrase=30",
    "about": "about",
    "dictionary": "dictionary",
    "episode": "episode/0-{episode}",
    "prompt": "episode/0-{episode}/prompt/0",
}
"""The requests; ``{episode}`` is a different one each time."""
SEARCHED = ("op(+, 7,", "no text has this")
"""A text that many episodes contain, and one that none does."""


def make_file(path: Path, steps: int, seed: int) -> None:
    """A rollout file with about this number of steps."""
    dice = np.random.default_rng(seed)
    words = np.array(["".join(dice.choice(list("etaoinshrdlu"), dice.integers(2, 9))) for _ in range(WORDS)])
    with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
        parts, episode = list[Path](), 0
        for first in range(0, steps, CHUNK):
            lengths = _lengths(dice, min(CHUNK, steps - first))
            parts.append(Path(scratch) / f"{len(parts)}.parquet")
            write_table(parts[-1], _rows(dice, words, lengths, episode), "rollouts", ROW_GROUP)
            episode += len(lengths)
        join_rollouts(path, parts)


def _lengths(dice: np.random.Generator, steps: int) -> np.ndarray:
    drawn = dice.integers(1, LONGEST_EPISODE + 1, steps)
    ends = np.cumsum(drawn)
    kept = drawn[: np.searchsorted(ends, steps) + 1].copy()
    kept[-1] -= ends[len(kept) - 1] - steps
    return kept[kept > 0]


def _rows(dice: np.random.Generator, words: np.ndarray, lengths: np.ndarray, first: int) -> pl.DataFrame:
    episodes, steps = len(lengths), int(lengths.sum())
    of = np.repeat(np.arange(episodes), lengths)
    step = np.arange(steps) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    number = first + np.arange(episodes)
    task, policy = number // 8 % TASKS, np.array(["explorer", "start", "trained"])[number // 8 // TASKS % 3]
    won = dice.random(episodes) < 0.5
    last = step == lengths[of] - 1
    invalid = np.where((dice.random(steps) < 0.1) & ~last, dice.integers(1, 4, steps), 0)
    a, b = dice.integers(1, 100, steps).astype(str), dice.integers(1, 100, steps).astype(str)
    sign = np.array(list("+-*/"))[dice.integers(0, 4, steps)]
    response = dice.integers(5, 40, steps)
    reward = np.where(last & won[of], 1.0, 0.0) - 0.1 * (invalid > 0)
    names = pl.Series(["", "not_admissible", "missing_action", "unclosed"])
    text = pl.concat_str
    frame = pl.DataFrame(
        {
            "task_id": pl.Series([f"countdown-{n:06}" for n in range(TASKS)]).gather(task[of]),
            "round": number[of] // 8 // TASKS,
            "policy": pl.Series(policy).gather(of),
            "run": pl.Series(np.zeros(steps, np.int32)),
            "rollout_index": pl.Series((number % 8).astype(np.int32)).gather(of),
            "won": won[of],
            "outcome": pl.Series(np.where(won, "won", np.where(number % 2, "stuck", "timeout"))).gather(of),
            "step": step.astype(np.int32),
            "thought": _sentences(dice, words, steps, 30),
            "action": pl.Series([f"op({s}, {x}, {y})" for s, x, y in zip(sign, a, b, strict=True)]),
            "observation": _sentences(dice, words, steps, 20),
            "invalid": names.gather(invalid),
            "reward": reward,
            "prompt_ids": _lists(dice, dice.integers(100, 200, steps)),
            "response_ids": _lists(dice, response),
            "logprobs": _lists(dice, response).list.eval(-pl.element() / 32_000).cast(pl.List(pl.Float32)),
            "first_observation": _sentences(dice, words, episodes, 40).gather(of),
        }
    )
    success = pl.struct(
        name=pl.lit("success"), value=pl.when(pl.col("reward") > 0).then(1.0).otherwise(0.0),
        credit=pl.lit("trajectory"),
    )  # fmt: skip
    span = pl.struct(
        version=pl.lit(0, pl.Int32),
        start=pl.lit(0, pl.Int32),
        end=pl.col("response_ids").list.len().cast(pl.Int32),
    )
    return frame.with_columns(
        group_id=text("policy", pl.lit("/run-"), "round", pl.lit("/"), "task_id"),
        terminated=pl.col("won"),
        truncated=~pl.col("won"),
        policy_version=pl.when(pl.col("policy") == "trained").then(30).otherwise(0).cast(pl.Int32),
        seed=pl.lit(0, pl.Int64),
        invalid=pl.when(pl.col("invalid") != "").then(pl.col("invalid")),
        reward_parts=pl.concat_list(success),
        weight_spans=pl.concat_list(span),
        state_key=pl.lit(None, pl.String),
    ).select(pl.col(name).cast(kind) for name, kind in ROLLOUT_SCHEMA.items())


def _sentences(dice: np.random.Generator, words: np.ndarray, count: int, length: int) -> pl.Series:
    chosen = words[dice.integers(0, len(words), (count, length))]
    return pl.DataFrame(chosen).select(pl.concat_str(pl.all(), separator=" ")).to_series()


def _lists(dice: np.random.Generator, lengths: np.ndarray) -> pl.Series:
    values = dice.integers(0, 32_000, int(lengths.sum()), dtype=np.int32)
    frame = pl.DataFrame({"row": np.repeat(np.arange(len(lengths)), lengths), "value": values})
    return frame.group_by("row", maintain_order=True).agg("value")["value"]


def make_tasks() -> list[Task]:
    """The tasks of the episodes."""
    return [
        Task(
            task_id=f"countdown-{number:06}",
            environment="countdown",
            seed=number,
            spec={"target": 1 + number % 99, "numbers": [1, 2, 3, 4][: 2 + number % 3]},
            split="test",
            stratum=f"{2 + number % 3} numbers",
        )
        for number in range(TASKS)
    ]


def prepare(home: Path, steps: int, seed: int) -> None:
    """An experiment's folder with one large rollout file."""
    from skillpress.environments.section import projection_without_keys
    from skillpress.models.policy.scratch import word_tokenizer
    from skillpress.skills.dictionary import save_fitted
    from skillpress.skills.fit import fit

    (home / EVALUATION_ROLLOUTS).parent.mkdir(parents=True)
    (home / "params.yaml").write_text("", encoding="utf-8")
    make_file(home / EVALUATION_ROLLOUTS, steps, seed)
    write_tasks(home / split_file("test"), make_tasks())
    projection = projection_without_keys("countdown")
    assert projection is not None
    alphabet = projection.alphabet
    dice = random.Random(seed)
    routines = [[dice.choice(alphabet) for _ in range(dice.randint(2, 4))] for _ in range(12)]
    corpus = [[skill for _ in range(3) for skill in dice.choice(routines)] for _ in range(500)]
    save_fitted(home / DICTIONARY, fit(corpus, alphabet, 4))
    word_tokenizer(tuple(f"w{number}" for number in range(TOKENS))).save_pretrained(home / BASE_POLICY)


def served(home: Path) -> dict[str, Any]:
    """The figures of the command."""
    begun = time.perf_counter()
    command = [sys.executable, "-m", "skillpress.cli.command", "view", str(home), "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        line = running.stdout.readline()
        episodes, address = int(line.split()[0].replace(",", "")), line.split()[5] + "api/"
        asked(address + "episodes")
        found: dict[str, Any] = {"episodes": episodes, "first_answer_seconds": time.perf_counter() - begun}
        found["pages_milliseconds_at_first"] = pages(address, episodes)
        found["costs_known_seconds"] = wait_for_costs(address, begun)
        found["pages_milliseconds"] = pages(address, episodes)
        found["text"] = {text: searched(address, text) for text in SEARCHED}
        found["peak_mib"] = peak_mib(running.pid)
        running.terminate()
        running.wait(timeout=60)
    return found


def pages(address: str, episodes: int) -> dict[str, dict[str, float]]:
    """Each kind of page to its milliseconds."""
    dice = random.Random(0)
    found = {}
    for name, path in PAGES.items():
        took = [
            1000 * asked(address + path.format(episode=dice.randrange(episodes)))[0]
            for _ in range(WARM + REQUESTS)
        ][WARM:]
        found[name] = {"median": statistics.median(took), "worst": max(took)}
    return found


def searched(address: str, text: str) -> dict[str, float]:
    """Ask until the whole file is searched, as the page does."""
    took: list[float] = []
    told: dict[str, Any] = {"complete": False}
    while not told["complete"]:
        seconds, told = asked(f"{address}episodes?text={quote(text)}")
        took.append(seconds)
    return {
        "found": told["total"],
        "first_answer_milliseconds": 1000 * took[0],
        "worst_answer_milliseconds": 1000 * max(took),
        "requests": len(took),
        "whole_file_seconds": sum(took),
    }


def wait_for_costs(address: str, begun: float) -> float:
    """Seconds since the command's start until the cost of every episode was known."""
    while asked(address + "about")[1]["skills_progress"] < 1:
        time.sleep(0.5)
    return time.perf_counter() - begun


def peak_mib(process: int | str = "self") -> float:
    """The peak of a process's resident memory."""
    lines = Path(f"/proc/{process}/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:"))


def asked(address: str) -> tuple[float, Any]:
    """Seconds until the answer arrived, and the answer."""
    begun = time.perf_counter()
    with open_directly(address, 600) as answer:
        content = answer.read()
    return time.perf_counter() - begun, json.loads(content)


def opened(rollouts: Path) -> dict[str, float]:
    """The index alone."""
    from skillpress.reports.viewer.index import open_rollouts

    begun = time.perf_counter()
    open_rollouts(rollouts)
    return {"seconds": time.perf_counter() - begun, "peak_mib": peak_mib()}


def eager(rollouts: Path) -> dict[str, float]:
    """The peer: everything in memory."""
    begun = time.perf_counter()
    rows = pl.read_parquet(rollouts)
    read = time.perf_counter()
    table = rows.group_by(TRAJECTORY_KEY, maintain_order=True).agg(
        pl.len(), pl.col("won", "outcome", "policy", "policy_version").first(), pl.col("reward").sum()
    )
    done = time.perf_counter()
    key = table.select(TRAJECTORY_KEY).row(table.height // 2, named=True)
    episode = rows.filter(**key).to_dicts()
    assert episode
    return {
        "read_seconds": read - begun,
        "table_seconds": done - read,
        "episode_milliseconds": 1000 * (time.perf_counter() - done),
        "peak_mib": peak_mib(),
    }


ALONE: dict[str, Callable[[Path], dict[str, float]]] = {"open": opened, "eager": eager}
"""Measurements that need a separate process."""


def alone(name: str, rollouts: Path) -> dict[str, float]:
    """One of ``ALONE``."""
    command = [sys.executable, "-m", "benchmarks.viewer", "--alone", name, "--rollouts", str(rollouts)]
    told: dict[str, float] = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    return told


def main() -> None:
    """Print the measurement as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--alone", choices=list(ALONE), help=argparse.SUPPRESS)
    parser.add_argument("--rollouts", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.alone:
        print(json.dumps(ALONE[chosen.alone](chosen.rollouts)))
        return
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        prepare(home, chosen.steps, chosen.seed)
        rollouts = home / EVALUATION_ROLLOUTS
        result = {
            "steps": chosen.steps,
            "file_mib": rollouts.stat().st_size / 2**20,
            "open": alone("open", rollouts),
            "view": served(home),
            "eager_read": alone("eager", rollouts),
            "measured": {
                "date": datetime.now(UTC).date().isoformat(),
                "machine": platform.processor() or platform.machine(),
                "cores": os.cpu_count(),
                "niceness": os.nice(0),
                "load_at_end": os.getloadavg()[0],
                "polars": pl.__version__,
            },
        }
    json.dump(result, sys.stdout, indent=2)
    print()


if __name__ == "__main__":
    main()
