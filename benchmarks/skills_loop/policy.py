"""Small policies, trained by REINFORCE from zero: one learns its kinds by heart, one may read skills.

Both are softmax policies over commands with linear features. The reader takes the mounted skill whose
description shares most words with the task; how far it follows that skill's next step is learned.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.skills_loop.world import (
    COMMANDS,
    COST,
    LONGEST,
    ROUTINE,
    Kind,
    WorldEpisode,
    WorldStep,
    WorldTask,
)

Weights = NDArray[np.float64]
_WORD = re.compile(r"[a-z]{3,}")
_STEP = re.compile(r"^\d+\. (\w+)", re.MULTILINE)


@dataclass(frozen=True)
class ReadSkill:
    """What the policy reads of a SKILL.md."""

    words: frozenset[str]
    """The words of its description."""
    steps: tuple[int, ...]
    """Commands of this world, in order."""


def mounted(folder: Path) -> list[ReadSkill]:
    """The skills of a folder."""
    found = []
    for path in sorted(folder.glob("*/SKILL.md")):
        _, front, body = path.read_text(encoding="utf-8").split("---\n", 2)
        steps = [COMMANDS.index(name) for name in _STEP.findall(body) if name in COMMANDS]
        found.append(ReadSkill(words_of(front.partition("description:")[2]), tuple(steps)))
    return found


def words_of(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(_WORD.findall(text.lower()))


@dataclass(frozen=True)
class Advice:
    """The next step of the skill that fits best."""

    skill: ReadSkill
    share: float
    """Share of the task's words that its description has."""

    def step(self, done: Sequence[int]) -> int | None:
        """The first of its steps that is not done yet."""
        return next((step for step in self.skill.steps if step not in done), None)


def advice(task: WorldTask, skills: Sequence[ReadSkill]) -> Advice | None:
    """The advice of mounted skills; None without one."""
    asked = words_of(task.message)
    shares = [len(asked & skill.words) / len(asked) for skill in skills]
    best = max(range(len(skills)), key=lambda place: shares[place], default=None)
    return None if best is None else Advice(skills[best], shares[best])


@dataclass
class LinearPolicy:
    """Weights, all 0 at first."""

    by_heart: bool
    """Whether it has weights for each kind."""
    rate: float
    kinds: int
    chance: np.random.Generator
    general: Weights = field(default_factory=lambda: np.zeros((len(COMMANDS) + 1, len(COMMANDS))))
    """A row for each command that was the last good one, and a last row for none."""
    tried: float = 0.0
    """The weight of a command that was tried since."""
    follow: Weights = field(default_factory=lambda: np.zeros(2))
    """Weights of a skill's next step: always, and times the share of words."""
    expected: dict[int, float] = field(default_factory=lambda: defaultdict(float))
    """Mean return from each step on."""

    def __post_init__(self) -> None:
        self.special = np.zeros((self.kinds if self.by_heart else 1, *self.general.shape))

    def play(self, task: WorldTask, skills: Sequence[ReadSkill], learn: bool) -> WorldEpisode:
        """One episode, and one update of the weights from it."""
        steps: list[WorldStep] = []
        taken: list[_Choice] = []
        read, row = advice(task, skills), task.kind.number if self.by_heart else 0
        done: list[int] = []
        since: set[int] = set()
        while len(steps) < LONGEST and len(done) < ROUTINE:
            choice = self._choice(row, done, since, read)
            good = choice.command == task.kind.routine[len(done)]
            steps.append(WorldStep(choice.command, good))
            taken.append(choice)
            since = set() if good else since | {choice.command}
            done += [choice.command] if good else []
        if learn:
            self._learn(taken, [step.good / ROUTINE - COST for step in steps])
        return WorldEpisode(task, tuple(steps))

    def _choice(self, row: int, done: Sequence[int], since: set[int], read: Advice | None) -> _Choice:
        last = done[-1] if done else len(COMMANDS)
        tried, told = np.zeros(len(COMMANDS)), np.zeros(len(COMMANDS))
        tried[list(since)] = 1.0
        step, share = (read.step(done), read.share) if read is not None else (None, 0.0)
        if step is not None and step not in since:
            told[step] = 1.0
        scores = self.general[last] + self.tried * tried + (self.follow @ (1.0, share)) * told
        if self.by_heart:
            scores = scores + self.special[row, last]
        shares = np.exp(scores - scores.max())
        shares /= shares.sum()
        command = int(self.chance.choice(len(COMMANDS), p=shares))
        return _Choice(command, row, last=last, shares=shares, tried=tried, told=told, share=share)

    def _learn(self, taken: Sequence[_Choice], rewards: Sequence[float]) -> None:
        returns = np.cumsum(rewards[::-1])[::-1]
        for place, (choice, told) in enumerate(zip(taken, returns, strict=True)):
            gain = self.rate * (told - self.expected[place])
            self.expected[place] += 0.01 * (told - self.expected[place])
            slope = -choice.shares
            slope[choice.command] += 1.0
            self.general[choice.last] += gain * slope
            self.tried += gain * float(slope @ choice.tried)
            self.follow += gain * float(slope @ choice.told) * np.array([1.0, choice.share])
            if self.by_heart:
                self.special[choice.row, choice.last] += gain * slope


@dataclass(frozen=True)
class _Choice:
    """A drawn command and its features."""

    command: int
    row: int
    last: int
    shares: Weights
    tried: Weights
    told: Weights
    share: float


def kind_count(of: Sequence[Kind]) -> int:
    """Rows that a policy needs for these kinds."""
    return max(kind.number for kind in of) + 1
