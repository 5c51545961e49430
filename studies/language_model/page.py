"""What of docs/language_model.md, and of the README, is made from the record."""

from __future__ import annotations

from collections.abc import Iterator

from docs.made import Parts
from docs.words import NONE, table
from studies.language_model.behaviour import behaviour
from studies.language_model.episodes import FOLDER, puzzles, read_episodes
from studies.language_model.found import found
from studies.language_model.names import BENCHMARK, NAMES, QUESTION
from studies.language_model.trainings import each_against_random, each_training
from studies.study.results import FLOORS, Results
from studies.study.sections import findings, levels, state


def parts(results: Results) -> Parts:
    """Name of a part to what makes its lines."""
    return {
        "state": lambda: state(results),
        "claims": lambda: findings(results, QUESTION),
        "trainings": lambda: each_training(results),
        "against_random": lambda: each_against_random(results),
        "found": lambda: found(results),
        "language_model_found": lambda: found(results),
        "behaviour": lambda: behaviour(results),
        "episodes": lambda: puzzles(read_episodes(FOLDER)),
        "levels": lambda: levels(results, BENCHMARK),
        "language_model_in_short": lambda: in_short(results),
    }


def in_short(results: Results) -> Iterator[str]:
    """Success of the floors and of what training made of the start. A sentence while a run is missing."""
    entry = results.plan.benchmarks[BENCHMARK]
    missing = results.planned[BENCHMARK] - results.recorded[BENCHMARK]
    if missing:
        yield f"Runs are missing: {missing} of {results.planned[BENCHMARK]}."
        return
    rows, size = [], ""
    for method, words in (FLOORS | NAMES).items():
        level = results.level(BENCHMARK, method, entry.outcome)
        gain = results.gain(BENCHMARK, method, entry.outcome)
        rows.append((words, level.in_percent() if level else NONE, gain.in_points() if gain else NONE))
        size = f"{level.seeds} seeds of {level.tasks:,} puzzles" if level else size
    yield from table(("SmolLM2-135M", f"Pass@1 (%), {size}", "points above the start"), rows)
