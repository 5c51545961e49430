"""The skills of the start policy's episodes, and the successes with which training begins."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import polars as pl

from skillpress.core.rollout_files import iterate_rollouts
from skillpress.core.sequence_files import scan_sequences
from skillpress.core.trajectory import SkillSequence, Task, skill_sequence
from skillpress.environments.section import Projection
from skillpress.experiment.params import Params
from skillpress.skills.buffer import Success


def projected(
    projection: Projection, tasks: Sequence[Task], rollouts: Path, progress: Callable[[int], None]
) -> Iterator[SkillSequence]:
    """The skills of every rollout, one after the other; each adds to ``progress``."""
    by_id = {task.task_id: task for task in tasks}
    for count, trajectory in enumerate(iterate_rollouts(rollouts, tokens=False), 1):
        yield SkillSequence(
            task_id=trajectory.task_id,
            rollout_index=trajectory.rollout_index,
            won=trajectory.won,
            skills=skill_sequence(projection, by_id[trajectory.task_id], trajectory),
        )
        progress(count)


def start_successes(params: Params, tasks: Sequence[Task], sequences: Path) -> list[Success]:
    """The start policy's successes that have a skill, in the order of its episodes.

    Args:
        sequences: the file of its episodes' skills.
    """
    dictionary_of, by_id = params.skills.make_dictionaries(), {task.task_id: task for task in tasks}
    won = scan_sequences(sequences).filter(pl.col("won") & (pl.col("skills").list.len() > 0))
    return [
        Success(tuple(skills), task, dictionary_of(by_id[task]))
        for task, skills in won.select("task_id", "skills").collect().iter_rows()
    ]
