"""Sort failed steps into three kinds: a wrong thought, an unreadable answer, an action that does not fit.

When an action fails, the formal framework asks (1.4): was the thought wrong, was it right but the parser
could not read the answer, or was the action fine but unsuited to the environment? ``Step.invalid`` tells the
second and the third: the parser's reasons are ``FORMAT_REASONS``, all others are the environment's. A thought
can only be judged by its consequences. So here a thought is wrong if its action was carried out and did not
lead on, judged by the outcome:

    taken_back   the episode, won or lost, came back to an earlier observation: the steps of that loop
    in_vain      the remaining steps, without loops, of an episode that was not won

The remaining steps of a won episode *led on*. ``taken_back`` is a lower bound on wrong thoughts, because a
step that a better thought would have saved need not be taken back. ``in_vain`` also holds the good beginnings
of lost episodes, so both together are an upper bound. A loop is found where an observation equals an earlier
one of the same episode, or the end of the first one. If an environment says the same in two states, a loop is
found where there is none. Steps without a request to the policy (``prompt_too_long``) are counted separately.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import polars as pl

from skillpress.evaluation.statistics import BehaviorFigure, EvaluationSteps
from skillpress.evaluation.statistics.behavior import share
from skillpress.evaluation.statistics.episodes import EPISODE_KEY, carried_out, malformed

UNASKED = "prompt_too_long"


@dataclass(frozen=True)
class Kind:
    """The result of a step. Every step has exactly one kind."""

    key: str
    label: str
    failure: str
    """Which of the three failures it is; empty if none of them."""


KINDS = (
    Kind("led_on", "Led on", ""),
    Kind("taken_back", "Carried out, and taken back", "thought"),
    Kind("in_vain", "Carried out, and not won", "thought"),
    Kind("unreadable", "Answer not readable by the parser", "parser"),
    Kind("unfit", "Action refused by the environment", "environment"),
    Kind("unasked", "Prompt too long to be asked", ""),
)
"""Kinds in the order of the tables."""


def kinds_of_episodes(steps: EvaluationSteps) -> pl.DataFrame:
    """One row per episode: its key, ``won``, ``length``, and its number of steps of each kind.

    Raises:
        EvaluationError: an episode's rows do not follow each other.
    """
    return steps.per_episode(_episodes)


def failure_figures(episodes: pl.DataFrame) -> tuple[BehaviorFigure, ...]:
    """Shares of all steps, each with its interval over tasks. After them, among the episodes that were not
    won, the share in which every action was carried out, so that only thoughts can be to blame."""
    kinds = [
        share(f"steps_{kind.key}", kind.label, episodes, pl.col(kind.key), pl.col("length")) for kind in KINDS
    ]
    lost = episodes.filter(~pl.col("won"))
    carried = pl.col("unreadable") + pl.col("unfit") + pl.col("unasked") == 0
    label = "Not won though every action was carried out, of episodes not won"
    return (*kinds, share("lost_by_thought", label, lost, carried))


def counts(episodes: pl.DataFrame) -> dict[str, int]:
    """The number of steps of each kind, over all episodes."""
    return {kind.key: int(episodes[kind.key].sum()) for kind in KINDS}


def loops(observations: Sequence[str], first: str) -> list[bool]:
    """Which of the steps lie on a loop, by loop erasure in the order of acting.

    Args:
        observations: the answer to each step that was carried out.
        first: O_0. An observation that O_0 ends with is the same state. An empty observation identifies
            no state.
    """
    path: list[int] = []
    place: dict[str, int] = {}  # observation to the length of the path that leads to it
    erased = [False] * len(observations)
    for step, seen in enumerate(observations):
        path.append(step)
        if not seen:
            continue
        kept = 0 if first.endswith(seen) else place.get(seen)
        if kept is None:
            place[seen] = len(path)
            continue
        for number in path[kept:]:
            erased[number] = True
        del path[kept:]
        place = {observation: depth for observation, depth in place.items() if depth <= kept}
    return erased


def _episodes(steps: pl.DataFrame) -> pl.DataFrame:
    refused = ~carried_out()
    kind = (
        pl.when(pl.col("invalid") == UNASKED)
        .then(pl.lit("unasked"))
        .when(refused & malformed() & (pl.col("action") == ""))
        .then(pl.lit("unreadable"))
        .when(refused)
        .then(pl.lit("unfit"))
    )
    episodes = steps.group_by(EPISODE_KEY, maintain_order=True).agg(
        pl.col("won", "first_observation").first(),
        pl.len().cast(pl.Int64).alias("length"),
        kind.alias("kinds"),
        pl.col("observation"),
    )
    looked_at = episodes.select("kinds", "observation", "first_observation", "won")
    found = [Counter(_labels(*row)) for row in looked_at.iter_rows()]
    counted = [pl.Series(kind.key, [each[kind.key] for each in found], pl.Int64) for kind in KINDS]
    return episodes.select(*EPISODE_KEY, "won", "length").with_columns(counted)


def _labels(kinds: Sequence[str | None], observations: Sequence[str], first: str, won: bool) -> Iterator[str]:
    """The kind of each step of an episode; None marks the steps that were carried out."""
    carried = [seen for kind, seen in zip(kinds, observations, strict=True) if kind is None]
    erased = iter(loops(carried, first))
    for kind in kinds:
        yield kind or ("taken_back" if next(erased) else "led_on" if won else "in_vain")
