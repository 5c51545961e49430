"""Our environments in TRL, and segmentation cost as a reward function of its ``GRPOTrainer``.

    countdown = ToolEnvironments("Countdown", instruction="Reach the target ...", max_numbers=3)
    trainer = GRPOTrainer(
        model=..., args=GRPOConfig(max_tool_calling_iterations=countdown.max_steps, ...),
        train_dataset=countdown.dataset(), environment_factory=countdown,
        reward_funcs=SegCostReward(countdown, shaping_weight=10.0),
    )

TRL plays an environment by tool calls: the model may call the methods of a class, here the one tool ``act``.
A row of the data set is a task, so that a group is one task's rollouts, as here. The tool's answers stay in
the context, so a state update is not possible. TRL has one reward per rollout, so parts that count for their
own step count for the whole episode too.

A success is judged as in ReuseRL's Algorithm 1, by R - lambda seg(s, C) / T. TRL passes the rollouts of one
generation to a reward function and then forgets them. The dictionary C also needs earlier successes, so this
function keeps them (the buffer) from call to call. Under a launcher (torchrun, accelerate) all processes fit
the same dictionary to the successes of all.
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
from skillpress.core.logprobs import NO_LOGPROBS
from skillpress.core.storage import read_json, write_json
from skillpress.core.trajectory import RewardPart, Step, Task, Trajectory
from skillpress.environments.text.prompts import game_turn
from skillpress.integrations.gymnasium import (
    DEFAULT_REWARD,
    REGISTERED,
    SkillpressEnv,
    Split,
    section_of,
    tasks_of,
)
from skillpress.rollouts.agents.parameters import RewardParameters
from skillpress.rollouts.agents.reward import OutcomeReward
from skillpress.rollouts.workers.distributed import Ranks
from skillpress.rollouts.workers.launched import Launch, launch_of_environment
from skillpress.skills.parameters import SkillParameters
from skillpress.skills.step_corpus import SuccessCorpus
from skillpress.training.loop.reward_shaping import RewardShaper

if find_spec("trl") is None:
    raise UserError(
        "skillpress.integrations.trl: the package trl is not installed here; pip install 'skillpress[trl]'"
    )

SKILLS = SkillParameters(
    max_phrase_length=4, buffer=256, corpus="algorithm_1", search="greedy", closure="none", library=None
)
"""The same as ``skills`` in params.yaml."""
BUFFER = "skillpress_buffer.json"
"""The file of earlier successes in a checkpoint folder of TRL."""


class ToolEnvironment:
    """One rollout's environment. TRL resets and reuses it, and offers its public methods as tools."""

    def __init__(self, game: SkillpressEnv, tell_admissible: bool) -> None:
        self._game, self._tell = game, tell_admissible
        self._task: Task | None = None
        self._steps: list[Step] = []
        self._over = ""
        """How the episode ended; empty before its end."""

    def reset(self, task: str | None = None, **columns: Any) -> str:
        """Start the task of a data set row. TRL puts the observation after the row's prompt.

        Raises:
            TaskError: the row has no task.
        """
        if task is None:
            raise TaskError("reset: the data set has no column 'task'; use ToolEnvironments.dataset()")
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
                logprobs=NO_LOGPROBS,
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
        """The current task.

        Raises:
            TaskError: no episode was started.
        """
        if self._task is None:
            raise TaskError("this environment was not reset")
        return self._task

    @property
    def episode(self) -> Trajectory:
        """The rollout so far, without tokens, which TRL holds. A rollout that stopped acting counts as out of
        time."""
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
    """An environment and its tasks: TRL's ``environment_factory``, and the matching data set."""

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
            name: the name in gymnasium without ``skillpress/``: ``Countdown``.
            instruction: the text about the game that comes before the first observation in a prompt.
            tell_admissible: list the actions that can be taken in every answer, if the environment tells
                them.
            section: ``tasks``, the number of tasks, and keys of ``environment`` in params.yaml. Keys left
                out have gymnasium's values.

        Raises:
            UserError: an argument is wrong.
        """
        if name not in REGISTERED:
            raise ParamsError(f"name: is {name!r}; allowed: {', '.join(REGISTERED)}")
        settings = {**REGISTERED[name], **section}
        self.reward = reward
        self._make = partial(SkillpressEnv, split=split, tasks_seed=tasks_seed, reward=reward, **settings)
        self._make().close()  # so that a wrong argument fails here, and not at the first batch
        tasks = settings.pop("tasks")
        self._instruction, self._tell = instruction, tell_admissible
        self._section = section_of(settings)
        self._drawn_from = (split, tasks, tasks_seed)
        self.projection = self._section.make_projection()

    @property
    def max_steps(self) -> int:
        """T."""
        return self._section.max_steps

    def __call__(self) -> ToolEnvironment:
        """A further environment."""
        return ToolEnvironment(self._make(), self._tell)

    def dataset(self) -> Dataset:
        """One row per task: ``prompt``, which is the instruction, and ``task`` as JSON."""
        tasks = tasks_of(self._section.name, self._section.model_dump_json(), *self._drawn_from)
        prompt = [{"role": "user", "content": self._instruction}]
        return Dataset.from_list([{"prompt": prompt, "task": json.dumps(asdict(task))} for task in tasks])


class SegCostReward(TrainerCallback):
    """The environment's reward, minus lambda seg(s, C) / T for a success; pass it to ``reward_funcs``.

    If it is also passed to ``callbacks``, it saves earlier successes in every checkpoint, and ``load``
    restores them.
    The trainer's thread is the only one that calls it. All processes call it equally often, in the same
    order.
    """

    def __init__(
        self,
        environments: ToolEnvironments,
        shaping_weight: float | None = None,
        shaping: str = "segcost",
        skills: SkillParameters = SKILLS,
        seed: int = 0,
    ) -> None:
        """
        Args:
            environments: the environments that TRL plays; they give the projection and T.
            shaping_weight: lambda; None means the environments' reward of a success, the proportion of
                params.yaml.
            shaping: what a success is penalised for, by its name in ``reward.shaping``; ``none`` is plain
            GRPO.
            skills: the ``skills`` section: the buffer, and how dictionaries are fitted.
            seed: the seed of searches and corpora that draw at random.

        Raises:
            ParamsError: ``shaping_weight`` is None, and the environments' reward does not say what a success
                is worth.
            pydantic.ValidationError: a value is wrong.
        """
        if shaping_weight is None:
            if not isinstance(environments.reward, OutcomeReward):
                raise ParamsError(
                    "shaping_weight: is None, must be a number: the environments' reward is "
                    f"{type(environments.reward).__name__}, which does not say what a success is worth"
                )
            shaping_weight = environments.reward.success
        launch = launch_of_environment() or Launch(rank=0, size=1, local_rank=0, local_size=1)
        self._ranks = Ranks(
            launch.rank, launch.size, local_rank=launch.local_rank, local_size=launch.local_size
        )
        reward = RewardParameters(
            success=10.0, invalid_penalty=0.0, invalid_counts="any", invalid_credit="trajectory", measures={},
            shaping=shaping, shaping_credit="trajectory", shaping_weight=shaping_weight,
        )  # fmt: skip
        self._shaper = RewardShaper(
            projection=environments.projection,
            skills=skills,
            reward=reward,  # it reads only the last three of them
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
        """One reward per rollout of this process. Rollouts of an evaluation count as a batch too.

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
    def corpus(self) -> SuccessCorpus:
        """Collects the corpus of each call's dictionary; ``earlier`` has the successes that it keeps."""
        return self._shaper.corpus

    def load(self, checkpoint: str | Path) -> None:
        """Restore the earlier successes from a checkpoint of TRL; all processes must call it.

        Raises:
            StorageError: the checkpoint has none, or they are damaged or of an earlier version.
        """
        path = Path(checkpoint) / BUFFER
        if not path.is_file():
            raise StorageError(f"{path}: no such file; SegCostReward was not among the trainer's callbacks")
        state = read_json(path)
        try:
            self.corpus.load_state_dict(state)
        except ValueError as error:
            raise StorageError(f"{path}: {error}") from error

    def on_save(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **parts: Any
    ) -> None:
        """Save the earlier successes next to the trainer's checkpoint."""
        if self._ranks.rank == 0:
            folder = Path(str(args.output_dir)) / f"checkpoint-{state.global_step}"
            write_json(folder / BUFFER, self.corpus.state_dict())
