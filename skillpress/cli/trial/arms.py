"""The arms of a trial, and the one plan in which all their episodes are interleaved.

A task's episodes under all arms follow each other directly, and each arm comes first equally often. So
whatever changes while the trial runs (the load of a server, a new version behind its address) meets all arms
alike. All arms of a rollout have the same seed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from skillpress.core.errors import ParamsError
from skillpress.core.seeds import derive, generator
from skillpress.core.trajectory import Task
from skillpress.rollouts.collection.requests import EpisodeRequest
from skillpress.rollouts.programs.mounting import SELECTED
from skillpress.skills.library.files import SkillFolder

WITH, WITHOUT = "with", "without"
LESS = "without "
"""Prefix of an arm's name, before the one skill that it does not have."""


@dataclass(frozen=True)
class TrialArm:
    """One arm: a name and the skills that its episodes get."""

    name: str
    skills: tuple[SkillFolder, ...]
    """The skills that its episodes get."""


def arms_of(skills: Sequence[SkillFolder], each: bool) -> tuple[TrialArm, ...]:
    """The arms: all skills, no skills and, for ``each``, all skills but one.

    Raises:
        ParamsError: ``each`` with a single skill, which would repeat the arm ``without``.
    """
    found = [TrialArm(WITH, tuple(skills)), TrialArm(WITHOUT, ())]
    if each and len(skills) < 2:
        raise ParamsError(f"--each: needs several skills, not {skills[0].name} alone; leave it out")
    if each:
        for left_out in skills:
            rest = tuple(skill for skill in skills if skill is not left_out)
            found.append(TrialArm(f"{LESS}{left_out.name}", rest))
    return tuple(found)


def interleaved(
    tasks: Sequence[Task], arms: Sequence[TrialArm], rollouts: int, seed: int, mounted: bool
) -> list[EpisodeRequest]:
    """All episodes in the order in which they begin.

    Args:
        mounted: whether episodes find their skills as files; otherwise their prompts show them.
    """
    rng = generator(seed, "trial order")
    found: list[EpisodeRequest] = []
    for rollout in range(rollouts):
        for place, number in enumerate(rng.permutation(len(tasks))):
            first = (place + rollout) % len(arms)
            for arm in (*arms[first:], *arms[:first]):
                found.append(_request(tasks[number], arm, rollout, seed, mounted))
    return found


def _request(task: Task, arm: TrialArm, rollout: int, seed: int, mounted: bool) -> EpisodeRequest:
    spec: dict[str, Any] = dict(task.spec)
    if mounted:
        spec[SELECTED] = [skill.name for skill in arm.skills]
    return EpisodeRequest(
        task=replace(task, spec=spec),
        group_id=f"trial/{arm.name}/{task.task_id}",
        rollout_index=rollout,
        seed=derive(seed, "trial", task.task_id, rollout),
        policy=arm.name,
        skills=None if mounted else arm.skills,
    )
