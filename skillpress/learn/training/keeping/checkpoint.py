"""Checkpoints that a killed run goes on from, bit for bit.

One folder per experiment, named by its key (``skillpress.core.resume``) and replaced as a whole after every
few steps. What is in it: the learner's state (weights, optimizer), the number of steps done, the rows of the
training curve, and what the other parts with a state say of themselves (:class:`Stateful`): the success
buffer, the phrases of every step's dictionary, the skill library. Beside it lie the policy of the best step
where ``training.keep`` asks for that, what a library's teacher has answered, the episodes that the training
leaves for people to read (``describing/episode_sample.py``), those that it may learn from again
(``replay.py``), and what probes found (``describing/probes.py``). No generator's state: every random choice
is a function of (seed, step), see ``core/seeds.py``. The same holds for the place in the task order and for
the learning rate.
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

VERSION = 2


class Stateful(Protocol):
    """A part of a training that remembers something from step to step; it is the same on all ranks."""

    def state_dict(self) -> dict[str, Any]:
        """What a resumed run needs of it, as JSON can hold it."""
        ...

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from what ``state_dict`` gave."""
        ...


@dataclass(frozen=True)
class TrainingState:
    """How far training has come, beside what the learner itself keeps."""

    step: int
    """Training steps done."""
    parts: dict[str, dict[str, Any]]
    """Name of each part with a state to that state."""
    curve: list[dict[str, float]]
    """One row of metrics per step done."""


class Checkpoints(ResumeStore):
    """The checkpoint folder of one experiment."""

    @property
    def best(self) -> Path:
        """The policy of the best step so far, where that is to be kept."""
        return self.folder / "best"

    def step_folder(self, step: int) -> Path:
        """Where the state after ``step`` goes; nothing points to it until :meth:`commit`."""
        return self.folder / f"step-{step:06d}"

    def prepare(self, step: int) -> None:
        """Make the step's folder, empty."""
        shutil.rmtree(self.step_folder(step), ignore_errors=True)
        self.step_folder(step).mkdir(parents=True)

    def commit(self, state: TrainingState) -> None:
        """Make the state at ``state.step`` the one to resume from, and drop older ones."""
        write_json(self.folder / "latest.json", {"version": VERSION, "key": self.key, **asdict(state)})
        for folder in self.folder.glob("step-*"):
            if folder != self.step_folder(state.step):
                shutil.rmtree(folder, ignore_errors=True)

    def latest(self) -> tuple[TrainingState, Path] | None:
        """The state to resume from and the learner's folder; None when there is none.

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
