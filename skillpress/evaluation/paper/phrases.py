"""Tables 10 and 11: the phrases in a method's successes.

The tables use two dictionaries. One is fitted (Eq. 3-4, the E-step) to the skill sequences of the method's
won evaluation episodes, so every method has one, including those trained without a dictionary. The other was
fitted by the last training step, which shaped its rewards with it if the method uses it. Over several
training seeds its uses are summed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import polars as pl

from skillpress.core.trajectory import Skills, skill_sequence
from skillpress.environments.section import Projection
from skillpress.evaluation.paper.layout import Line, PaperCell, paper_row, places
from skillpress.evaluation.paper.method_episodes import MethodEpisodes
from skillpress.skills.fit import fit

SHOWN = 4
"""Number of phrases per cell; the paper shows three or four."""
UNIT = "uses"
"""The unit in parentheses after each phrase."""

Fitted = Mapping[str, tuple[Mapping[Skills, int], int]]
"""For each method, the learned phrases of its fitted dictionary with their uses, and its number of successes.
"""


def fit_each(projection: Projection, by_method: Mapping[str, MethodEpisodes], max_length: int) -> Fitted:
    """The dictionary of every method's successes; without phrases if it has none. ``max_length`` is L."""
    found: dict[str, tuple[Mapping[Skills, int], int]] = {}
    for method, played in by_method.items():
        corpus = success_sequences(projection, played)
        learned = fit(corpus, projection.alphabet, max_length).learned_counts if corpus else {}
        found[method] = (learned, len(corpus))
    return found


def phrase_lines(
    name: str, heading: str, fitted: Fitted, by_method: Mapping[str, MethodEpisodes]
) -> tuple[Line, ...]:
    """An environment's lines of Table 10: the fitted dictionary's phrases, and the last training step's."""
    of_fitted, of_last = {}, {}
    for method, paper in places(paper_row(10, name, "phrases"), by_method).items():
        of_fitted[method] = of_last[method] = PaperCell(unit=UNIT, paper=paper)
        if method in by_method:
            learned, episodes = fitted[method]
            of_fitted[method] = PaperCell(most_used(learned), unit=UNIT, episodes=episodes, paper=paper)
        if method in by_method and (last := by_method[method].last_dictionaries):
            uses: Counter[Skills] = Counter()
            for dictionary in last:
                uses.update(dictionary)
            of_last[method] = PaperCell(most_used(uses), unit=UNIT, episodes=None, paper=paper)
    lines = (
        ("phrases", "phrases and their uses", of_fitted),
        ("phrases_last_step", "phrases of the last training step", of_last),
    )
    return tuple(
        Line(environment=name, heading=heading, key=key, label=label, cells=cells)
        for key, label, cells in lines
    )


def most_used(learned: Mapping[Skills, int]) -> str:
    """The most used phrases, in decreasing order; ties are in the order of their skills."""
    ranked = sorted(learned.items(), key=lambda item: (-item[1], item[0]))
    return "; ".join(f"{' → '.join(phrase)} ({uses:,}×)" for phrase, uses in ranked[:SHOWN]) or "none"


def membership_lines(
    name: str,
    phrases: Sequence[Skills],
    fitted: Fitted,
    by_method: Mapping[str, MethodEpisodes],
) -> Iterator[Line]:
    """An environment's lines of Table 11: whether each phrase is in the two dictionaries."""
    for kind, heading in (("fitted", "Fitted to the successes"), ("last_step", "Of the last training step")):
        for phrase in phrases:
            key = "_".join(phrase).lower()
            cells = {}
            for method, paper in places(paper_row(11, name, f"fitted_{key}"), by_method).items():
                cells[method] = PaperCell(paper=paper)
                if method not in by_method:
                    continue
                learned, episodes = fitted[method]
                last = by_method[method].last_dictionaries
                found = [phrase in one for one in ((learned,) if kind == "fitted" else last)]
                if found:
                    cells[method] = membership(found, episodes if kind == "fitted" else None, paper)
            label = " → ".join(phrase)
            yield Line(environment=name, heading=heading, key=f"{kind}_{key}", label=label, cells=cells)


def membership(found: Sequence[bool], episodes: int | None, paper: str) -> PaperCell:
    """Whether a phrase is in a dictionary, or in how many of the dictionaries of several training seeds."""
    text = f"{sum(found)} of {len(found)} seeds" if len(found) > 1 else "yes" if found[0] else "no"
    return PaperCell(text, value=sum(found) / len(found), unit="dictionaries", episodes=episodes, paper=paper)


def success_sequences(projection: Projection, played: MethodEpisodes) -> list[tuple[str, ...]]:
    """φ(τ) of every won episode, without actions that have no skill; empty sequences are dropped."""
    won = MethodEpisodes(played.steps.filter(pl.col("won")), played.tasks)
    sequences = (skill_sequence(projection, played.tasks[t.task_id], t) for t in won.trajectories())
    return [sequence for sequence in sequences if sequence]
