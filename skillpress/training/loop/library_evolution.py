"""The library's evolution during training: every few steps, from that step's own episodes.

    S ← S ∪ new skills(failures of training step n)      for n = every, 2 every, ...

It uses only the groups of that step that teach, so nothing has to be stored between two evolutions. All ranks
hold the same library: each receives the episodes of all ranks, and only rank 0 asks the teacher. Prompts show
the library as it was when the playing weights were made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from skillpress.core.interface import Ask
from skillpress.core.trajectory import Task, Trajectory, skill_sequence
from skillpress.environments.section import Projection
from skillpress.rollouts.workers.distributed import Ranks
from skillpress.skills.dictionary import SkillDictionary
from skillpress.skills.library.library import (
    Skill,
    SkillLibrary,
    Version,
    library_of,
    library_state,
    task_class,
)
from skillpress.skills.library.phrases import PlayedEpisode, phrase_skills
from skillpress.skills.library.teacher import taught_skills, transcript
from skillpress.training.algorithms.batch import Batch


@dataclass
class LibraryEvolution:
    """Holds the library of a training."""

    every: int
    """Number of training steps between evolutions."""
    most: int
    """One evolution adds at most this many general skills, and as many for each class with a failure."""
    projection: Projection
    ranks: Ranks
    teacher: Ask | None
    """Writes the skills; None uses the dictionary's phrases."""
    library: SkillLibrary = field(default_factory=SkillLibrary)

    def at(self, version: int) -> tuple[Skill, ...]:
        """The skills that the library had when the weights of this training step were made."""
        return self.library.at(version).skills

    def state_dict(self) -> dict[str, Any]:
        """The library with its history, for a checkpoint."""
        return library_state(self.library)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the library that ``state_dict`` returned."""
        self.library = library_of(state)

    def __call__(self, step: int, new: Batch, dictionary: SkillDictionary | None) -> dict[str, float]:
        """Evolve the library after training step ``step`` was played and its dictionary fitted. Returns
        metrics.

        Args:
            new: the step's own episodes that teach.

        Raises:
            ValueError: an episode's task is not a training task.
        """
        if step % self.every == 0:
            played = self._episodes(new)
            failures = tuple(each.episode for each in played if not each.won)
            version = Version(step=step, failures=failures, added=self._new(played, dictionary))
            self.library = self.library.evolved(version)
        newest = self.library.versions[-1] if self.library.versions else None
        added = len(newest.added) if newest is not None and newest.step == step else 0
        return {"library/skills": float(len(self.library.skills)), "library/added": float(added)}

    def _episodes(self, new: Batch) -> list[PlayedEpisode]:
        """The step's episodes of all ranks, in the order of their names."""
        both = zip(new.tasks or (), new.episodes, strict=True)
        played = self.ranks.gather([self._episode(task, trajectory) for task, trajectory in both])
        # The order of ``gather`` depends on the number of ranks; the names do not.
        return sorted(played, key=lambda each: each.episode)

    def _episode(self, task: Task, trajectory: Trajectory) -> PlayedEpisode:
        if task.split != "train":
            raise ValueError(
                f"task {task.task_id} is of split {task.split!r}; a library evolves only from training tasks"
            )
        return PlayedEpisode(
            episode=f"{trajectory.group_id}/{trajectory.rollout_index}",
            task_class=task_class(task),
            won=trajectory.won,
            skills=skill_sequence(self.projection, task, trajectory),
            told="" if self.teacher is None else transcript(task, trajectory),
        )

    def _new(self, played: Sequence[PlayedEpisode], dictionary: SkillDictionary | None) -> tuple[Skill, ...]:
        if self.teacher is not None:
            # Two answers of a teacher may differ, so all ranks take the same one.
            asks = self.ranks.rank == 0
            taught = taught_skills(self.library, played, self.teacher, self.most) if asks else ()
            return tuple(self.ranks.gather(taught))
        if dictionary is None:
            return ()
        return phrase_skills(self.library, played, dictionary, self.most)
