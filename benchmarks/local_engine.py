"""The local engine's tokens per second, beside the form that it replaced.

    python -m benchmarks.local_engine [--model smollm2-135m] [--prompts 64] [--longest 400] [--new 64]

Prompts of made-up tokens have lengths spread evenly from a tenth of the longest to the longest; every
response has exactly so many new tokens (no token stops it), so both forms sample the same number. The
old form (``chunked_engine.py``) and the new one take turns in one process, float32, one thread, with the
same seeds; each runs once unmeasured on two short prompts. On a busy machine the processor seconds tell
more than those of the clock; both are given. Responses that agree to the last token, and how far the
log-probabilities of those are apart, show that the same thing was computed: a single rounding may send a
response another way.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import time
from typing import Any

import numpy as np
import torch
import transformers

from benchmarks.chunked_engine import ChunkedEngine
from skillpress.engines.local.engine import LocalEngine
from skillpress.interface import Completion, Sampling, TokenIds
from skillpress.policy import Policy
from skillpress.policy.pretrained import load_pretrained

Engine = ChunkedEngine | LocalEngine


def made_prompts(count: int, longest: int, vocabulary: int) -> list[TokenIds]:
    """Different prompts of mixed lengths, in no order."""
    random = np.random.default_rng(0)
    lengths = np.linspace(max(1, longest // 10), longest, count).astype(int)
    random.shuffle(lengths)
    return [tuple(random.integers(0, vocabulary, length).tolist()) for length in lengths]


def engines(policy: Policy) -> dict[str, Engine]:
    """Both forms, for which no token ends a response."""
    made: dict[str, Engine] = {"before": ChunkedEngine(policy), "now": LocalEngine(policy)}
    for engine in made.values():
        engine.stop = torch.tensor([], dtype=torch.long)
        engine.generate([(1, 2), (3,)], Sampling(max_new_tokens=2), [0, 1])
    return made


def compare(policy: Policy, prompts: list[TokenIds], new: int, rounds: int) -> dict[str, Any]:
    """Tokens per second of both, and how far they agree."""
    clock: dict[str, list[float]] = {}
    processor: dict[str, list[float]] = {}
    answers: dict[str, list[Completion]] = {}
    for _ in range(rounds):
        for name, engine in engines(policy).items():
            wall, busy = time.perf_counter(), time.process_time()
            answers[name] = engine.generate(prompts, Sampling(max_new_tokens=new), range(len(prompts)))
            clock.setdefault(name, []).append(time.perf_counter() - wall)
            processor.setdefault(name, []).append(time.process_time() - busy)
    sampled = len(prompts) * new
    speed = {name: sampled / statistics.median(seconds) for name, seconds in clock.items()}
    per_processor = {name: sampled / statistics.median(seconds) for name, seconds in processor.items()}
    same = [
        (before, now)
        for before, now in zip(answers["before"], answers["now"], strict=True)
        if before.token_ids == now.token_ids
    ]
    apart = [np.abs(np.subtract(before.logprobs, now.logprobs)).max() for before, now in same]
    return {
        "tokens_per_second": speed,
        "tokens_per_processor_second": per_processor,
        "now_over_before": speed["now"] / speed["before"],
        "now_over_before_processor": per_processor["now"] / per_processor["before"],
        "equal_responses": f"{len(same)} of {len(prompts)}",
        "logprobs_apart_nats": float(max(apart, default=float("nan"))),
    }


def main() -> None:
    """Print the comparison as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--model", default="smollm2-135m")
    parser.add_argument("--prompts", type=int, default=64)
    parser.add_argument("--longest", type=int, default=400, help="tokens of the longest prompt")
    parser.add_argument("--new", type=int, default=64, help="tokens of every response")
    parser.add_argument("--rounds", type=int, default=1)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    policy = load_pretrained(chosen.model, "float32")
    prompts = made_prompts(chosen.prompts, chosen.longest, policy.model.config.vocab_size)
    print(json.dumps({
        **compare(policy, prompts, chosen.new, chosen.rounds),
        "setting": {
            **vars(chosen), "prompt_tokens": sum(map(len, prompts)), "dtype": "float32", "threads": 1,
        },
        "versions": {module.__name__: module.__version__ for module in (transformers, torch)},
        "machine": {"python": platform.python_version(), "load": os.getloadavg()[0]},
    }, indent=2))  # fmt: skip


if __name__ == "__main__":
    main()
