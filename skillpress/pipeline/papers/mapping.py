"""Table 3 from the code: which skills the projections give the actions that the paper lists."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from skillpress.core.trajectory import Project, Step, Task, Trajectory
from skillpress.evaluation.paper.manifest import Mapping3


@dataclass(frozen=True)
class MappedLine:
    """Actions of one pattern: the skill that the paper prints, and those that the projection gives."""

    actions: tuple[str, ...]
    after: tuple[str, ...]
    printed: str
    found: tuple[str, ...]
    """One for each action, empty for an action without a skill."""

    @property
    def agrees(self) -> bool:
        """Whether every action has the printed skill."""
        return set(self.found) == {self.printed}


NO_LOGPROBS = np.zeros(0, np.float32)


def mapped(part: Mapping3, project: Project) -> Iterator[MappedLine]:
    """A benchmark's lines."""
    task = Task(task_id="table-3", environment="", seed=0, spec=dict(part.task))
    for line in part.lines:
        found = tuple(_last_skill(project, task, (*line.after, action)) for action in line.actions)
        yield MappedLine(tuple(line.actions), tuple(line.after), line.skill, found)


def _last_skill(project: Project, task: Task, actions: tuple[str, ...]) -> str:
    """The skill of the last action of an episode whose actions all took effect."""
    steps = tuple(
        Step(
            prompt_ids=(),
            response_ids=(),
            logprobs=NO_LOGPROBS,
            thought="",
            action=action,
            observation="",
            invalid=None,
            reward_parts=(),
        )
        for action in actions
    )
    episode = Trajectory(
        task_id=task.task_id,
        group_id="",
        rollout_index=0,
        steps=steps,
        won=True,
        terminated=True,
        truncated=False,
        outcome="won",
        policy_version=0,
        seed=0,
    )
    return "-".join(project(task, episode)[-1])


@dataclass(frozen=True)
class MappedPart:
    """A benchmark's part of the table."""

    title: str
    printed: int
    """The number of skills that the paper prints."""
    found: int
    """The number of skills in the projection's alphabet."""
    lines: tuple[MappedLine, ...]

    @property
    def agrees(self) -> bool:
        """Whether the projection agrees with the printed table everywhere."""
        return self.printed == self.found and all(line.agrees for line in self.lines)


def markdown(parts: Sequence[MappedPart]) -> str:
    """The table, with the printed skills next to those of the code."""
    rows = ["| action | the paper's skill | the projection's |", "|---|---|---|"]
    for part in parts:
        rows.append(f"| *{part.title}: {part.printed} skills in the paper, {part.found} here* | | |")
        for line in part.lines:
            words = ", ".join(line.actions) + (f" (after {', '.join(line.after)})" if line.after else "")
            found = ", ".join(dict.fromkeys(skill or "none" for skill in line.found))
            rows.append(f"| {words} | {line.printed} | {found} |")
    return "\n".join(rows) + "\n"
