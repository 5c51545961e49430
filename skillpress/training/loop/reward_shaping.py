"""The E-step and its effect on rewards (ReuseRL Alg. 1).

The corpus is the batch's successes and those that it keeps of earlier batches (``skills.corpus``). A
dictionary is fitted to it, or one to the successes of each class of tasks (``skills.dictionaries``), and each
success then pays for the number of phrases it needs. Without a success there is nothing to fit and rewards do
not change. The same holds if no step of any success has a label, because a success without skills needs no
phrase. With ``reward.centred`` the penalties of a group's successes are compared with their mean. The
dictionary is fitted under every shaping, so that the curves of all methods show four things: how
compressible their successes are; how many of them could pay less by doing more (``skills/exploitable_rate``,
see ``skillpress.skills.exploitable``); how much of the corpus earlier steps made
(``dictionary/earlier_share``, 0 where the buffer adds nothing); and the share of their steps without a skill,
which no dictionary charges for (``skills/unlabelled_rate``).

Successes that are replayed (``training.replay``) pay by the dictionary of the step that replays them. They
entered the buffer when they were new, so they do not enter the buffer or the corpus again. They are the
corpus only if no new success has a skill, and that of a class without a success in the corpus.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from skillpress.core.trajectory import Task, Trajectory, step_skills
from skillpress.environments.section import Projection
from skillpress.rollouts.agents.parameters import RewardParameters
from skillpress.rollouts.workers.distributed import Ranks
from skillpress.skills.buffer import Success
from skillpress.skills.dictionaries import SHARED, by_dictionary, description_length, fit_each
from skillpress.skills.dictionary import SkillDictionary
from skillpress.skills.earlier_share import earlier_share
from skillpress.skills.exploitable import exploitable_share
from skillpress.skills.parameters import SkillParameters
from skillpress.skills.shaping import Played, StepSkills
from skillpress.skills.step_corpus import StepCorpus
from skillpress.training.algorithms.batch import Floats
from skillpress.training.algorithms.group_statistics import difference


@dataclass(frozen=True)
class Shaped:
    """The result of the E-step for one batch."""

    penalty: NDArray[np.float64]
    """[trajectories] the penalty of shaping: lambda [success] seg/T, or another shaping's formula; less its
    group's mean if ``reward.centred``."""
    segments: NDArray[np.float64]
    """[trajectories] seg(s, C); 0 without a dictionary."""
    dictionaries: Mapping[str, SkillDictionary]
    """Name to dictionary, for the names that have a success with a skill: the classes of tasks, or a single
    name if all tasks share a dictionary."""
    metrics: dict[str, float]
    charges: NDArray[np.float64] | None = None
    """[decisions] the penalty that each decision pays itself; None where trajectories pay."""

    @property
    def dictionary(self) -> SkillDictionary | None:
        """The dictionary that all tasks share; None if no success has a skill, or each class has its own."""
        return self.dictionaries.get(SHARED)


def centred(penalty: Floats, won: Sequence[bool], groups: Sequence[str]) -> Floats:
    """[trajectories] each success's penalty less the mean penalty of its group's successes; 0 for failures.

    So penalties sum to 0 over the successes of a group: only their differences are paid, and failures are
    compared with successes of undiminished worth. A success that is alone in its group pays nothing.

    Args:
        groups: the group of each trajectory.
    """
    charged = np.asarray(won, np.bool_)
    names = {name: number for number, name in enumerate(dict.fromkeys(groups))}
    group = np.array([names[name] for name in groups], np.int64)
    successes = np.bincount(group[charged], minlength=len(names))
    means = np.bincount(group[charged], penalty[charged], len(names)) / np.maximum(successes, 1)
    return np.where(charged, difference(penalty, means[group]), 0.0)


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
        self._centred = reward.centred
        self.corpus = skills.make_corpus(seed)
        self._dictionary_of = skills.make_dictionaries()

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
        sequences = [tuple(chain.from_iterable(steps)) for steps in skills]
        played = Played(
            won=[trajectory.won for trajectory in trajectories],
            sequences=sequences,
            steps=[len(trajectory.steps) for trajectory in trajectories],
        )
        new = len(trajectories) if new is None else new
        names = [self._dictionary_of(task) for task in tasks]
        rows = zip(tasks, names, sequences, played.won, strict=True)
        # Each rank fits the same dictionary to the successes of all ranks, so no dictionary is sent.
        everybodys = self._ranks.gather(
            [
                (row < new, Success(sequence, task.task_id, name))
                for row, (task, name, sequence, won) in enumerate(rows)
                if won and sequence
            ]
        )
        fresh = [success for is_new, success in everybodys if is_new]
        successes = fresh or [success for _, success in everybodys]
        dictionaries: dict[str, SkillDictionary] = {}
        metrics = self._unlabelled(skills[:new], trajectories[:new])
        if successes:
            started = time.perf_counter()
            corpus = self._corpus(successes, [success for _, success in everybodys])
            dictionaries = fit_each(self._skills, corpus, self._projection.alphabet, self._seed)
            metrics |= self._described(dictionaries, successes, started)
            metrics["dictionary/earlier_share"] = earlier_share(corpus, successes)
        # After the fit: the corpus has received this step's successes as an argument already.
        self.corpus.push(fresh)
        penalty, segments = self._judged(played, names, dictionaries)
        if self._centred:
            penalty = centred(penalty, played.won, [trajectory.group_id for trajectory in trajectories])
        own = [dictionaries.get(name) for name in names]
        return Shaped(
            penalty=penalty,
            segments=segments,
            dictionaries=dictionaries,
            metrics=metrics,
            charges=self._charges(skills, trajectories, own) if self._steps_pay else None,
        )

    def _corpus(self, successes: Sequence[Success], played: Sequence[Success]) -> StepCorpus:
        """The corpus of a step with these successes.

        Args:
            played: all successes of the step, replayed ones too, for names of which the corpus has none.
        """
        corpus = self.corpus(successes)
        known = {success.dictionary for success in corpus.judged}
        without = [success for success in played if success.dictionary not in known]
        return replace(corpus, judged=[*corpus.judged, *without])

    def _judged(
        self, played: Played, names: Sequence[str], dictionaries: Mapping[str, SkillDictionary]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """([trajectories] penalty, [trajectories] seg(s, C)), each under its own dictionary."""
        penalty, segments = np.zeros(len(names)), np.zeros(len(names))
        for name in dict.fromkeys(names):
            rows = np.array([row for row, each in enumerate(names) if each == name], np.int64)
            part, dictionary = played.only(rows.tolist()), dictionaries.get(name)
            penalty[rows] = self._shaping(part, dictionary)
            if dictionary is not None:
                segments[rows] = dictionary.costs(part.sequences)
        return penalty, segments

    def _described(
        self, dictionaries: Mapping[str, SkillDictionary], successes: Sequence[Success], started: float
    ) -> dict[str, float]:
        """Metrics of the step's dictionaries and of the successes, each under its own dictionary.

        Args:
            started: when fitting began.
        """
        judged = [(those, dictionaries[name]) for name, those in by_dictionary(successes).items()]
        segments = [cost for those, dictionary in judged for cost in dictionary.costs(those)]
        metrics = {
            "dictionary/phrases": float(sum(len(each.phrases) for each in dictionaries.values())),
            "dictionary/description_length": description_length(dictionaries),
            "dictionary/segments": float(np.mean(segments)),
            "seconds/dictionary": time.perf_counter() - started,
            "skills/exploitable_rate": exploitable_share(judged),
        }
        if self._skills.dictionaries == "shared":
            return metrics
        return {**metrics, "dictionary/classes": float(len(dictionaries))}

    def _charges(
        self,
        skills: Sequence[StepSkills],
        trajectories: Sequence[Trajectory],
        dictionaries: Sequence[SkillDictionary | None],
    ) -> NDArray[np.float64]:
        """[decisions] the amount each pays; failures and summaries, which have no skills, pay nothing."""
        charges = []
        for steps, trajectory, dictionary in zip(skills, trajectories, dictionaries, strict=True):
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
