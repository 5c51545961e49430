"""ALFWorld's stock engine against the patched one, in one run; and memory over many episodes.

    python -m benchmarks.alfworld [--games-per-type 2] [--episodes 1000] > benchmarks/results/alfworld.json

The stock and the patched engine take turns to load, reset and play the same games (the stored walkthrough,
then a round of looking), so that other work on the machine affects both. Every scene is compared on the way.
A patched load is measured twice: for a game that was never translated, and for one whose translation is
cached. The environment's own steps (``Alfworld.step``) are timed separately.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import psutil
from alfworld.agents.environment.alfred_tw_env import AlfredDemangler
from textworld import EnvInfos
from textworld.envs.pddl.pddl import PddlEnv

from skillpress.environments.alfworld.engine import read_game
from skillpress.environments.alfworld.engine_patches import PATCHES, patched
from skillpress.environments.alfworld.environment import Alfworld
from skillpress.environments.alfworld.games import TASK_TYPES, find_tree, game_paths
from skillpress.environments.alfworld.parameters import AlfworldParameters
from skillpress.environments.alfworld.translations import translated
from skillpress.environments.section import SplitSizes

ABOUT = ("look", "inventory", "help", "no such command")
Times = dict[str, list[float]]


def timed(times: list[float], work: Callable[[], Any]) -> Any:
    """Do the work and note its milliseconds."""
    started = time.perf_counter()
    done = work()
    times.append(1000 * (time.perf_counter() - started))
    return done


def play(path: Path, times: Times) -> list[tuple[str, tuple[str, ...], bool]]:
    """Load, reset and play one game; returns every scene."""
    game = read_game(path)
    engine = AlfredDemangler(PddlEnv(EnvInfos(won=True, admissible_commands=True)), shuffle=False)
    timed(times.setdefault("load", []), lambda: engine.load(game))
    state = timed(times.setdefault("reset", []), engine.reset)
    scenes = [(state.feedback, tuple(state.admissible_commands), bool(state.won))]
    for command in (*game["walkthrough"], *ABOUT):
        state, _, _ = timed(times.setdefault("step", []), partial(engine.step, command))
        scenes.append((state.feedback, tuple(state.admissible_commands), bool(state.won)))
    return scenes


def compare(paths: list[Path]) -> dict[str, Any]:
    """Times of the stock engine, and of the patched one with an empty and with a full cache."""
    stock: Times = {}
    fresh: Times = {}
    cached: Times = {}
    with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ, XDG_CACHE_HOME=folder):
        for path in paths:
            with patched(()):
                expected = play(path, stock)
            with patched(PATCHES):
                assert play(path, fresh) == expected, f"{path}: the patched engine says something else"
                translated.cache_clear()  # from the disk, not from memory
                assert play(path, cached) == expected
    return {
        "games": len(paths),
        "steps": len(stock["step"]),
        "identical": True,
        "milliseconds": {
            name: {
                "stock": _spread(stock[name]),
                "patched, first time": _spread(fresh[name]),
                "patched": _spread(cached[name]),
            }
            for name in ("load", "reset", "step")
        },
        "times_faster": {
            name: statistics.median(stock[name]) / statistics.median(cached[name])
            for name in ("load", "reset", "step")
        },
    }


def endure(section: AlfworldParameters, episodes: int) -> dict[str, Any]:
    """Play ``episodes`` random episodes of up to ``max_steps`` in one environment."""
    tasks = [task for task in section.make_tasks(SplitSizes(1, 1, 140), 0) if task.split == "test"]
    environment, drawn, process = Alfworld(section), random.Random(0), psutil.Process()
    times: Times = {"reset": [], "step": []}
    memory: dict[str, float] = {"0": process.memory_info().rss / 2**20}
    started = time.perf_counter()
    for number in range(1, episodes + 1):
        task = tasks[number % len(tasks)]
        _, info = timed(times["reset"], partial(environment.reset, task))
        over = False
        while not over:
            action = drawn.choice(section.explorer_actions(info))
            answer = timed(times["step"], partial(environment.step, action))
            over, info = answer[1] or answer[2], answer[3]
        if number % max(1, episodes // 10) == 0:
            memory[str(number)] = process.memory_info().rss / 2**20
            print(f"{number} of {episodes} episodes", file=sys.stderr)
    seconds = time.perf_counter() - started
    return {
        "episodes": episodes,
        "max_steps": section.max_steps,
        "milliseconds": {name: _spread(values) for name, values in times.items()},
        "steps_per_second_with_loads": len(times["step"]) / seconds,
        "memory_mib": memory,
    }


def _spread(values: list[float]) -> dict[str, float]:
    return {
        "median": statistics.median(values),
        "p95": statistics.quantiles(values, n=20, method="inclusive")[-1],
        "largest": max(values),
    }


def main() -> None:
    """Print the measurement as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--games-per-type", type=int, default=2)
    parser.add_argument("--episodes", type=int, default=1000)
    parser.add_argument("--data", default="", help="as environment.data; ALFWORLD_DATA by default")
    options = parser.parse_args()
    tree = find_tree(options.data)
    paths = game_paths(tree, "valid_seen")
    random.Random(0).shuffle(paths)
    chosen = [
        p for kind in TASK_TYPES for p in [q for q in paths if f"/{kind}-" in q][: options.games_per_type]
    ]
    section = AlfworldParameters(name="alfworld", max_steps=20, data=options.data)
    result = {
        "engines": compare([tree / path for path in chosen]),
        "environment": endure(section, options.episodes),
        "machine": {
            "python": platform.python_version(),
            "cores": os.cpu_count(),
            "load": os.getloadavg()[0],
        },
    }
    json.dump(result, sys.stdout, indent=2)
    print()


if __name__ == "__main__":
    main()
