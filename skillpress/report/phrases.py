"""Table 10: the phrases that a method's successes are made of.

A dictionary is fitted (Eq. 3-4, the E-step) to the skill sequences of the method's won evaluation
episodes, and its learned phrases are listed by how often the minimal segmentation of those sequences
uses them. So every method has one, also those that were trained without a dictionary.
"""

from __future__ import annotations

from collections.abc import Mapping

from skillpress.environments import EnvironmentBundle
from skillpress.evaluation.paper import Cell, Line, paper_row
from skillpress.evaluation.play import Play
from skillpress.skills import fit

SHOWN = 4
"""Phrases per cell; the paper shows three or four."""
UNIT = "uses"
"""What stands in parentheses behind each phrase."""


def phrase_line(
    environment: str, heading: str, world: EnvironmentBundle, plays: Mapping[str, Play], max_length: int
) -> Line:
    """An environment's line of Table 10; ``max_length`` is L, skills in a phrase at most."""
    cells = {
        method: phrase_cell(world, plays[method], max_length, paper)
        if method in plays
        else Cell(unit=UNIT, paper=paper)
        for method, paper in paper_row(10, environment, "phrases").items()
    }
    return Line(environment, heading, "phrases", "phrases and their uses", cells)


def phrase_cell(world: EnvironmentBundle, play: Play, max_length: int, paper: str) -> Cell:
    """The phrases used most, most first; ``episodes`` counts the successes they were fitted to."""
    corpus = success_sequences(world, play)
    if not corpus:
        return Cell("none", unit=UNIT, paper=paper)
    dictionary = fit(corpus, world.projection.alphabet, max_length)
    counted = zip(dictionary.counts, dictionary.phrases, strict=True)
    learned = sorted(((n, p) for n, p in counted if len(p) > 1), key=lambda pair: (-pair[0], pair[1]))
    text = "; ".join(f"{' → '.join(phrase)} ({uses:,}×)" for uses, phrase in learned[:SHOWN])
    return Cell(text or "none", unit=UNIT, episodes=len(corpus), paper=paper)


def success_sequences(world: EnvironmentBundle, play: Play) -> list[tuple[str, ...]]:
    """φ(τ) of every won episode, actions without a skill left out; empty ones dropped."""
    won = Play(play.steps.filter("won"), play.tasks, play.votes)
    labels = (world.projection(play.tasks[t.task_id], t) for t in won.trajectories())
    sequences = (tuple(label for label in episode if label is not None) for episode in labels)
    return [sequence for sequence in sequences if sequence]
