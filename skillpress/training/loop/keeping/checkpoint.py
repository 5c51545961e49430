"""Checkpoints from which a killed run resumes, bit for bit.

There is one folder per experiment, named by its key (``skillpress.core.resume``) and replaced as a whole
after every few steps. It has the learner's state (weights, optimizer), the number of steps done, the rows of
the training curve, and the state of every other :class:`Stateful` part: the earlier successes, the phrases of
every step's dictionary, the skill library. Next to it are the policy of the best step if ``training.keep``
asks for it, and the answers of a library's teacher. The episodes for people to read
(``describing/episode_sample.py``), the replay buffer (``replay.py``) and the rows of probes
(``describing/probes.py``) are there too. No generator's state is saved: every random choice is a function of
(seed, step), see ``core/seeds.py``. The same holds for the place in the task order and for the learning rate.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

from skillpress.core.errors import StorageError
from skillpress.core.resume import ResumeStore
from skillpress.core.storage import read_json, write_json

VERSION = 3


class Stateful(Protocol):
    """A part of a training with a state that lasts from step to step and is equal on all ranks."""

    def state_dict(self) -> dict[str, Any]:
        """The state that a resumed run needs, as JSON values."""

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the state that ``state_dict`` returned."""


@dataclass(frozen=True)
class TrainingState:
    """The progress of a training, without the state that the learner saves itself."""

    step: int
    """Training steps done."""
    parts: dict[str, dict[str, Any]]
    """Name of each stateful part to its state."""
    curve: list[dict[str, float]]
    """One row of metrics per step done."""


class Checkpoints(ResumeStore):
    """The checkpoint folder of one experiment."""

    @property
    def best(self) -> Path:
        """Folder of the policy of the best step so far, if it is kept."""
        return self.folder / "best"

    def step_folder(self, step: int) -> Path:
        """Folder for the state after ``step``; nothing points to it until :meth:`commit`."""
        return self.folder / f"step-{step:06d}"

    def prepare(self, step: int) -> None:
        """Make the step's folder, empty."""
        shutil.rmtree(self.step_folder(step), ignore_errors=True)
        self.step_folder(step).mkdir(parents=True)

    def commit(self, state: TrainingState) -> None:
        """Make the state at ``state.step`` the one to resume from, and delete older ones."""
        # Only now does a run resume from this step: until here a kill leaves the older checkpoint in use.
        write_json(self.folder / "latest.json", {"version": VERSION, "key": self.key, **asdict(state)})
        for folder in self.folder.glob("step-*"):
            if folder != self.step_folder(state.step):
                shutil.rmtree(folder, ignore_errors=True)

    def latest(self) -> tuple[TrainingState, Path] | None:
        """The state to resume from and the learner's folder; None if there is no checkpoint.

        Raises:
            StorageError: the checkpoint is damaged or belongs to another experiment.
        """
        path = self.folder / "latest.json"
        if not path.exists():
            return None
        values = read_json(path)
        try:
            version, key = values.pop("version"), values.pop("key")
            if (version, key) != (VERSION, self.key):
                raise StorageError(
                    f"{path}: made by experiment {key} (version {version}), this one is {self.key} (version "
                    f"{VERSION}); delete {self.folder} to start from the beginning"
                )
            state = TrainingState(**values)
        except (TypeError, KeyError, AttributeError) as error:
            raise StorageError(f"{path}: not a checkpoint ({error}); delete {self.folder}") from error
        folder = self.step_folder(state.step)
        if not folder.is_dir():
            raise StorageError(f"{folder}: missing, though {path} names it; delete {self.folder}")
        return state, folder
