"""The local engine's tokens per second beside transformers' ``generate`` and, with ``--full``, beside others.

    python -m benchmarks.local_engine [--model smollm2-135m] [--prompts 64] [--longest 400] [--new 64]
    python -m benchmarks.local_engine --device cuda --dtype bfloat16 --prompts 64 256 1024 --longest 256

Prompts of random tokens have lengths spread evenly from a tenth of the longest to the longest. No token ends
a response, so all forms sample the same number. They take turns in one process, float32, one thread, with the
same seeds; each runs once unmeasured on two short prompts. On a busy machine the processor seconds say more
than wall-clock seconds; the result has both.

``--full``, which a GPU implies, adds the engine without static shapes and CUDA graphs (``growing``), and vLLM
if it is installed. Each form then runs once unmeasured on all prompts (``first_seconds``: kernels are chosen
and graphs recorded). The result also has the share of the time that one token alone takes, which is prefill,
and how far 64 responses' log-probabilities are from the learner's. ``--forms`` runs only the named forms.
``--model scratch`` is a small policy made from scratch, ``smollm2-shape`` one with random weights. Never
tried with vLLM.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch
import transformers

from benchmarks.device import add_options, device_name, finish
from benchmarks.grpo_step.setting import SETTINGS, make_policy
from benchmarks.sampling_peers import FORMS, Sampler, samplers
from benchmarks.shapes import SHAPES, random_policy
from skillpress.core.engine import Completion
from skillpress.core.trajectory import TokenIds
from skillpress.models.engines.local.engine import LocalEngine
from skillpress.models.policy import Policy
from skillpress.models.policy.pretrained import load_pretrained
from skillpress.models.policy.scoring import ResponseScorer, pack_responses

SCORED = 64
"""Responses whose log-probabilities the learner's scorer also computes."""


def made_prompts(count: int, longest: int, vocabulary: int) -> list[TokenIds]:
    """Different prompts of mixed lengths, in random order."""
    random = np.random.default_rng(0)
    lengths = np.linspace(max(1, longest // 10), longest, count).astype(int)
    random.shuffle(lengths)
    return [tuple(random.integers(0, vocabulary, length).tolist()) for length in lengths]


@dataclass
class Run:
    """One form with its times and results."""

    sample: Sampler
    first: float
    """Seconds of the unmeasured run."""
    clock: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)
    answers: list[Completion] = field(default_factory=list)

    def measure(self, prompts: list[TokenIds], new: int, device: torch.device) -> None:
        """Sample once more."""
        wall, busy = time.perf_counter(), time.process_time()
        self.answers = self.sample(prompts, new)
        finish(device)
        self.clock.append(time.perf_counter() - wall)
        self.processor.append(time.process_time() - busy)


def seconds_of(work: Callable[[], object], device: torch.device) -> float:
    """Seconds that the work takes."""
    began = time.perf_counter()
    work()
    finish(device)
    return time.perf_counter() - began


def chosen_forms(named: Sequence[str] | None, full: bool) -> tuple[str, ...]:
    """The forms to run: the named ones, otherwise two or, with ``full``, all that are installed."""
    if named:
        return tuple(named)
    if not full:
        return ("local", "transformers")
    return FORMS if find_spec("vllm") else FORMS[:-1]


def compare(
    policy: Policy, prompts: list[TokenIds], new: int, rounds: int, forms: Sequence[str], full: bool
) -> dict[str, Any]:
    """Tokens per second of the forms."""
    device, runs = policy.model.device, {}
    for name, sample in samplers(policy, forms, max(map(len, prompts)) + new, len(prompts)).items():
        first = (prompts, new) if full else ([(1, 2), (3,)], 2)
        runs[name] = Run(sample, seconds_of(partial(sample, *first), device))
    for _ in range(rounds):
        for run in runs.values():
            run.measure(prompts, new, device)
    sampled = len(prompts) * new
    speed = {name: sampled / statistics.median(run.clock) for name, run in runs.items()}
    per_processor = {name: sampled / statistics.median(run.processor) for name, run in runs.items()}
    found: dict[str, Any] = {"tokens_per_second": speed, "tokens_per_processor_second": per_processor}
    if {"local", "transformers"} <= speed.keys():
        found["local_over_transformers"] = speed["local"] / speed["transformers"]
        found["local_over_transformers_processor"] = per_processor["local"] / per_processor["transformers"]
    return {**found, **further(policy, prompts, runs)} if full else found


def further(policy: Policy, prompts: list[TokenIds], runs: dict[str, Run]) -> dict[str, Any]:
    """Results over all forms, and a comparison of the engine with the learner."""
    device = policy.model.device
    prefill = {name: seconds_of(partial(run.sample, prompts, 1), device) for name, run in runs.items()}
    return {
        "first_seconds": {name: run.first for name, run in runs.items()},
        "prefill_share": {name: prefill[name] / statistics.median(run.clock) for name, run in runs.items()},
        "learner_apart": {
            name: scored(policy, prompts[:SCORED], run.answers[:SCORED])
            for name, run in runs.items()
            if name != "transformers"  # it reports no log-probabilities
        },
    }


@torch.no_grad()
def scored(policy: Policy, prompts: list[TokenIds], answers: list[Completion]) -> dict[str, float]:
    """The distance from the learner's log-probabilities: nats per token, and ratios of whole responses."""
    pairs = [(prompt, answer.token_ids) for prompt, answer in zip(prompts, answers, strict=True)]
    scores, _ = ResponseScorer(policy.model)(pack_responses(pairs, policy.model.device), 1.0)
    sampled = np.array([answer.logprobs for answer in answers])
    apart = scores.float().cpu().numpy().reshape(sampled.shape) - sampled
    ratios = np.exp(apart.sum(axis=1))
    return {
        "mean_nats": float(np.abs(apart).mean()),
        "largest_nats": float(np.abs(apart).max()),
        "ratio_smallest": float(ratios.min()),
        "ratio_median": float(np.median(ratios)),
        "ratio_largest": float(ratios.max()),
    }


def main() -> None:
    """Print the comparison as JSON, or one per number of prompts if there are several."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--model", default="smollm2-135m")
    parser.add_argument("--prompts", type=int, nargs="+", default=[64])
    parser.add_argument("--longest", type=int, default=400, help="tokens of the longest prompt")
    parser.add_argument("--new", type=int, default=64, help="tokens of every response")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--full", action="store_true", help="see above; a GPU implies it")
    parser.add_argument("--forms", nargs="+", choices=FORMS, help="the only forms to run")
    add_options(parser)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    scratch = chosen.model == "scratch"
    if chosen.model in SHAPES:
        policy = random_policy(chosen.model, chosen.dtype)
    else:
        policy = make_policy(SETTINGS["default"]) if scratch else load_pretrained(chosen.model, chosen.dtype)
    device = torch.device(chosen.device)
    torch.nn.Module.to(policy.model, device)
    full = chosen.full or device.type == "cuda"
    forms = chosen_forms(chosen.forms, full)
    results = []
    for count in chosen.prompts:
        prompts = made_prompts(count, chosen.longest, policy.model.config.vocab_size)
        results.append({
            **compare(policy, prompts, chosen.new, chosen.rounds, forms, full),
            "setting": {
                **vars(chosen), "prompts": count, "prompt_tokens": sum(map(len, prompts)), "threads": 1,
                "device": device_name(device), "decoder": LocalEngine(policy).decoder.name,
            },
            "versions": {module.__name__: module.__version__ for module in (transformers, torch)},
            "machine": {"python": platform.python_version(), "load": os.getloadavg()[0]},
        })  # fmt: skip
    print(json.dumps(results if len(results) > 1 else results[0], indent=2))


if __name__ == "__main__":
    main()
