"""Which of three failures a step is: a wrong thought, an unreadable answer, an action that does not fit.

When an action fails, the formal framework asks (1.4): was the thought wrong, was it right and the parser
could not read the answer, or was the action fine and did not suit the environment? The second and the third
stand in ``Step.invalid``: the parser's reasons are ``FORMAT_REASONS``, all others are the environment's.
Nothing tells what a thought was worth but what became of it. So here a thought is wrong that led to an action
which was carried out and did not lead on, by the outcome:

    taken_back   a won or lost episode came back to what it had observed before: the steps of that loop
    in_vain      what remains, without loops, of an episode that was not won

and what remains of a won episode *led on*. ``taken_back`` is a lower bound of wrong thoughts, for a step that
a better one would have saved need not be taken back; ``in_vain`` holds the good beginnings of lost episodes
too, so both together are an upper bound. A loop is found where an observation is one of the same episode
before, or the end of the first one; an environment that says the same in two states is found going in circles
where it is not. Steps for which no answer was asked (``prompt_too_long``) are counted apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import polars as pl

from skillpress.measure.evaluation import BehaviorFigure, EvaluationSteps
from skillpress.measure.evaluation.behavior import share
from skillpress.measure.evaluation.episodes import EPISODE_KEY, carried_out, malformed

UNASKED = "prompt_too_long"


@dataclass(frozen=True)
class Kind:
    """What a step came to; every step is of one kind."""

    key: str
    label: str
    failure: str
    """Which of the three failures; empty for a step that is none of them."""


KINDS = (
    Kind("led_on", "Led on", ""),
    Kind("taken_back", "Carried out, and taken back", "thought"),
    Kind("in_vain", "Carried out, and not won", "thought"),
    Kind("unreadable", "Answer not readable by the parser", "parser"),
    Kind("unfit", "Action refused by the environment", "environment"),
    Kind("unasked", "Prompt too long to be asked", ""),
)
"""In the order of the tables."""


def kinds_of_episodes(steps: EvaluationSteps) -> pl.DataFrame:
    """One row per episode: its key, ``won``, ``length``, and how many of its steps are of each kind.

    Raises:
        EvaluationError: an episode's rows do not stand together.
    """
    return steps.per_episode(_episodes)


def failure_figures(episodes: pl.DataFrame) -> tuple[BehaviorFigure, ...]:
    """Shares of all steps, each with its interval over tasks; then of the episodes that were not won, those
    in which every action was carried out, so that nothing but thoughts can be to blame."""
    kinds = [
        share(f"steps_{kind.key}", kind.label, episodes, pl.col(kind.key), pl.col("length")) for kind in KINDS
    ]
    lost = episodes.filter(~pl.col("won"))
    carried = pl.col("unreadable") + pl.col("unfit") + pl.col("unasked") == 0
    label = "Not won though every action was carried out, of episodes not won"
    return (*kinds, share("lost_by_thought", label, lost, carried, pl.lit(1)))


def counts(episodes: pl.DataFrame) -> dict[str, int]:
    """Kind to how many steps of all episodes."""
    return {kind.key: int(episodes[kind.key].sum()) for kind in KINDS}


def loops(observations: Sequence[str], first: str) -> list[bool]:
    """Which of the steps lie on a loop, by loop erasure in the order acted.

    Args:
        observations: what each step that was carried out was answered.
        first: O_0. An observation that it ends with is the same state. An empty one tells of none.
    """
    path: list[int] = []
    place: dict[str, int] = {}  # observation to how much of the path leads to it
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
    """The kind of each step of an episode; None stands for those that were carried out."""
    carried = [seen for kind, seen in zip(kinds, observations, strict=True) if kind is None]
    erased = iter(loops(carried, first))
    for kind in kinds:
        yield kind or ("taken_back" if next(erased) else "led_on" if won else "in_vain")
