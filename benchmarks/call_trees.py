"""The savings of scoring an episode's calls as trees, against chains of neighbours alone.

    python -m benchmarks.call_trees [--model smollm2-135m] [--calls 8] [--words 60] [--new 12]

A program's two sub-agents take turns. Each has a history of its own, which begins with a text of ``words``
words and grows with every answer, so no call extends its neighbour. The program is played once through the
endpoint, with sampled answers. Then its calls are scored with gradients, as in an update, in one process,
float32, one thread:

    neighbours     in the order of time
    trees          in the order of chains: each call behind the one that it extends

A call extends no other if the answer before it does not come back token by token. Times are processor
seconds. The difference between the log-probabilities shows that both computed the same thing.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import openai
import torch

from benchmarks.machine import setting
from skillpress.core.chains import Pairs, in_chains
from skillpress.core.trajectory import Step
from skillpress.environments.section import SplitSizes
from skillpress.experiment.experiment import Experiment
from skillpress.experiment.params import check_params, merge, read_yaml
from skillpress.models.engines.local.engine import LocalEngine
from skillpress.models.policy import Policy
from skillpress.models.policy.passes import pass_rows
from skillpress.models.policy.scorers import choose_scorer
from skillpress.models.policy.scoring import pack_responses
from skillpress.rollouts.collection import requests
from skillpress.training.algorithms.batch import Batch
from skillpress.training.loop.model_pass import sampled_steps

ROOT = Path(__file__).parents[1]
LIMIT = 4096
"""The most tokens in a forward pass of scoring."""
ABOUT = (
    "You keep the kitchen of a small ship, and write down what is left, what is gone, and who asked for it. "
)


async def take_turns(task: Mapping[str, Any], base_url: str, api_key: str) -> int:
    """The program: two sub-agents with histories of their own."""
    client = openai.AsyncOpenAI(base_url=base_url, api_key=api_key)
    text = " ".join((ABOUT * task["words"]).split()[: task["words"]])
    histories: list[list[Any]] = [
        [{"role": "user", "content": f"{name}: {text}"}] for name in ("Cook", "Mate")
    ]
    for number in range(task["calls"]):
        history = histories[number % 2]
        answer = await client.chat.completions.create(
            model="policy", messages=history, max_tokens=task["new"]
        )
        said = answer.choices[0].message.content or ""
        history += [{"role": "assistant", "content": said}, {"role": "user", "content": f"Day {number}?"}]
    return len(histories)


def always(task: Mapping[str, Any], printed: str, folder: str, calls: list[Any]) -> bool:
    """The verifier: success does not matter here."""
    return True


def play(model: str, calls: int, words: int, new: int) -> tuple[Policy, list[Step]]:
    """The policy, and the calls of one episode in the order of time."""
    with TemporaryDirectory() as folder:
        tasks = Path(folder) / "tasks.jsonl"
        tasks.write_text(json.dumps({"id": "kitchen", "calls": calls, "words": words, "new": new}))
        overlay = {
            "environment": {
                "name": "program",
                "run": "benchmarks.call_trees:take_turns",
                "verify": "benchmarks.call_trees:always",
                "tasks": str(tasks),
                "calls": "plain",
                "max_steps": calls,
                "seconds": 600,
                "isolation": "none",
            },
            "tasks": {"train": 1, "validation": 0, "test": 1},
            "policy": {"model": model, "rendering": "requests", "context_tokens": 8000},
            "imitation": {"demonstrations": 0},
            "sampling": {"max_new_tokens": new},
        }
        experiment = Experiment(check_params(merge(read_yaml(ROOT / "params.yaml"), overlay), "benchmark"))
        policy = experiment.starting_policy()
        made = [*experiment.params.environment.checked_tasks(SplitSizes(1, 0, 0), 0)]
        agent = experiment.agent(policy, LocalEngine(policy), experiment.training_sampling)
        with experiment.collector(agent) as collector:
            played = collector.collect(requests(made, 1, 0, "benchmark"))
    return policy, sampled_steps(played)


def score(policy: Policy, samples: Batch) -> tuple[list[torch.Tensor], dict[str, float]]:
    """Log-probabilities of each sample, computed with gradients, and the cost."""
    scorer = choose_scorer(policy.model)
    scorer.zero_grad()
    found, tokens = [torch.empty(0)] * len(samples), 0
    started = time.process_time()
    for rows in pass_rows(samples.pairs, LIMIT, scorer.shares_prompts):
        some = samples.cut(rows)
        responses = pack_responses(some.pairs)
        logprobs, _ = scorer(responses, 1.0)
        logprobs.sum().backward()
        for row, part in zip(rows, logprobs.detach().split(some.tokens.tolist()), strict=True):
            found[row] = part
        tokens += responses.size
    return found, {
        "sequences": len(samples.pairs.chains),
        "tokens_of_the_sequences": sequence_tokens(samples.pairs),
        "tokens_of_the_passes": tokens,
        "processor_seconds": time.process_time() - started,
    }


def sequence_tokens(pairs: Pairs) -> int:
    """The tokens of all sequences, without padding and without sharing of prompts."""
    return sum(sum(map(len, pairs.rows[chain[-1]])) for chain in pairs.chains)


def compare(model: str, calls: int, words: int, new: int) -> dict[str, Any]:
    """All measurements."""
    policy, steps = play(model, calls, words, new)
    samples = Batch.of_steps(steps)
    score(policy, samples.cut(np.arange(2)))  # warms up
    started = time.process_time()
    order = in_chains(samples.pairs, np.zeros(len(samples), np.int64))
    searched = time.process_time() - started
    apart, neighbours = score(policy, samples)
    together, trees = score(policy, samples.cut(order))
    differences = [float((apart[row] - part).abs().max()) for row, part in zip(order, together, strict=True)]
    return {
        "calls": len(steps),
        "neighbours": neighbours,
        "trees": {**trees, "search_seconds": searched},
        "ratio": {name: neighbours[name] / trees[name] for name in neighbours},
        "scores_apart_nats": max(differences),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="smollm2-135m")
    parser.add_argument("--calls", type=int, default=8)
    parser.add_argument("--words", type=int, default=60)
    parser.add_argument("--new", type=int, default=12)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    found = compare(chosen.model, chosen.calls, chosen.words, chosen.new)
    print(json.dumps({"setting": setting(chosen), **found}, indent=2))


if __name__ == "__main__":
    main()
