"""TRL's side of the comparison over episodes: ``GRPOTrainer`` plays the same tasks with the same agent.

TRL leaves multi-turn rollouts to a function of its user. Ours plays them with our environment and our agent,
whose prompts are those of our side, token by token, and whose engine is transformers' ``generate``, all open
episodes in one batch, as a trainer without vLLM samples. An episode is one completion: everything after its
first prompt, with the tokens of later prompts masked.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import datasets
import torch
from trl.trainer.grpo_config import GRPOConfig

from benchmarks.grpo_step.setting import LEARNING_RATE, Place, Timed
from benchmarks.grpo_step.trl_side import Clock, TimedTrainer
from skillpress.core.engine import Completion, Promises, Sampling, StateDict
from skillpress.core.logprobs import as_logprobs
from skillpress.core.task_files import read_tasks
from skillpress.core.trajectory import TokenIds, Trajectory
from skillpress.experiment.experiment import Experiment
from skillpress.experiment.params import Params
from skillpress.models.engines.batch import BatchEngine
from skillpress.models.policy import Policy, load_policy
from skillpress.rollouts.collection import requests

if TYPE_CHECKING:
    from transformers._typing import GenerativePreTrainedModel

MICROBATCH = 2
"""Episodes per forward and backward pass, about as many tokens as our side's passes."""


class Generating(BatchEngine):
    """transformers' ``generate`` as an engine; it reports no log-probabilities."""

    promises = Promises(exact_seeds=False, exact_logprobs=False, lockstep=True)

    def __init__(self, policy: Policy) -> None:
        super().__init__()
        self.model = cast("GenerativePreTrainedModel", policy.model)
        self.stop = policy.stop_token_ids

    def generate(
        self, prompts: Sequence[TokenIds], sampling: Sampling, seeds: Sequence[int]
    ) -> list[Completion]:
        width = max(map(len, prompts))
        rows = torch.tensor([[0] * (width - len(prompt)) + list(prompt) for prompt in prompts])
        lengths = torch.tensor([len(prompt) for prompt in prompts])
        mask = torch.arange(width) >= (width - lengths)[:, None]
        with torch.no_grad():
            found = self.model.generate(
                rows, attention_mask=mask, do_sample=True, temperature=1.0, top_k=0, top_p=1.0,
                max_new_tokens=sampling.max_new_tokens, pad_token_id=0,
            )  # fmt: skip
        assert isinstance(found, torch.Tensor)
        return [self._completion(row) for row in found[:, width:].tolist()]

    def _completion(self, row: list[int]) -> Completion:
        """The tokens up to the first that ends a response."""
        end = next((place + 1 for place, token in enumerate(row) if token in self.stop), len(row))
        ids = tuple(row[:end])
        return Completion(token_ids=ids, logprobs=as_logprobs((0.0,) * end), finish_reason="length")

    def update_weights(self, weights: StateDict, version: int) -> None:
        """Nothing to do: it samples from the trainer's own model."""


def time_trl_episodes(params: Params, folder: Path, place: Place) -> tuple[Timed, list[int]]:
    """Time TRL's steps; also returns the sampled tokens of each step."""
    clock, sampled = Clock(place), list[int]()
    experiment, policy = Experiment(params), load_policy(folder / "start")
    tasks, section = read_tasks(folder / "train.parquet"), params.training
    agent = experiment.agent(policy, Generating(policy), experiment.training_sampling)

    def play(prompts: Any, trainer: Any) -> dict[str, Any]:
        """The episodes of a step's groups, in the form that TRL learns from."""
        step = trainer.state.global_step
        first = step * section.tasks_per_step % len(tasks)
        chosen = tasks[first : first + section.tasks_per_step]
        with experiment.collector(agent) as collector:
            played = collector.collect(requests(chosen, section.rollouts_per_task, 0, "benchmark", step))
        sampled.append(sum(len(each.response_ids) for one in played for each in one.steps))
        return in_trls_form(played)

    with tempfile.TemporaryDirectory() as output:
        trainer = TimedTrainer(
            model=policy.model,
            processing_class=policy.tokenizer,
            reward_funcs=every_other,
            args=_configuration(params, place, output),
            train_dataset=datasets.Dataset.from_dict({"prompt": ["task"] * len(tasks)}),
            callbacks=[clock],
            rollout_func=play,
        )
        trainer.clock = clock
        trainer.train()
    return Timed(clock.steps, clock.updates), sampled


def every_other(completions: list[Any], **named: Any) -> list[float | None]:
    """Rewards of 0 and 1 in turn."""
    return [float(row % 2) for row in range(len(completions))]


def in_trls_form(played: Sequence[Trajectory]) -> dict[str, Any]:
    """One prompt and one completion per episode, whose prompts extend one another."""
    found: dict[str, Any] = {"prompt_ids": [], "completion_ids": [], "logprobs": [], "env_mask": []}
    for trajectory in played:
        first, *_ = trajectory.steps
        behind: list[int] = []
        mask: list[int] = []
        for step in trajectory.steps:
            whole = [*first.prompt_ids, *behind]
            assert list(step.prompt_ids[: len(whole)]) == whole, "a prompt does not extend the last one"
            said = step.prompt_ids[len(whole) :]
            behind += [*said, *step.response_ids]
            mask += [0] * len(said) + [1] * len(step.response_ids)
        found["prompt_ids"].append(list(first.prompt_ids))
        found["completion_ids"].append(behind)
        found["logprobs"].append([0.0] * len(behind))
        found["env_mask"].append(mask)
    return found


def _configuration(params: Params, place: Place, output: str) -> GRPOConfig:
    section = params.training
    episodes = section.tasks_per_step * section.rollouts_per_task
    return GRPOConfig(
        output_dir=output,
        use_cpu=place.device.type == "cpu",
        bf16=place.dtype == "bfloat16",
        per_device_train_batch_size=MICROBATCH,
        gradient_accumulation_steps=episodes // MICROBATCH,
        num_generations=section.rollouts_per_task,
        max_completion_length=params.policy.context_tokens,
        max_steps=section.steps,
        learning_rate=LEARNING_RATE,
        beta=params.algorithm.kl_coefficient,
        temperature=1.0,
        top_k=0,
        shuffle_dataset=False,
        gradient_checkpointing=False,
        report_to=[],
        save_strategy="no",
        logging_strategy="no",
        disable_tqdm=True,
    )
