"""Does a skill that ``skills --write`` mined help another policy at tasks that it was not mined from?

    python -m benchmarks.skills_loop > benchmarks/results/skills_loop.json

For each seed, with 24 kinds of tasks in halves A and B (``world.py``):

1. A policy learns each half by heart (REINFORCE), and plays training sessions with its outcomes as a log.
2. ``skillpress skills LOG --write DIR`` with its defaults makes the skills of each half.
3. A reader, which cannot learn kinds by heart, is trained on A, with A's skills in every other episode.
4. The reader, which has seen no task of B, plays new tasks of B: without skills, with B's skills, with A's
   skills (which name other kinds), and without skills again.

Differences to the first of the four are paired by task, with 95% intervals over tasks.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import numpy as np

from benchmarks.skills_loop.policy import LinearPolicy, ReadSkill, kind_count, mounted
from benchmarks.skills_loop.world import Kind, WorldTask, kinds, record_of, tasks
from skillpress.cli.command import main as skillpress
from skillpress.evaluation.statistics.bootstrap import over_tasks
from skillpress.evaluation.statistics.paired import mcnemar

ARMS = ("without", "with", "of other kinds", "without again")


def main() -> int:
    """Run the loop for each seed; print JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--kinds", type=int, default=24)
    parser.add_argument("--episodes", type=int, default=12_000, help="that each policy is trained on")
    parser.add_argument("--sessions", type=int, default=240, help="of each half that skills are mined from")
    parser.add_argument("--tasks", type=int, default=200, help="unseen tasks of the trial")
    parser.add_argument("--rollouts", type=int, default=4)
    chosen = parser.parse_args()
    begun = time.process_time()
    rows = [loop(seed, chosen) for seed in range(chosen.seeds)]
    spent = round(time.process_time() - begun, 1)
    record = {"setting": vars(chosen), "cores": os.cpu_count(), "cpu_seconds": spent, "rows": rows}
    print(json.dumps(record, indent=1))
    return 0


def loop(seed: int, chosen: argparse.Namespace) -> dict[str, object]:
    """One seed's chain from sessions to a verdict."""
    every = kinds(chosen.kinds, seed)
    halves = {"a": every[: chosen.kinds // 2], "b": every[chosen.kinds // 2 :]}
    skills: dict[str, list[ReadSkill]] = {}
    row: dict[str, object] = {"seed": seed}
    for name, half in halves.items():
        chance = np.random.default_rng([seed, ord(name)])
        expert = LinearPolicy(by_heart=True, rate=0.5, kinds=kind_count(every), chance=chance)
        for task in tasks(half, chosen.episodes, f"learn{name}"):
            expert.play(task, (), learn=True)
        sessions = [expert.play(it, (), learn=False) for it in tasks(half, chosen.sessions, f"mine{name}")]
        skills[name] = mine([record_of(session) for session in sessions])
        row[f"sessions_{name}"] = {
            "won": round(sum(session.won for session in sessions) / len(sessions), 3),
            "skills": len(skills[name]),
            "routines_as_planted": planted(half, skills[name]),
        }
    reader = LinearPolicy(
        by_heart=False, rate=0.1, kinds=kind_count(every), chance=np.random.default_rng([seed, 0])
    )
    for number, task in enumerate(tasks(halves["a"], chosen.episodes, "reada")):
        reader.play(task, skills["a"] if number // len(halves["a"]) % 2 else (), learn=True)
    row["reader_follows"] = [round(float(weight), 3) for weight in reader.follow]
    return row | trial(reader, skills, tasks(halves["b"], chosen.tasks, "trial"), chosen.rollouts, seed)


def mine(log: Sequence[dict[str, object]]) -> list[ReadSkill]:
    """The skills that the command makes of a log."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        lines = "".join(json.dumps(record) + "\n" for record in log)
        (folder / "log.jsonl").write_text(lines, encoding="utf-8")
        paths = ["--write", str(folder / "skills"), "--output", str(folder / "page")]
        with redirect_stdout(StringIO()):
            ended = skillpress(["skills", str(folder / "log.jsonl"), *paths])
        if ended:
            raise RuntimeError(f"skillpress skills ended with {ended}")
        return mounted(folder / "skills")


def planted(half: Sequence[Kind], skills: Sequence[ReadSkill]) -> int:
    """Kinds whose routine is the steps of a skill, exactly."""
    return sum(any(skill.steps == kind.routine for skill in skills) for kind in half)


def trial(
    reader: LinearPolicy,
    skills: dict[str, list[ReadSkill]],
    unseen: list[WorldTask],
    rollouts: int,
    seed: int,
) -> dict[str, object]:
    """Success in each arm, and the differences to the first one."""
    mounts: dict[str, Sequence[ReadSkill]] = dict(zip(ARMS, ((), skills["b"], skills["a"], ()), strict=True))
    won = {
        arm: np.array(
            [[reader.play(task, mount, learn=False).won for _ in range(rollouts)] for task in unseen]
        )
        for arm, mount in mounts.items()
    }
    base = won[ARMS[0]]
    found: dict[str, object] = {"success": {arm: round(float(it.mean()), 4) for arm, it in won.items()}}
    for arm in ARMS[1:]:
        differences = won[arm].mean(axis=1) - base.mean(axis=1)
        low, high, p = over_tasks(differences, seed)
        only = int((won[arm][:, 0] & ~base[:, 0]).sum()), int((base[:, 0] & ~won[arm][:, 0]).sum())
        found[arm] = {
            "points": [round(100 * float(value), 1) for value in (differences.mean(), low, high)],
            "p": round(p, 4),
            "first_rollouts": {"only_with": only[0], "only_without": only[1], "p": round(mcnemar(*only), 4)},
        }
    return found


if __name__ == "__main__":
    sys.exit(main())
