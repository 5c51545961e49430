"""The skills of episodes, how the dictionary cuts them, and which episodes use a phrase.

Skills are those that the file records. Older files have none; then the environment's own projection is asked,
which looks at a whole trajectory, so the costs of all episodes take half a minute for 10^6 steps. They are
computed in the background, file by file; an episode's cost is unknown until its turn has come.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from math import log2

import numpy as np
import polars as pl
from numpy.typing import NDArray

from skillpress.core.errors import UserError
from skillpress.core.rollout_files import iterate_rollouts
from skillpress.core.trajectory import Skills, Task, Trajectory, step_skills
from skillpress.environments.section import Projection
from skillpress.reports.viewer.index import IndexedFile
from skillpress.reports.viewer.records import CutPhrase
from skillpress.skills.dictionary import SkillDictionary

UNKNOWN = -1
"""Marks an episode without a cost, or whose cost is not computed yet."""
SEQUENCES_KEPT = 65_536
"""The most cuts of different skill sequences that are cached, since episodes repeat each other."""


class SkillsOf:
    """The skills of one experiment's episodes, and their cut by a dictionary."""

    def __init__(self, projection: Projection, dictionary: SkillDictionary | None) -> None:
        """``projection``: φ. The dictionary is ignored if it lacks any of the environment's skills."""
        self.projection = projection
        known = dictionary is not None and set(self.projection.alphabet) <= set(dictionary.alphabet)
        self.dictionary = dictionary if known else None
        self._numbers = {phrase: n for n, phrase in enumerate(dictionary.phrases)} if dictionary else {}
        self._segment = lru_cache(SEQUENCES_KEPT)(self._segment_anew)

    def of(self, task: Task, trajectory: Trajectory) -> tuple[Skills, ...]:
        """The skills of each step."""
        return step_skills(self.projection, task, trajectory)

    def phrases(self, steps: Sequence[Skills]) -> tuple[int, ...]:
        """The numbers of the phrases that an episode whose steps have these skills is cut into."""
        return self._segment(tuple(chain.from_iterable(steps)))

    def cut(self, steps: Sequence[Skills]) -> tuple[CutPhrase, ...] | None:
        """The phrases with the steps that they span; None without a dictionary."""
        if self.dictionary is None:
            return None
        places = [step for step, skills in enumerate(steps) for _ in skills]
        found, start = [], 0
        for number in self.phrases(steps):
            skills = self.dictionary.phrases[number]
            end = start + len(skills)
            found.append(
                CutPhrase(
                    phrase=number,
                    skills=skills,
                    first_step=places[start],
                    last_step=places[end - 1],
                    cost=1.0,
                    bits=log2(len(self.dictionary.phrases)),
                )
            )
            start = end
        return tuple(found)

    def _segment_anew(self, skills: Skills) -> tuple[int, ...]:
        assert self.dictionary is not None
        return tuple(self._numbers[phrase] for phrase in self.dictionary.segment(skills))


@dataclass(frozen=True)
class Projected:
    """A file whose episodes have skills."""

    file: IndexedFile
    first: int
    """The place of its first episode among the episodes of all files."""
    tasks: Mapping[str, Task]
    skills: SkillsOf


class SkillIndex:
    """The costs of all episodes and the episodes of every phrase, as far as they are known."""

    def __init__(self, projected: Sequence[Projected], episodes: int, phrases: int) -> None:
        self._files = [each for each in projected if each.skills.dictionary is not None]
        self._costs = np.full(episodes, UNKNOWN, np.int32)
        self._uses: list[list[int]] = [[] for _ in range(phrases)]
        self._expected = sum(each.file.episodes.height for each in self._files)
        self._done = 0
        self._ended = threading.Event()
        self._asked, self._lock = 0, threading.Lock()
        self._quiet = threading.Event()
        self._quiet.set()
        self._thread = threading.Thread(target=self._work, name="skills of episodes", daemon=True)
        self.trouble: str | None = None
        """Why it ended before everything was done, in a sentence."""

    def start(self) -> None:
        """Start computing everything in a separate thread."""
        self._thread.start()

    @contextmanager
    def resting(self) -> Iterator[None]:
        """Pause the thread, so that a request has the interpreter for itself."""
        with self._lock:
            self._asked += 1
            self._quiet.clear()
        try:
            yield
        finally:
            with self._lock:
                self._asked -= 1
                if not self._asked:
                    self._quiet.set()

    def close(self) -> None:
        """End the thread."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()

    def wait(self) -> None:
        """Block until the background work has ended."""
        self._thread.join()

    @property
    def progress(self) -> float | None:
        """The share of episodes that are done; None if no episode is cut."""
        return self._done / self._expected if self._expected else None

    @property
    def complete(self) -> bool:
        """Whether the background work has ended."""
        return not self._thread.is_alive()

    @property
    def costs(self) -> pl.Series:
        """One cost per episode; null if it is not known."""
        costs = pl.Series("cost", self._costs.copy())
        return costs.set(costs == UNKNOWN, None)

    def episodes(self, phrases: Sequence[int]) -> NDArray[np.int64]:
        """The places of the episodes whose cut has any of these phrases."""
        known = (list(self._uses[number]) for number in phrases if number < len(self._uses))
        return np.unique(np.fromiter(chain.from_iterable(known), np.int64))

    def counts(self) -> list[int]:
        """Number of episodes per phrase."""
        return [len(uses) for uses in self._uses]

    def _work(self) -> None:
        try:
            for each in self._files:
                self._index(each)
        except UserError as error:  # a missing task, a replaced file
            self.trouble = str(error)

    def _index(self, each: Projected) -> None:
        trajectories = iterate_rollouts(each.file.path, tokens=False)
        for place, trajectory in enumerate(trajectories, each.first):
            self._quiet.wait()
            if self._ended.is_set():
                return
            task = each.tasks.get(trajectory.task_id)
            if task is not None:
                phrases = each.skills.phrases(each.skills.of(task, trajectory))
                for number in set(phrases):
                    self._uses[number].append(place)
                self._costs[place] = len(phrases)
            self._done += 1
