"""Checkpoints that hold a training up, so that a test can kill it at a known place."""

from __future__ import annotations

import time

from skillpress.learn.training.keeping.checkpoint import Checkpoints, TrainingState


class PausingCheckpoints(Checkpoints):
    """After the checkpoint of step N: where the folder above holds a file ``pause-N``, rank 0 leaves one
    named ``paused-N`` there and goes no further."""

    def commit(self, state: TrainingState) -> None:
        super().commit(state)
        place = self.folder.parents[1]
        if (place / f"pause-{state.step}").exists():
            (place / f"paused-{state.step}").touch()
            time.sleep(600)
