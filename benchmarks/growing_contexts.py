"""The savings of growing contexts: prefill, collection and scoring, against prompts that are rebuilt.

    python -m benchmarks.growing_contexts [--model smollm2-135m] [--tasks 2] [--rollouts 2] [--steps 4]

Countdown in words is played in three ways, one after the other in one process, float32, one thread:

    window         every prompt rebuilt from all past turns (``state_update: window`` with T turns)
    concatenate    prompts that extend the last one, with an engine that keeps nothing
    kept           the same prompts with the engine that keeps keys and values

The answers of an untrained model are mostly not actions, so nearly every episode lasts T steps. With
``--model scratch`` the rendering is the compact one, whose window has a place for every past action. Then the
collected steps are scored with gradients, as in an update: those of ``window``, and those of ``kept`` both
one by one and as one sequence per episode. Times are processor seconds, not wall-clock seconds. The
difference between the log-probabilities of the last two shows that both computed the same thing.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import torch

from benchmarks.machine import setting
from skillpress.core.trajectory import Step, Task, Trajectory
from skillpress.environments.section import SplitSizes
from skillpress.experiment.experiment import Experiment
from skillpress.experiment.params import check_params, merge, read_yaml
from skillpress.models.engines.local.engine import LocalEngine
from skillpress.models.policy import Policy
from skillpress.models.policy.passes import pass_rows
from skillpress.models.policy.scorers import choose_scorer
from skillpress.models.policy.scoring import pack_responses
from skillpress.rollouts.agents.parameters import SCRATCH
from skillpress.rollouts.collection import requests
from skillpress.training.algorithms.batch import Batch
from skillpress.training.loop.model_pass import sampled_steps

ROOT = Path(__file__).parents[1]
LIMIT = 4096
"""The most tokens in a forward pass of scoring."""


def experiment_of(model: str, update: str, steps: int, new: int) -> Experiment:
    """Countdown, in the compact rendering for a model trained from scratch, with all turns in a prompt."""
    rendering = "compact" if model == SCRATCH else "text"
    overlay = {
        "environment": {"max_steps": steps},
        "policy": {"model": model, "rendering": rendering, "state_update": update, "history": steps},
        "sampling": {"max_new_tokens": new},
    }
    return Experiment(check_params(merge(read_yaml(ROOT / "params.yaml"), overlay), "benchmark"))


def collect(
    experiment: Experiment, policy: Policy, tasks: list[Task], rollouts: int, keeps: bool
) -> tuple[list[Trajectory], dict[str, float]]:
    """Episodes and their cost."""
    engine = LocalEngine(policy, growing=keeps)
    agent = experiment.agent(policy, engine, experiment.training_sampling)
    with experiment.collector(agent) as collector:
        started = time.process_time()
        played = collector.collect(requests(tasks, rollouts, 0, "benchmark"))
        seconds = time.process_time() - started
        moves = collector.statistics.environment_steps
        prefilled = collector.statistics.prefilled_tokens
    prompts = sum(len(step.prompt_ids) for trajectory in played for step in trajectory.steps)
    return played, {
        "environment_steps": moves,
        "prompt_tokens_per_step": prompts / moves,
        "prefill_tokens_per_step": prefilled / moves,
        "processor_seconds": seconds,
    }


def score(policy: Policy, steps: list[Step]) -> tuple[list[torch.Tensor], dict[str, float]]:
    """Log-probabilities of each step, computed with gradients, and the cost."""
    scorer = choose_scorer(policy.model)
    scorer.zero_grad()
    samples, tokens = Batch.of_steps(steps), 0
    found: dict[int, torch.Tensor] = {}
    started = time.process_time()
    for rows in pass_rows(samples.pairs, LIMIT, scorer.shares_prompts):
        responses = pack_responses(samples.pairs.select(rows))
        logprobs, _ = scorer(responses, 1.0)
        logprobs.sum().backward()
        parts = logprobs.detach().split([len(steps[row].response_ids) for row in rows])
        found |= dict(zip(rows.tolist(), parts, strict=True))
        tokens += responses.size
    seconds = time.process_time() - started
    return [found[row] for row in range(len(steps))], {
        "tokens_of_the_passes": tokens,
        "processor_seconds": seconds,
    }


def compare(model: str, tasks: int, rollouts: int, steps: int, new: int) -> dict[str, Any]:
    """All measurements."""
    window, growing = (experiment_of(model, name, steps, new) for name in ("window", "concatenate"))
    policy = growing.starting_policy()
    made = [*window.params.environment.checked_tasks(SplitSizes(tasks, 0, 1), 0)][:tasks]
    LocalEngine(policy).generate([(1, 2)], window.training_sampling, [0])
    anew, window_cost = collect(window, policy, made, rollouts, keeps=False)
    _, concatenate_cost = collect(growing, policy, made, rollouts, keeps=False)
    grown, kept_cost = collect(growing, policy, made, rollouts, keeps=True)

    _, anew_cost = score(policy, sampled_steps(anew))
    # In reverse order, no step extends its neighbour.
    single, single_cost = score(policy, sampled_steps(grown)[::-1])
    merged, merged_cost = score(policy, sampled_steps(grown))
    apart = (torch.cat(single[::-1]) - torch.cat(merged)).abs().max()
    return {
        "collection": {"window": window_cost, "concatenate": concatenate_cost, "kept": kept_cost},
        "scoring": {"window": anew_cost, "concatenate": single_cost, "merged": merged_cost},
        "scores_apart_nats": float(apart),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="smollm2-135m")
    parser.add_argument("--tasks", type=int, default=2)
    parser.add_argument("--rollouts", type=int, default=2)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--new", type=int, default=8)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    found = compare(chosen.model, chosen.tasks, chosen.rollouts, chosen.steps, chosen.new)
    print(json.dumps({"setting": setting(chosen), **found}, indent=2))


if __name__ == "__main__":
    main()
