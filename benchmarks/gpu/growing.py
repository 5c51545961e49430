"""Prompts that grow over turns, in the local engine: the share of time that moving kept caches takes.

    python -m benchmarks.gpu.growing [--model smollm2-shape] [--rows 64] [--turns 5] [--device cuda]

Each turn's prompt is the last prompt, its response, and new random tokens. ``kept`` keeps keys and values,
``rebuilt`` computes every prompt again. The cost of moving is what a turn of one token with kept caches takes
beyond the same new tokens as prompts of their own, from the second turn on. Prints JSON.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from benchmarks.device import add_options, device_name, finish
from benchmarks.shapes import SHAPES, random_policy
from skillpress.core.engine import Sampling
from skillpress.core.trajectory import TokenIds
from skillpress.models.engines.local.engine import LocalEngine
from skillpress.models.policy import Policy


class Turns:
    """Plays turns with one policy, and measures each."""

    def __init__(self, policy: Policy, chosen: argparse.Namespace) -> None:
        self.policy, self.chosen = policy, chosen

    def engine(self, keeps: bool) -> LocalEngine:
        """A new engine whose responses no token ends."""
        engine = LocalEngine(self.policy, growing=keeps)
        engine.stop = np.array([], np.int64)
        return engine

    def added(self, turn: int) -> list[TokenIds]:
        """The new tokens of every row."""
        random = np.random.default_rng(turn)
        size = (self.chosen.rows, self.chosen.added)
        return [tuple(row) for row in random.integers(4, self.policy.vocabulary, size).tolist()]

    def play(self, engine: LocalEngine, new: int) -> list[float]:
        """Seconds of each turn, with ``new`` tokens in a response."""
        engine.abort()  # forgets what an earlier call kept
        prompts, seconds = self.added(0), []
        for turn in range(self.chosen.turns):
            began = time.perf_counter()
            answers = engine.generate(prompts, Sampling(max_new_tokens=new), range(len(prompts)))
            finish(engine.model.device)
            seconds.append(time.perf_counter() - began)
            more = self.added(turn + 1)
            rows = zip(prompts, answers, more, strict=True)
            prompts = [prompt + answer.token_ids + own for prompt, answer, own in rows]
        return seconds

    def alone(self, engine: LocalEngine) -> list[float]:
        """Seconds of each turn's new tokens as prompts of their own, with responses of one token."""
        seconds = []
        for turn in range(self.chosen.turns):
            prompts = self.added(turn)
            began = time.perf_counter()
            engine.generate(prompts, Sampling(max_new_tokens=1), range(len(prompts)))
            finish(engine.model.device)
            seconds.append(time.perf_counter() - began)
        return seconds


def measure(turns: Turns, new: int) -> dict[str, Any]:
    """Seconds of all ways; each is measured once it has run before."""
    kept, rebuilt = turns.engine(True), turns.engine(False)
    found: dict[str, list[float]] = {}
    ways: dict[str, Callable[[], list[float]]] = {
        "kept": lambda: turns.play(kept, new),
        "rebuilt": lambda: turns.play(rebuilt, new),
        "kept_one_token": lambda: turns.play(kept, 1),
        "alone_one_token": lambda: turns.alone(rebuilt),
    }
    for name, work in ways.items():
        work()
        found[name] = work()
    later = {name: sum(seconds[1:]) for name, seconds in found.items()}
    moving = max(0.0, later["kept_one_token"] - later["alone_one_token"])
    return {"seconds": found, "later_seconds": later, "moving_share": moving / later["kept"]}


def main() -> None:
    """Print the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--model", choices=[*SHAPES], default="smollm2-shape")
    parser.add_argument("--rows", type=int, default=64)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--added", type=int, default=150, help="new tokens of a prompt and turn")
    parser.add_argument("--new", type=int, default=32, help="tokens of a response")
    add_options(parser)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    device = torch.device(chosen.device)
    policy = random_policy(chosen.model, chosen.dtype)
    torch.nn.Module.to(policy.model, device)
    found = measure(Turns(policy, chosen), chosen.new)
    later = found["later_seconds"]
    print(json.dumps({
        "summary": f"{found['moving_share']:.0%} of the later turns' time moves caches; kept "
        f"{later['kept']:.2f} s, rebuilt {later['rebuilt']:.2f} s",
        **found,
        "setting": {**vars(chosen), "device": device_name(device), "torch": torch.__version__},
    }, indent=2))  # fmt: skip


if __name__ == "__main__":
    main()
