"""Corpora of skill sequences to measure dictionaries on.

Two imitate successful episodes of ALFWorld and TextWorld-Cooking under the paper's projections: a search of
random length, then the routine of a random kind of task, with slips. The third is Countdown: real puzzles,
solved by the oracle with detours in the real environment, and projected.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from skillpress.core.seeds import derive, generator
from skillpress.environments.countdown.parameters import CountdownParameters
from skillpress.environments.countdown.skills import CountdownProjection, skill
from skillpress.environments.section import SplitSizes

Sequences = list[tuple[str, ...]]

ALFWORLD = ("Explore", "Take", "Transport", "Deliver", "Transform")
COOKING = (
    "Read_Recipe", "Inspect", "Explore", "Open", "Take", "Deliver", "Cut", "Cook", "Prepare_Meal", "Eat_Meal",
)  # fmt: skip
COUNTDOWN = CountdownProjection().alphabet


def alfworld_like(count: int, seed: int) -> Sequences:
    """5 skills, 5 to 50 per sequence: search, take, perhaps transform, deliver; once or for two objects."""
    rng = generator(seed, "alfworld-like")
    return _of_length(5, 50, count, lambda: _household_task(rng))


def _household_task(rng: np.random.Generator) -> list[str]:
    skills: list[str] = []
    kind = rng.integers(6)
    for _ in range(2 if kind == 5 else 1):
        for _ in range(rng.geometric(0.18)):
            skills.append("Explore")
            if rng.random() < 0.04:
                skills += ["Take", *["Transport"] * rng.integers(1, 3), "Deliver"]
        skills += ["Take"] * (1 + (rng.random() < 0.1))
        if kind in (1, 2, 3):
            skills += ["Transport"] * rng.integers(1, 4) + ["Transform"] * rng.integers(1, 3)
        if kind == 4:
            return [*skills, *["Transport"] * rng.integers(1, 5), "Transform"]
        skills += ["Transport"] * rng.integers(1, 4) + ["Explore"] * (rng.random() < 0.1) + ["Deliver"]
    return skills


def cooking_like(count: int, seed: int) -> Sequences:
    """10 skills: read the recipe, then fetch, cut and cook each ingredient, prepare and eat."""
    rng = generator(seed, "cooking-like")
    return _of_length(5, 40, count, lambda: _meal(rng))


def _meal(rng: np.random.Generator) -> list[str]:
    hard = rng.random() < 0.5
    skills = ["Inspect"] * rng.integers(0, 2) + ["Read_Recipe"]
    for _ in range(rng.integers(2, 4) if hard else 1):
        skills += ["Explore"] * rng.integers(0, 4 if hard else 1) + ["Open"] * rng.integers(0, 3) + ["Take"]
    for _ in range(rng.integers(1, 4) if hard else 1):
        skills += ["Cut"] * rng.integers(0, 2) + ["Cook"] * rng.integers(0, 2)
        skills += ["Inspect"] * (rng.random() < 0.15) + ["Deliver"] * (rng.random() < 0.1)
    return [*skills, "Prepare_Meal", "Eat_Meal"]


def countdown_like(count: int, seed: int) -> Sequences:
    """26 skills: puzzles of 3 and 4 numbers, solved with 20% detours, roles from the real projection."""
    section = CountdownParameters(
        name="countdown", max_steps=30, min_numbers=3, max_numbers=4, min_target=10, max_target=999
    )
    solve, environment = section.make_oracle(), section.make()
    sequences: Sequences = []
    for task in section.make_tasks(SplitSizes(train=count, validation=0, test=0), seed):
        environment.reset(task)
        infos = [environment.step(word)[3] for word in solve(task, 0.2, derive(seed, task.task_id))]
        labels = [skill(info.action, task.spec["target"]) for info in infos if info.action is not None]
        sequences.append(tuple(label for label in labels if label is not None))
    return sequences


CORPORA: dict[str, tuple[Callable[[int, int], Sequences], tuple[str, ...]]] = {
    "alfworld_like": (alfworld_like, ALFWORLD),
    "cooking_like": (cooking_like, COOKING),
    "countdown_like": (countdown_like, COUNTDOWN),
}
"""Name to (number of sequences, seed) -> corpus, and its alphabet."""


def _of_length(shortest: int, longest: int, count: int, draw: Callable[[], list[str]]) -> Sequences:
    sequences: Sequences = []
    while len(sequences) < count:
        skills = draw()
        if shortest <= len(skills) <= longest:
            sequences.append(tuple(skills))
    return sequences
