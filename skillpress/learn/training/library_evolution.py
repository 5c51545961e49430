"""The library's evolution while a policy is trained: every few steps, from that step's own episodes.

    S ← S ∪ new skills(failures of training step n)      for n = every, 2 every, ...

It looks at the groups of that step that teach and at nothing else, so that nothing has to be remembered
between two evolutions. All ranks hold the same library: each is handed the episodes of all, and a teacher is
asked by rank 0 alone. What prompts show is the library as it was when the weights were made that play.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from skillpress.core.interface import Ask
from skillpress.core.trajectory import Task, Trajectory
from skillpress.environments.bundle import Projection
from skillpress.learn.training.groups import Collected
from skillpress.play.workers.distributed import Ranks
from skillpress.skills.dictionary import SkillDictionary
from skillpress.skills.library.library import (
    Skill,
    SkillLibrary,
    Version,
    library_of,
    library_state,
    task_class,
)
from skillpress.skills.library.phrases import Experience, phrase_skills
from skillpress.skills.library.teacher import taught_skills, transcript


@dataclass
class LibraryEvolution:
    """Holds the library of a training."""

    every: int
    """Training steps from one evolution to the next."""
    most: int
    """Skills that one adds at most: so many general ones, and so many for each class with a failure."""
    projection: Projection
    ranks: Ranks
    teacher: Ask | None
    """Who writes the skills; None takes the dictionary's phrases."""
    library: SkillLibrary = field(default_factory=SkillLibrary)

    def at(self, version: int) -> tuple[Skill, ...]:
        """The skills that were known when the weights of this training step were made."""
        return self.library.at(version).skills

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint keeps: the library with its history."""
        return library_state(self.library)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from what ``state_dict`` gave."""
        self.library = library_of(state)

    def __call__(
        self, step: int, collected: Collected, dictionary: SkillDictionary | None
    ) -> dict[str, float]:
        """What training step ``step`` adds, once it has been played and its dictionary fitted; as metrics.

        Raises:
            ValueError: an episode is not of a training task.
        """
        if step % self.every == 0:
            played = self._experiences(collected)
            failures = tuple(each.episode for each in played if not each.won)
            version = Version(step=step, failures=failures, added=self._new(played, dictionary))
            self.library = self.library.evolved(version)
        newest = self.library.versions[-1] if self.library.versions else None
        added = len(newest.added) if newest is not None and newest.step == step else 0
        return {"library/skills": float(len(self.library.skills)), "library/added": float(added)}

    def _experiences(self, collected: Collected) -> list[Experience]:
        """The step's episodes, of all ranks, in the order of their names."""
        both = zip(collected.tasks, collected.trajectories, strict=True)
        played = self.ranks.gather([self._experience(task, trajectory) for task, trajectory in both])
        return sorted(played, key=lambda each: each.episode)

    def _experience(self, task: Task, trajectory: Trajectory) -> Experience:
        if task.split != "train":
            raise ValueError(
                f"task {task.task_id} is of split {task.split!r}; a library evolves from training tasks alone"
            )
        labels = self.projection(task, trajectory)
        return Experience(
            episode=f"{trajectory.group_id}/{trajectory.rollout_index}",
            task_class=task_class(task),
            won=trajectory.won,
            skills=tuple(label for label in labels if label is not None),
            told="" if self.teacher is None else transcript(task, trajectory),
        )

    def _new(self, played: Sequence[Experience], dictionary: SkillDictionary | None) -> tuple[Skill, ...]:
        if self.teacher is not None:
            asks = self.ranks.rank == 0
            taught = taught_skills(self.library, played, self.teacher, self.most) if asks else ()
            return tuple(self.ranks.gather(taught))
        if dictionary is None:
            return ()
        return phrase_skills(self.library, played, dictionary, self.most)
