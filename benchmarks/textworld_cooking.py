"""TextWorld-Cooking against stock TextWorld: generating games, playing them, memory.

    python -m benchmarks.textworld_cooking [--games 8] [--episodes 1000]

Everything runs in one run, alternating with its peer, and writes JSON to standard output and
benchmarks/results/textworld_cooking.json:

- ``generation``: seconds per game of ``tw-make tw-cooking``, one command per game as its users run it, and of
  ours, one process, one game at a time, without its start since it generates any number; then ``make_tasks``
  with all processes, whose start and rejected designs count. CPU seconds (including children's) are given
  beside wall-clock seconds, which other work on the machine distorts.
- ``play``: CPU milliseconds per step and per reset on the same games and actions: ours, which always computes
  admissible commands, facts and memory; stock ``textworld.gym`` with and without admissible commands.
- ``memory``: resident memory of one environment's process over many episodes of several games.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import textworld
import textworld.gym

from skillpress.core.storage import write_json
from skillpress.core.trajectory import Task
from skillpress.environments.section import SplitSizes
from skillpress.environments.textworld_cooking.design import HARD, SIMPLE, GameSettings
from skillpress.environments.textworld_cooking.environment import TextWorldCooking, explorer_actions
from skillpress.environments.textworld_cooking.games import GameCache
from skillpress.environments.textworld_cooking.parameters import CookingParameters
from skillpress.environments.textworld_cooking.tasks import describe, make_tasks, task_of

RESULT = Path(__file__).parent / "results" / "textworld_cooking.json"
WARM_UP = 100
"""Episodes before memory is first measured."""


def settings_of(number: int) -> GameSettings:
    """The ratio of simple to hard is 4:1, as in the paper."""
    return HARD if number % 5 == 4 else SIMPLE[number % 5]


def seconds(work: Callable[[], object]) -> tuple[float, float]:
    """(wall, CPU) seconds of a call, its child processes included."""
    started, used = time.perf_counter(), _used()
    work()
    return time.perf_counter() - started, _used() - used


def _used() -> float:
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def tw_make(settings: GameSettings, seed: int, folder: Path) -> None:
    """Make a game with the public command."""
    words = ["tw-cooking", "--recipe", settings.ingredients, "--take", settings.ingredients, "--go"]
    words += [settings.rooms, "--open", *["--cook"] * settings.cook, *["--cut"] * settings.cut]
    command = [Path(sys.executable).with_name("tw-make"), *words, "--seed", seed]
    command += ["--output", folder / f"{seed}.z8", "--silent"]
    subprocess.run(list(map(str, command)), check=True, capture_output=True)


def measure_generation(games: int, folder: Path) -> dict[str, Any]:
    """Seconds per game of each way."""
    cache = GameCache(folder / "one")
    cache.program(SIMPLE[0], 10_000)  # reads the grammar
    theirs, ours = [], []
    for seed in range(games):
        settings = settings_of(seed)
        theirs.append(seconds(partial(tw_make, settings, seed, folder / "theirs")))
        ours.append(seconds(partial(cache.program, settings, seed)))
    section = CookingParameters(name="textworld_cooking", max_steps=40, games=str(folder / "all"))
    sizes = SplitSizes(4 * games, games, games)
    whole = seconds(lambda: list(make_tasks(section, sizes, 0)))
    made = 6 * games
    result = {
        "games": games,
        "tw_make_seconds_per_game": _median(theirs),
        "ours_seconds_per_game": _median(ours),
        "make_tasks": {"games": made, "wall_seconds": whole[0], "games_per_second": made / whole[0]},
    }
    pairs = list(zip(theirs, ours, strict=True))
    result["times_as_fast"] = {
        clock: statistics.median(their[place] / our[place] for their, our in pairs)
        for place, clock in enumerate(("wall", "cpu"))
    }
    return result


def _median(times: list[tuple[float, float]]) -> dict[str, float]:
    return {
        clock: statistics.median(pair[place] for pair in times) for place, clock in enumerate(("wall", "cpu"))
    }


def taken(step: Callable[[str], object], actions: Sequence[str]) -> None:
    """Take the actions."""
    for action in actions:
        step(action)


def measure_play(tasks: list[Task], section: CookingParameters) -> dict[str, Any]:
    """CPU milliseconds per step and reset of ours and stock, medians over episodes that alternate."""
    environment = TextWorldCooking(section)
    times: dict[str, dict[str, list[float]]] = {}

    def note(who: str, reset: float, play: float, steps: int) -> None:
        found = times.setdefault(who, {"step": [], "reset": []})
        found["step"].append(1000 * play / steps)
        found["reset"].append(1000 * reset)

    for number, task in enumerate(tasks):
        actions = random_episode(environment, task, number)
        _, reset = seconds(partial(environment.reset, task))
        _, play = seconds(partial(taken, environment.step, actions))
        note("ours", reset, play, len(actions))
        program = str(
            GameCache(section.cache).program(GameSettings.from_spec(task.spec["settings"]), task.seed)
        )
        for who, infos in (
            ("stock_with_admissible", textworld.EnvInfos(admissible_commands=True, won=True, lost=True)),
            ("stock_without_admissible", textworld.EnvInfos(won=True, lost=True)),
        ):
            env = textworld.gym.make(textworld.gym.register_game(program, infos, max_episode_steps=100))
            env.reset()  # loads the program, as reset of a new game does in ours
            _, reset = seconds(env.reset)
            _, play = seconds(partial(taken, env.step, actions))
            note(who, reset, play, len(actions))
            env.close()
    result: dict[str, Any] = {
        who: {f"{what}_ms": statistics.median(found[what]) for what in found} for who, found in times.items()
    }
    ours = times["ours"]["step"]
    result["steps_times_as_fast"] = {
        who: statistics.median(their / our for their, our in zip(times[who]["step"], ours, strict=True))
        for who in times
        if who != "ours"
    }
    return {"episodes": len(tasks), **result}


def random_episode(environment: TextWorldCooking, task: Task, seed: int) -> list[str]:
    """Actions of a random walk that neither wins nor loses within 30 steps, or up to where it ended."""
    random = Random(seed)
    _, info = environment.reset(task)
    actions: list[str] = []
    for _ in range(30):
        actions.append(random.choice([*explorer_actions(info), "look"]))
        _, terminated, truncated, info = environment.step(actions[-1])
        if terminated or truncated:
            break
    return actions


def measure_memory(tasks: list[Task], section: CookingParameters, episodes: int) -> dict[str, float]:
    """Resident megabytes after a warm-up and after the episodes that follow."""
    environment = TextWorldCooking(section)
    for number in range(WARM_UP):
        random_episode(environment, tasks[number % len(tasks)], number)
    before = resident()
    for number in range(episodes):
        random_episode(environment, tasks[number % len(tasks)], number)
    after = resident()
    growth = 1024 * (after - before) / episodes
    return {"episodes": episodes, "before_mb": before, "after_mb": after, "growth_kb_per_episode": growth}


def resident() -> float:
    """Megabytes of this process in memory."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--games", type=int, default=8, help="games to generate in each way")
    parser.add_argument("--episodes", type=int, default=1000, help="episodes to watch memory over")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        section = CookingParameters(name="textworld_cooking", max_steps=1000, games=str(folder / "one"))
        generation = measure_generation(options.games, folder)
        tasks = [task_of(describe(settings_of(seed), seed), "test") for seed in range(options.games)]
        result = {
            "machine": {"processor": platform.processor() or platform.machine(), "cores": os.cpu_count()},
            "load_average_at_end": 0.0,
            "textworld": textworld.__version__,
            "generation": generation,
            "play": measure_play(tasks * 3, section),
            "memory": measure_memory(tasks, section, options.episodes),
        }
    result["load_average_at_end"] = os.getloadavg()[0]
    write_json(RESULT, result)
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
