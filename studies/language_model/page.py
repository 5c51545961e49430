"""What of docs/language_model.md is made from the record."""

from __future__ import annotations

from docs.made import Parts
from studies.language_model.behaviour import behaviour
from studies.language_model.episodes import FOLDER, puzzles, read_episodes
from studies.language_model.found import found
from studies.language_model.names import BENCHMARK, QUESTION
from studies.language_model.trainings import each_against_random, each_training
from studies.study.results import Results
from studies.study.sections import findings, levels, state


def parts(results: Results) -> Parts:
    """Name of a part to what makes its lines."""
    return {
        "state": lambda: state(results),
        "claims": lambda: findings(results, QUESTION),
        "trainings": lambda: each_training(results),
        "against_random": lambda: each_against_random(results),
        "found": lambda: found(results),
        "behaviour": lambda: behaviour(results),
        "episodes": lambda: puzzles(read_episodes(FOLDER)),
        "levels": lambda: levels(results, BENCHMARK),
    }
