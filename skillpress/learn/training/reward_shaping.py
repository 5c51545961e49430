"""The E-step and its effect on rewards (ReuseRL Alg. 1).

The corpus is the batch's successes and those in the buffer. A dictionary is fitted to it, and each success
then pays for the number of phrases it needs. Without a success there is nothing to fit and rewards do not
change. The same holds if no step of any success has a label, because a success without skills needs no
phrase. The dictionary is fitted under every shaping, so that the curves of all methods show three things: how
compressible their successes are; how many of them could pay less by doing more (``skills/exploitable_rate``,
see ``skillpress.skills.exploitable``); and the share of their steps without a skill, which no dictionary
charges for (``skills/unlabelled_rate``).

Successes that are replayed (``training.replay``) pay by the dictionary of the step that replays them. They
entered the buffer when they were new, so they do not enter the buffer or the corpus again. Only if no new
success has a skill are they the corpus.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from skillpress.core.trajectory import Task, Trajectory, step_skills
from skillpress.environments.bundle import Projection
from skillpress.play.agents.parameters import RewardParameters
from skillpress.play.workers.distributed import Ranks
from skillpress.skills.buffer import Success
from skillpress.skills.dictionary import SkillDictionary
from skillpress.skills.exploitable import exploitable_rate
from skillpress.skills.fit import fit_as
from skillpress.skills.parameters import SkillParameters
from skillpress.skills.shaping import Played, StepSkills


@dataclass(frozen=True)
class Shaped:
    """The result of the E-step for one batch."""

    penalty: NDArray[np.float64]
    """[trajectories] the penalty of shaping: lambda [success] seg/T, or another shaping's formula."""
    segments: NDArray[np.float64]
    """[trajectories] seg(s, C); 0 without a dictionary."""
    dictionary: SkillDictionary | None
    """The E-step's dictionary; None if no success has a skill."""
    metrics: dict[str, float]
    charges: NDArray[np.float64] | None = None
    """[decisions] the penalty that each pays itself; None where trajectories pay."""


class RewardShaper:
    """Holds the successes of earlier batches, as far as the corpus keeps them."""

    def __init__(
        self,
        projection: Projection,
        skills: SkillParameters,
        reward: RewardParameters,
        max_steps: int,
        ranks: Ranks,
        seed: int,
    ) -> None:
        """``max_steps`` is T; ``seed`` is the experiment's, for searches and corpora that draw."""
        self._projection, self._skills, self._ranks, self._seed = projection, skills, ranks, seed
        self._shaping = reward.make_shaping(max_steps)
        self._steps_pay = reward.shaping_credit == "step"
        self.corpus = skills.make_corpus(seed)

    def __call__(
        self, tasks: Sequence[Task], trajectories: Sequence[Trajectory], new: int | None = None
    ) -> Shaped:
        """Judge this rank's trajectories; ``tasks[i]`` is the task of trajectory i.

        Args:
            new: the first ``new`` trajectories were played for this step; the others are replayed. None means
                all are new.
        """
        skills = [
            step_skills(self._projection, task, trajectory)
            for task, trajectory in zip(tasks, trajectories, strict=True)
        ]
        played = Played(
            won=[trajectory.won for trajectory in trajectories],
            sequences=[tuple(chain.from_iterable(steps)) for steps in skills],
            steps=[len(trajectory.steps) for trajectory in trajectories],
        )
        new = len(trajectories) if new is None else new
        everybodys = self._ranks.gather(
            [
                (row < new, Success(sequence, task.task_id))
                for row, (task, sequence, won) in enumerate(
                    zip(tasks, played.sequences, played.won, strict=True)
                )
                if won and sequence
            ]
        )
        fresh = [success for is_new, success in everybodys if is_new]
        successes = fresh or [success for _, success in everybodys]
        dictionary, metrics = None, self._unlabelled(skills[:new], trajectories[:new])
        if successes:
            started = time.perf_counter()
            corpus = self.corpus(successes)
            alphabet = self._projection.alphabet
            judged, ranked_with = (
                [success.skills for success in those] for those in (corpus.judged, corpus.ranked_with)
            )
            dictionary = fit_as(self._skills, judged, alphabet, self._seed, ranked_with)
            sequences = [success.skills for success in successes]
            metrics |= {
                "dictionary/phrases": float(len(dictionary.phrases)),
                "dictionary/description_length": dictionary.description_length,
                "dictionary/segments": float(np.mean(dictionary.costs(sequences))),
                "seconds/dictionary": time.perf_counter() - started,
                "skills/exploitable_rate": exploitable_rate(sequences, dictionary),
            }
        self.corpus.push(fresh)
        segments = np.zeros(len(trajectories))
        if dictionary is not None:
            segments[:] = dictionary.costs(played.sequences)
        return Shaped(
            penalty=self._shaping(played, dictionary),
            segments=segments,
            dictionary=dictionary,
            metrics=metrics,
            charges=self._charges(skills, trajectories, dictionary) if self._steps_pay else None,
        )

    def _charges(
        self,
        skills: Sequence[StepSkills],
        trajectories: Sequence[Trajectory],
        dictionary: SkillDictionary | None,
    ) -> NDArray[np.float64]:
        """[decisions] the amount each pays; failures and summaries, which have no skills, pay nothing."""
        charges = []
        for steps, trajectory in zip(skills, trajectories, strict=True):
            paid = np.zeros(len(trajectory.decisions))
            if trajectory.won:
                acted = np.array([not summary for summary, _ in trajectory.states])
                paid[acted] = self._shaping.of_steps(steps, dictionary)
            charges.append(paid)
        return np.concatenate(charges) if charges else np.zeros(0)

    def _unlabelled(
        self, skills: Sequence[StepSkills], trajectories: Sequence[Trajectory]
    ) -> dict[str, float]:
        """The share of successes' steps, over all ranks, that have no skill and so cost nothing under
        ``segcost``."""
        won = [steps for steps, trajectory in zip(skills, trajectories, strict=True) if trajectory.won]
        total = self._ranks.sum(
            {
                "steps": float(sum(map(len, won))),
                "unlabelled": float(sum(not skills for steps in won for skills in steps)),
            }
        )
        return {"skills/unlabelled_rate": total["unlabelled"] / total["steps"]} if total["steps"] else {}
