"""Our environments in TRL, and segmentation cost as a reward function of its ``GRPOTrainer``.

    countdown = ToolEnvironments("Countdown", instruction="Reach the target ...", max_numbers=3)
    trainer = GRPOTrainer(
        model=..., args=GRPOConfig(max_tool_calling_iterations=countdown.max_steps, ...),
        train_dataset=countdown.dataset(), environment_factory=countdown,
        reward_funcs=SegCostReward(countdown, efficiency=10.0),
    )

TRL plays an environment by tool calls: the methods of a class are what the model may call, here the one tool
``act``. A row of the data set is a task, so that a group is one task's rollouts, as here. What it
answers stands in the same context from then on: a state update has no place there. TRL has one reward per
rollout, so parts that count for their own step count for the whole episode too.

A success is judged as in ReuseRL's Algorithm 1, by R - lambda seg(s, C) / T. TRL calls a reward function with
what one generation has played and forgets it. The dictionary C needs the successes before it too, so this one
keeps them (the buffer) from call to call. Under a launcher (torchrun, accelerate) all processes fit the same
dictionary to the successes of all.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from datasets import Dataset
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from skillpress.core.errors import ParamsError, StorageError, TaskError, UserError
from skillpress.core.interface import StepReward
from skillpress.core.storage import read_json, write_json
from skillpress.core.trajectory import RewardPart, Step, Task, Trajectory
from skillpress.doors.integrations.gymnasium import (
    DEFAULT_REWARD,
    REGISTERED,
    SkillpressEnv,
    Split,
    section_of,
    tasks_of,
)
from skillpress.environments import bundle
from skillpress.environments.text.prompts import game_turn
from skillpress.learn.training.reward_shaping import RewardShaper
from skillpress.play.agents.parameters import RewardParameters
from skillpress.play.workers.distributed import Ranks
from skillpress.play.workers.launched import Launch, launch_of_environment
from skillpress.skills.buffer import SuccessBuffer
from skillpress.skills.parameters import SkillParameters

if find_spec("trl") is None:
    raise UserError(
        "skillpress.doors.integrations.trl: the package trl is not installed here; "
        "pip install --constraint constraints.txt -e '.[trl]'"
    )

SKILLS = SkillParameters(
    max_phrase_length=4, buffer=256, corpus="algorithm_1", search="greedy", closure="none", library=None
)
"""``skills`` as params.yaml has it."""
BUFFER = "skillpress_buffer.json"
"""The buffer's file in a checkpoint's folder of TRL's."""


class ToolEnvironment:
    """One rollout's environment; TRL resets and reuses it, and offers its public methods as tools."""

    def __init__(self, game: SkillpressEnv, tell_admissible: bool) -> None:
        self._game, self._tell = game, tell_admissible
        self._task: Task | None = None
        self._steps: list[Step] = []
        self._over = ""
        """How the episode has ended; empty while it goes on."""

    def reset(self, task: str | None = None, **columns: Any) -> str:
        """Start the task of a row of the data set; what is seen goes behind the row's prompt.

        Raises:
            TaskError: the row has no task.
        """
        if task is None:
            raise TaskError("reset: the data set has no column 'task'; take ToolEnvironments.dataset()")
        self._task, self._steps, self._over = Task(**json.loads(task)), [], ""
        self._first, info = self._game.reset(options={"task": self._task})
        return "\n" + self._said(self._first, info)

    def act(self, action: str) -> str:
        """
        Take one action.

        Args:
            action: The action, in the words in which the actions are listed.

        Returns:
            What is seen then, and which actions can be taken.
        """
        if self._over:
            return f"The episode is over: {self._over}."
        seen, reward, terminated, truncated, info = self._game.step(action)
        self._steps.append(
            Step(
                prompt_ids=(),
                response_ids=(),
                logprobs=(),
                thought="",
                action=info["action"] or action,
                observation=seen,
                invalid=info["invalid"],
                reward_parts=(RewardPart("reward", reward, "trajectory"),),
            )
        )
        if terminated or truncated:
            self._over = "won" if info["won"] else info["lost"] or "timeout"
            return f"{seen}\nThe episode is over: {self._over}."
        return self._said(seen, info)

    def _said(self, seen: str, info: dict[str, Any]) -> str:
        return game_turn(len(self._steps), seen, info["admissible"] if self._tell else None)

    @property
    def task(self) -> Task:
        """What is being played.

        Raises:
            TaskError: nothing is.
        """
        if self._task is None:
            raise TaskError("this environment was not reset")
        return self._task

    @property
    def episode(self) -> Trajectory:
        """What was played so far, without tokens, which TRL has; one that stopped acting ran out of time."""
        over = self._over or "timeout"
        return Trajectory(
            task_id=self.task.task_id,
            group_id="",
            rollout_index=0,
            steps=tuple(self._steps),
            won=over == "won",
            terminated=over != "timeout",
            truncated=over == "timeout",
            outcome=over,
            policy_version=0,
            seed=self.task.seed,
            first_observation=self._first,
        )


class ToolEnvironments:
    """An environment and its tasks: TRL's ``environment_factory``, and the data set that goes with it."""

    def __init__(
        self,
        name: str,
        *,
        instruction: str,
        tell_admissible: bool = True,
        split: Split = "train",
        tasks_seed: int = 0,
        reward: StepReward = DEFAULT_REWARD,
        **section: Any,
    ) -> None:
        """
        Args:
            name: as gymnasium has it behind ``skillpress/``: ``Countdown``.
            instruction: what a prompt says of the game before what is seen first.
            tell_admissible: list in every answer the actions that can be taken, where the environment tells.
            section: ``tasks``, how many there are, and keys of ``environment`` in params.yaml; those left out
                are gymnasium's.

        Raises:
            UserError: an argument is wrong.
        """
        if name not in REGISTERED:
            raise ParamsError(f"name: is {name!r}; allowed: {', '.join(REGISTERED)}")
        settings = {**REGISTERED[name], **section}
        self._make = partial(SkillpressEnv, split=split, tasks_seed=tasks_seed, reward=reward, **settings)
        self._make().close()  # what is wrong is said now, and not when the first batch is played
        tasks, found = settings.pop("tasks"), bundle(settings["name"])
        self._instruction, self._tell = instruction, tell_admissible
        self._section = section_of(found.parameters, settings)
        self._drawn_from = (split, tasks, tasks_seed)
        self.projection = found.projection_of(self._section)

    @property
    def max_steps(self) -> int:
        """T."""
        return self._section.max_steps

    def __call__(self) -> ToolEnvironment:
        """One more environment."""
        return ToolEnvironment(self._make(), self._tell)

    def dataset(self) -> Dataset:
        """A row per task: ``prompt``, which is the instruction, and ``task`` as JSON."""
        tasks = tasks_of(self._section.name, self._section.model_dump_json(), *self._drawn_from)
        prompt = [{"role": "user", "content": self._instruction}]
        return Dataset.from_list([{"prompt": prompt, "task": json.dumps(asdict(task))} for task in tasks])


class SegCostReward(TrainerCallback):
    """The environment's reward, and lambda seg(s, C) / T off a success's; give it to ``reward_funcs``.

    Given to ``callbacks`` too, it leaves its buffer in every checkpoint; ``load`` goes on from there. It is
    called by one thread, the trainer's; and by all processes equally often, in the same order.
    """

    def __init__(
        self,
        environments: ToolEnvironments,
        efficiency: float = 10.0,
        shaping: str = "segcost",
        skills: SkillParameters = SKILLS,
        seed: int = 0,
    ) -> None:
        """
        Args:
            environments: what is played: its projection and T.
            efficiency: lambda.
            shaping: what a success pays for, as ``reward.shaping`` names it; ``none`` is plain GRPO.
            skills: the ``skills`` section: the buffer, how dictionaries are fitted.
            seed: for searches that draw at random.

        Raises:
            pydantic.ValidationError: a value is wrong.
        """
        launch = launch_of_environment() or Launch(rank=0, size=1, local_rank=0, local_size=1)
        self._ranks = Ranks(
            launch.rank, launch.size, local_rank=launch.local_rank, local_size=launch.local_size
        )
        reward = RewardParameters(
            success=10.0, invalid_penalty=0.0, invalid_counts="any", invalid_credit="trajectory", measures={},
            shaping=shaping, shaping_credit="trajectory", efficiency=efficiency,
        )  # fmt: skip
        self._shaper = RewardShaper(
            projection=environments.projection,
            skills=skills,
            reward=reward,  # of which it reads the last three
            max_steps=environments.max_steps,
            ranks=self._ranks,
            seed=seed,
        )

    def __call__(
        self,
        *,
        environments: Sequence[ToolEnvironment] = (),
        log_metric: Callable[[str, float], None] | None = None,
        **columns: Any,
    ) -> list[float]:
        """One reward per rollout of this process; what it plays in an evaluation counts as a batch too.

        Raises:
            ParamsError: the trainer has no environments.
        """
        if not environments:
            raise ParamsError("SegCostReward: GRPOTrainer gives it no environments; set environment_factory")
        shaped = self._shaper([each.task for each in environments], [each.episode for each in environments])
        if log_metric is not None:
            for name, value in shaped.metrics.items():
                log_metric(name, value)
        scores = [each.episode.total_reward for each in environments]
        return [float(score - penalty) for score, penalty in zip(scores, shaped.penalty, strict=True)]

    @property
    def buffer(self) -> SuccessBuffer:
        """The successes that the next call's dictionary is fitted to beside its own."""
        return self._shaper.buffer

    def load(self, checkpoint: str | Path) -> None:
        """Go on from the buffer that a checkpoint of TRL's holds; all processes call it.

        Raises:
            StorageError: there is none, or it is damaged.
        """
        path = Path(checkpoint) / BUFFER
        if not path.is_file():
            raise StorageError(f"{path}: no such file; SegCostReward was not among the trainer's callbacks")
        self._shaper.buffer = SuccessBuffer(self.buffer.capacity, read_json(path))

    def on_save(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **parts: Any
    ) -> None:
        """Leave the buffer beside the trainer's checkpoint."""
        if self._ranks.rank == 0:
            folder = Path(str(args.output_dir)) / f"checkpoint-{state.global_step}"
            write_json(folder / BUFFER, self.buffer.state())
