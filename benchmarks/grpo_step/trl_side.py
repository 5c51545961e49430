"""TRL's side: ``GRPOTrainer`` with its defaults, except for the settings of the comparison."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import datasets
import transformers
from trl.trainer.grpo_config import GRPOConfig
from trl.trainer.grpo_trainer import GRPOTrainer

from benchmarks.grpo_step.setting import (
    GROUP,
    LEARNING_RATE,
    RESPONSE,
    Place,
    Setting,
    Timed,
    make_prompts,
    reward,
)
from skillpress.models.policy import load_policy


class Clock(transformers.TrainerCallback):
    """The seconds of each of a trainer's steps, sampling included, and of its update."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.sampling = 0.0
        """Seconds of sampling in the current step; the trainer writes it."""
        self.steps: list[float] = []
        self.updates: list[float] = []
        self.last = place.now()

    def on_train_begin(self, *arguments: Any, **named: Any) -> None:
        self.last = self.place.now()

    def on_step_end(self, *arguments: Any, **named: Any) -> None:
        now = self.place.now()
        self.steps.append(now - self.last)
        self.updates.append(self.steps[-1] - self.sampling)
        self.last = now


class TimedTrainer(GRPOTrainer):
    """TRL's trainer, which records the time of sampling and rewards."""

    clock: Clock

    def _generate_and_score_completions(self, *arguments: Any, **named: Any) -> Any:
        started = self.clock.place.now()
        found = super()._generate_and_score_completions(*arguments, **named)
        self.clock.sampling = self.clock.place.now() - started
        return found


def time_trl(setting: Setting, folder: Path, steps: int, place: Place) -> Timed:
    """Time TRL's steps."""
    clock = Clock(place)
    policy = load_policy(folder)
    assert policy.model.generation_config is not None
    policy.model.generation_config.eos_token_id = None
    if setting.shape is not None or setting.random:
        policy.tokenizer.eos_token = "<pad>"
    rows = [prompt for step in range(1, steps + 1) for prompt in make_prompts(setting, step)]
    with tempfile.TemporaryDirectory() as output:
        trainer = TimedTrainer(
            model=policy.model,
            processing_class=policy.tokenizer,
            reward_funcs=rewards,
            args=_configuration(setting, steps, place, output),
            train_dataset=datasets.Dataset.from_dict({"prompt": rows}),
            callbacks=[clock],
        )
        trainer.clock = clock
        trainer.train()
    return Timed(clock.steps, clock.updates)


def rewards(completion_ids: list[list[int]], **named: Any) -> list[float | None]:
    """The reward of each completion."""
    return [reward(ids) for ids in completion_ids]


def _configuration(setting: Setting, steps: int, place: Place, output: str) -> GRPOConfig:
    return GRPOConfig(
        output_dir=output,
        use_cpu=place.device.type == "cpu",
        bf16=place.dtype == "bfloat16",
        per_device_train_batch_size=setting.completions,
        num_generations=GROUP,
        max_completion_length=RESPONSE,
        max_steps=steps,
        learning_rate=LEARNING_RATE,
        beta=0.0,
        temperature=1.0,
        top_k=0,
        shuffle_dataset=False,
        gradient_checkpointing=False,
        report_to=[],
        save_strategy="no",
        logging_strategy="no",
        disable_tqdm=True,
        generation_kwargs={"min_new_tokens": RESPONSE, "eos_token_id": None},
    )
