"""Our environments in gymnasium: ``skillpress/Countdown-v0`` and others.

    import gymnasium
    import skillpress.integrations.gymnasium

    environment = gymnasium.make("skillpress/Countdown-v0", max_numbers=3)

Since version 1.0 gymnasium does not search for plugins, so importing this module registers the environments;
``gymnasium.make("skillpress.integrations.gymnasium:skillpress/Countdown-v0")`` does both.

Our environments return no reward, but gymnasium's must. The reward of a step is the judgement of the default
agent, as in params.yaml (10 for a success, minus 0.01 for an action that was not carried out), or another
``StepReward`` given as ``reward``. gymnasium's seed draws the task of an episode from ``tasks`` tasks, which
are made when the first episode starts; ``reset(options={"task": ...})`` plays a given task.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from functools import lru_cache
from typing import Any, Literal

import gymnasium
from pydantic import ValidationError

from skillpress.core.errors import ParamsError, TaskError
from skillpress.core.interface import AgentState, Info, StepReward
from skillpress.core.parsed_action import ParsedAction
from skillpress.core.trajectory import Task
from skillpress.environments import EnvironmentSection, SplitSizes, environment_class
from skillpress.rollouts.agents.reward import OutcomeReward

Split = Literal["train", "validation", "test"]

DEFAULT_REWARD = OutcomeReward(success=10.0, invalid_penalty=0.01)
"""The same as ``reward`` in params.yaml, without the part that needs a dictionary of skills."""

REGISTERED: Mapping[str, Mapping[str, Any]] = {
    "Countdown": {
        "name": "countdown", "tasks": 256,
        "max_steps": 30, "min_numbers": 3, "max_numbers": 4, "min_target": 10, "max_target": 999,
    },
    "TextWorldCooking": {
        "name": "textworld_cooking", "tasks": 16, "max_steps": 40, "simple_share": 0.8, "games": "",
    },
    "ALFWorld": {"name": "alfworld", "tasks": 128, "max_steps": 50, "data": ""},
    "CodeRepair": {
        "name": "code_repair", "tasks": 64, "max_steps": 24, "data": "",
        "test_seconds": 0.5, "episode_seconds": 60.0, "measure_edits": False,
    },
    "NotebookQA": {"name": "notebook_qa", "tasks": 64, "max_steps": 10, "data": "", "top_k": 8},
    "Search": {
        "name": "search", "tasks": 200, "max_steps": 5, "data": "", "retriever": "", "top_k": 3,
    },
    "Shop": {"name": "shop", "tasks": 256, "max_steps": 12, "catalogue": 400},
    "Workshop": {
        "name": "workshop", "tasks": 256, "max_steps": 16, "subgoals": 2, "orders": 40, "pieces": 32,
        "shortcut": {"length": 7, "skills": "own", "order": "fixed", "share": 0.5}, "synonyms": 1,
    },
}  # fmt: skip
"""Name in gymnasium to the default ``environment`` section and the number of tasks."""


class SkillpressEnv(gymnasium.Env[str, str]):
    """One of our environments. ``info`` holds ``task`` (its id), ``won``, ``lost``, ``action``, ``invalid``,
    ``admissible`` and ``measures``, which ``skillpress.core.interface.Info`` explains."""

    metadata: dict[str, Any] = {"render_modes": ["ansi"], "render_fps": 1}  # noqa: RUF012  as gymnasium has it

    def __init__(
        self,
        *,
        name: str,
        tasks: int,
        split: Split = "train",
        tasks_seed: int = 0,
        reward: StepReward = DEFAULT_REWARD,
        render_mode: str | None = None,
        **section: Any,
    ) -> None:
        """
        Args:
            name: the value of ``environment.name`` in params.yaml.
            tasks: the number of tasks to draw from.
            split: the environment's split that the tasks belong to.
            tasks_seed: the seed that makes the tasks, like ``seed`` in params.yaml.
            section: the other keys of ``environment`` in params.yaml.

        Raises:
            UserError: an argument is wrong, or the environment's data are missing.
        """
        self._split, self._tasks_seed, self._reward = split, tasks_seed, reward
        self._section = section_of({"name": name, **section})
        if tasks < 1:
            raise ParamsError(f"tasks: is {tasks}; must be at least 1")
        if split not in ("train", "validation", "test"):
            raise ParamsError(f"split: is {split!r}; allowed: train, validation, test")
        self._count = tasks
        self._environment = self._section.make()
        self.action_space = deepcopy(self._environment.action_space)
        self.observation_space = deepcopy(self._environment.observation_space)
        self.render_mode = render_mode
        self._seen = ""

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Start the episode of a drawn task, or of ``options["task"]``: a ``Task``, or a mapping with its
        ``spec`` and, where they matter, its ``task_id``, ``seed`` and ``split``.

        Raises:
            TaskError: the task does not belong to this environment, or too few tasks can be made.
        """
        super().reset(seed=seed)
        given = (options or {}).get("task")
        self._task = self._drawn() if given is None else self._checked(given)
        self._seen, self._facts = self._environment.reset(self._task)
        return self._seen, self._told()

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Take an action; the reward is the sum of the agent's judgement."""
        before = AgentState(task=self._task, observation=self._seen, info=self._facts)
        self._seen, terminated, truncated, self._facts = self._environment.step(action)
        parts = self._reward(before, ParsedAction("", action), self._seen, self._facts)
        return self._seen, float(sum(part.value for part in parts)), terminated, truncated, self._told()

    def render(self) -> str:
        """The last observation."""
        return self._seen

    def close(self) -> None:
        """Release the environment's resources, such as a sandbox; may be called again."""
        close = getattr(self._environment, "close", None)
        if close is not None:
            close()

    def _drawn(self) -> Task:
        name, section = self._section.name, self._section.model_dump_json()
        tasks = tasks_of(name, section, self._split, self._count, self._tasks_seed)
        return tasks[int(self.np_random.integers(len(tasks)))]

    def _checked(self, given: Task | Mapping[str, Any]) -> Task:
        own = {"task_id": "given", "environment": self._section.name, "seed": 0, "split": self._split}
        try:
            task = given if isinstance(given, Task) else Task(**{**own, **given})
        except TypeError as error:
            raise TaskError(
                f"options.task: is {given!r}; a task has spec, task_id, seed and split: {error}"
            ) from None
        self._section.check_tasks([task])
        return task

    def _told(self) -> dict[str, Any]:
        """The facts about the step, in fresh records at every call."""
        facts: Info = self._facts
        return {
            "task": self._task.task_id,
            "won": facts.won,
            "lost": facts.lost,
            "action": facts.action,
            "invalid": facts.invalid,
            "admissible": list(facts.admissible),
            "measures": dict(facts.measures),
        }


@lru_cache(maxsize=16)
def tasks_of(name: str, section: str, split: Split, count: int, seed: int) -> tuple[Task, ...]:
    """The tasks of a section (as JSON), made once for all copies of an environment in this process."""
    sizes = dict.fromkeys(("train", "validation", "test"), 0) | {split: count}
    environment = environment_class(name).model_validate_json(section)
    return tuple(environment.checked_tasks(SplitSizes(**sizes), seed))


def section_of(values: dict[str, Any]) -> EnvironmentSection:
    """The section with these values.

    Raises:
        ParamsError: a key is unknown, missing or wrong.
    """
    try:
        return environment_class(values["name"]).model_validate(values)
    except ValidationError as error:
        wrong = "; ".join(
            f"{'.'.join(map(str, found['loc'])) or 'together'}: {found['msg']}" for found in error.errors()
        )
        raise ParamsError(f"skillpress environment {values['name']}: {wrong}") from None


def register() -> None:
    """Register every name with gymnasium."""
    for name, defaults in REGISTERED.items():
        gymnasium.register(
            id=f"skillpress/{name}-v0", entry_point=f"{__name__}:SkillpressEnv", kwargs=dict(defaults)
        )


register()
