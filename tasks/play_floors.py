"""Stage: let the random explorer and the start policy play the held-out tasks.

They are the baselines of every evaluation. Training does not change them, so experiments that differ only in
their training share these episodes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillpress.experiment.collection import play_of
from skillpress.pipeline.files import BASE_POLICY, EXPLORER, FLOOR_ROLLOUTS, START, load_tasks
from skillpress.pipeline.playing import play

if TYPE_CHECKING:
    from skillpress.pipeline.stage import Stage


def main(stage: Stage) -> None:
    """Write data/rollouts/floors.parquet: every test task ``votes`` times in each of ``runs`` runs."""
    params = stage.params
    tasks = load_tasks(params.environment)["test"]
    floors = [play_of(params, tasks, EXPLORER, None), play_of(params, tasks, START, BASE_POLICY)]
    play(stage, floors, FLOOR_ROLLOUTS)
