"""One GRPO optimizer step against TRL's, on the same model, prompts, completions and tokens.

    python -m benchmarks.grpo_step [--model default|3m] [--steps 6]

Both sides sample 64 completions of exactly 32 tokens after prompts of 200 tokens, in groups of 8, and
make one optimizer step on them: float32, one thread, no KL term, temperature 1, AdamW, the same
learning rate. The reward is a number drawn from a completion's tokens, so that every group has
advantages and nothing is skipped. Ours samples with the local engine and trains with DeepSpeed
(ZeRO 1, one process); TRL's is ``GRPOTrainer`` with ``use_cpu=True`` and otherwise its defaults. The
two take turns, and the ratio of their median seconds per step is the result.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import torch
import transformers
import trl

from skillpress.algorithms.batch import batch_of, one_process
from skillpress.algorithms.grpo import GRPO, GRPOParameters
from skillpress.algorithms.selections.none import NoSelection, NoSelectionParameters
from skillpress.engines.local.engine import LocalEngine
from skillpress.interface import Sampling, ScratchVocabulary
from skillpress.policy import Policy, load_policy, save_policy
from skillpress.policy.scratch import build_scratch_policy
from skillpress.training.learner import Learner
from skillpress.training.optimizer import AdamW
from skillpress.training.samples import Samples
from skillpress.trajectory import RewardPart, Step, Trajectory
from skillpress.workers.distributed import Ranks, free_port, join_ranks

PROMPT, RESPONSE, GROUPS, GROUP = 200, 32, 8, 8
SHAPES = {"default": (64, 2, 2), "3m": (192, 6, 6)}
"""Width, layers, heads; ``default`` is the policy of params.yaml."""
LEARNING_RATE = 1e-5
WARM_UP = 2
"""Steps of each process that do not count."""


def make_policy(shape: str) -> Policy:
    """A policy of a thousand numbers with a stop word that is hardly ever drawn."""
    numbers = {str(number): number for number in range(1000)}
    vocabulary = ScratchVocabulary((*numbers, "stop"), ("stop",), numbers, PROMPT)
    return build_scratch_policy(vocabulary, *SHAPES[shape], response_words=RESPONSE, seed=0)


def make_prompts(step: int) -> list[str]:
    """The prompts of one step, one per group."""
    random = np.random.default_rng(step)
    return [" ".join(map(str, random.integers(0, 1000, PROMPT))) for _ in range(GROUPS)]


def reward(token_ids: list[int]) -> float:
    """Something that differs between completions."""
    return float(np.mean(token_ids) % 10)


class Ours:
    """Sample with the local engine, update with DeepSpeed."""

    def __init__(self, policy: Policy) -> None:
        ranks = Ranks()
        join_ranks(ranks, free_port())
        self.policy = policy
        self.engine = LocalEngine(policy)
        self.engine.stop = torch.tensor([], dtype=torch.long)  # exactly RESPONSE tokens, as TRL's side
        everything = NoSelectionParameters(name="none")
        section = GRPOParameters(
            name="grpo",
            scale="std",
            baseline_weighting="per_trajectory",
            clip_low=0.2,
            clip_high=0.2,
            kl_coefficient=0.0,
            aggregation="token_mean",
            importance="none",
            importance_cap=2.0,
            select=everything,
        )
        self.grpo = GRPO(section, NoSelection(everything))
        self.learner = Learner(
            policy.model, self.grpo.loss, "zero1_fp32", AdamW(LEARNING_RATE), 1.0, 1 << 20, ranks
        )
        self.steps = 0

    def step(self) -> None:
        self.steps += 1
        prompts = [ids for ids in self.policy.encode(make_prompts(self.steps)) for _ in range(GROUP)]
        seeds = [self.steps * 1000 + row for row in range(len(prompts))]
        completions = self.engine.generate(prompts, Sampling(max_new_tokens=RESPONSE), seeds)
        returns = np.array([reward(list(c.token_ids)) for c in completions])
        groups = np.repeat(np.arange(GROUPS), GROUP)
        steps = tuple(
            Step(prompt, c.token_ids, c.logprobs, "", "", "", None, (RewardPart("success", r, "trajectory"),))
            for prompt, c, r in zip(prompts, completions, returns.tolist(), strict=True)
        )
        episodes = [Trajectory("", "", 0, (step,), False, True, False, "", 0, 0) for step in steps]
        advantages = self.grpo.advantages(batch_of(episodes, groups.tolist(), 1.0), one_process)
        lengths = np.array([len(step.response_ids) for step in steps])
        assert lengths.tolist() == [RESPONSE] * len(steps)
        weights = self.grpo.token_weights(lengths, float(lengths.sum()), float(len(steps)))
        self.learner.update(Samples(steps, advantages, weights))
        self.engine.update_weights(self.learner.weights(), self.steps)


class Clock(transformers.TrainerCallback):
    """Seconds of each of a trainer's steps, sampling included."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.last = time.perf_counter()

    def on_train_begin(self, *arguments: Any, **named: Any) -> None:
        self.last = time.perf_counter()

    def on_step_end(self, *arguments: Any, **named: Any) -> None:
        now = time.perf_counter()
        self.seconds.append(now - self.last)
        self.last = now


def time_ours(shape: str, steps: int) -> list[float]:
    """Seconds of each of our steps."""
    with tempfile.TemporaryDirectory() as folder:
        save_policy(make_policy(shape), Path(folder) / "model")
        ours = Ours(load_policy(Path(folder) / "model"))
    seconds = []
    for _ in range(steps):
        started = time.perf_counter()
        ours.step()
        seconds.append(time.perf_counter() - started)
    return seconds


def time_trl(shape: str, steps: int) -> list[float]:
    """Seconds of each of TRL's steps."""
    clock = Clock()
    with tempfile.TemporaryDirectory() as folder:
        save_policy(make_policy(shape), Path(folder) / "model")
        policy = load_policy(Path(folder) / "model")
        assert policy.model.generation_config is not None
        policy.model.generation_config.eos_token_id = None
        policy.tokenizer.eos_token = "<pad>"
        rows = [prompt for step in range(1, steps + 1) for prompt in make_prompts(step)]
        trl.GRPOTrainer(
            model=policy.model,
            processing_class=policy.tokenizer,
            reward_funcs=lambda completion_ids, **named: [reward(ids) for ids in completion_ids],
            args=trl.GRPOConfig(
                output_dir=folder,
                use_cpu=True,
                bf16=False,
                per_device_train_batch_size=GROUPS * GROUP,
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
            ),
            train_dataset=datasets.Dataset.from_dict({"prompt": rows}),
            callbacks=[clock],
        ).train()
    return clock.seconds


SIDES = {"skillpress": time_ours, "trl": time_trl}


def compare(shape: str, steps: int) -> dict[str, Any]:
    """Median seconds per step of both sides, each in processes of its own, in turn and twice.

    Separate processes: DeepSpeed's process group would make TRL's trainer a distributed one.
    """
    seconds: dict[str, list[float]] = {side: [] for side in SIDES}
    for side in [*SIDES] * 2:
        command = [sys.executable, "-m", "benchmarks.grpo_step", "--model", shape, "--steps", str(steps)]
        finished = subprocess.run([*command, "--side", side], capture_output=True, text=True, check=True)
        seconds[side] += json.loads(finished.stdout.splitlines()[-1])[WARM_UP:]
    medians = {side: statistics.median(values) for side, values in seconds.items()}
    return {
        "model": shape,
        "parameters": make_policy(shape).parameters,
        "steps": len(seconds["trl"]),
        "seconds_per_step": medians,
        "trl_over_skillpress": medians["trl"] / medians["skillpress"],
    }


def main() -> None:
    """Print the comparison as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--model", choices=[*SHAPES], default="default")
    parser.add_argument("--steps", type=int, default=6, help="of each of two processes a side")
    parser.add_argument("--side", choices=[*SIDES], help="print the seconds of one side's steps only")
    chosen = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"  # accelerate takes two threads where nobody says
    torch.set_num_threads(1)
    if chosen.side:
        print(json.dumps(SIDES[chosen.side](chosen.model, chosen.steps)))
        return
    setting = {
        "completions": GROUPS * GROUP,
        "tokens": RESPONSE,
        "prompt": PROMPT,
        "group": GROUP,
        "dtype": "float32",
        "threads": 1,
    }
    print(json.dumps({
        **compare(chosen.model, chosen.steps),
        "setting": setting,
        "versions": {module.__name__: module.__version__ for module in (trl, transformers, torch)},
        "machine": {"python": platform.python_version(), "load": os.getloadavg()[0]},
    }, indent=2))  # fmt: skip


if __name__ == "__main__":
    main()
