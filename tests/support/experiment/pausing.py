"""Checkpoints that pause a training, so that a test can kill it at a known place."""

from __future__ import annotations

import time

from skillpress.training.loop.keeping.checkpoint import Checkpoints, TrainingState


class PausingCheckpoints(Checkpoints):
    """If the parent folder has a file ``pause-N``, rank 0 writes ``paused-N`` there after the checkpoint of
    step N and stops."""

    def commit(self, state: TrainingState) -> None:
        super().commit(state)
        place = self.folder.parents[1]
        if (place / f"pause-{state.step}").exists():
            (place / f"paused-{state.step}").touch()
            time.sleep(600)
