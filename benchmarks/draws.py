"""How well episodes repeat if other episodes are played beside them, under two ways to draw a token.

    python -m benchmarks.draws [--demonstrations 8000] [--result FILE]

An engine rounds logits differently in another batch. This compares two draws that depend only on the logits
and a row's own seed, in one run and with one policy for Countdown, which is trained here:

    inverse   the token at which a uniform number falls in the cumulative distribution, as before
    gumbel    the largest of log-probability plus Gumbel noise, as the engine draws (``engines/sampler.py``)

The same episodes are played with several numbers of ``sampling.slots``, and with the episodes divided between
two engines, as ``processes: 2`` divides them. ``changed`` counts episodes with a different token than with
all of them in one batch. That depends on luck, so the probability is computed too. At the same place of an
episode both engines have logits; from these follows the exact probability over all seeds that the two draws
differ, given as ``turned_per_million`` draws. For intervals [F, G) and [F', G') of token i

    inverse   1 - sum over i of |[F_i, G_i) and [F'_i, G'_i)|
    gumbel    1 - sum over i of 1 / (sum over j of exp max(l_j - l_i, l'_j - l'_i))

In bfloat16 the policy's weights are rounded as well, so its episodes differ from those in float32. The cost
is the processor time per sampled token of all playing code, with the draws in turns.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.lag import changed, prepare
from skillpress.core.engine import Sampling
from skillpress.core.seeds import derive
from skillpress.core.storage import write_json
from skillpress.core.task_files import read_tasks
from skillpress.core.trajectory import Task, Trajectory
from skillpress.experiment.collection import share_of
from skillpress.experiment.experiment import Experiment
from skillpress.experiment.params import Params, load_params
from skillpress.models.engines.gumbel_max import MIXING
from skillpress.models.engines.local.engine import LocalEngine
from skillpress.models.engines.sampler import drawn_from
from skillpress.models.policy import Policy, load_policy
from skillpress.rollouts.collection import requests

TOGETHER = {"slots": 512, "processes": 1}
SETTINGS = ({"slots": 64, "processes": 1}, {"slots": 8, "processes": 1}, {"slots": 1, "processes": 1},
            {"slots": 512, "processes": 2})  # fmt: skip
"""The settings that are compared with all episodes together."""
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
EACH = 2
"""Episodes per task."""
LOOKED_AT = 500
"""Draws whose probability to change is computed; each takes a pass over pairs of tokens."""
TURNS = 5
"""How often the cost of each draw is measured."""

Place = tuple[int, int]
"""A response's seed and a position in it."""


class GumbelEngine(LocalEngine):
    """The present engine, which records the logits at each place."""

    def __init__(self, policy: Policy) -> None:
        super().__init__(policy)
        self.policy = policy
        self.seen: dict[Place, torch.Tensor] = {}
        """The [vocabulary] logits at each place."""
        self.remembers = True

    def draw(
        self, logits: torch.Tensor, sampling: Sampling, seeds: NDArray[np.uint64], position: int
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """See :class:`LocalEngine`."""
        if self.remembers:
            self.seen |= {
                (int(seed), position): row.float().clone() for seed, row in zip(seeds, logits, strict=True)
            }
        return self.drawn(logits, sampling, seeds, position)

    def drawn(
        self, logits: torch.Tensor, sampling: Sampling, seeds: NDArray[np.uint64], position: int
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The tokens and their log-probabilities."""
        return super().draw(logits, sampling, seeds, position)


class InverseEngine(GumbelEngine):
    """The engine with the previous draw."""

    def drawn(
        self, logits: torch.Tensor, sampling: Sampling, seeds: NDArray[np.uint64], position: int
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """See :class:`GumbelEngine`."""
        logprobs = drawn_from(logits, sampling)
        cumulative = logprobs.double().exp().cumsum(dim=-1)
        point = torch.from_numpy(uniforms(seeds, position))[:, None] * cumulative[:, -1:]
        tokens = torch.searchsorted(cumulative, point, right=True).squeeze(1)
        tokens = tokens.clamp_(max=logits.shape[1] - 1)
        return tokens, logprobs.gather(1, tokens[:, None]).squeeze(1)


ENGINES = {"inverse": InverseEngine, "gumbel": GumbelEngine}


def uniforms(seeds: NDArray[np.uint64], position: int) -> NDArray[np.float64]:
    """[rows] numbers in [0, 1): SplitMix64 of each row's seed at this token position."""
    with np.errstate(over="ignore"):
        z = seeds + np.uint64(position + 1) * np.uint64(0x9E3779B97F4A7C15)
        for shift, factor in MIXING:
            z = (z ^ (z >> np.uint64(shift))) * np.uint64(factor)
        z ^= z >> np.uint64(31)
    return (z >> np.uint64(11)).astype(np.float64) * 2.0**-53


def turned_inverse(one: torch.Tensor, other: torch.Tensor) -> float:
    """The probability that the two logits give different tokens; see above."""
    ends = [torch.nn.functional.pad(each.double().softmax(0).cumsum(0), (1, 0)) for each in (one, other)]
    both = torch.minimum(ends[0][1:], ends[1][1:]) - torch.maximum(ends[0][:-1], ends[1][:-1])
    return 1.0 - float(both.clamp(min=0).sum())


def turned_gumbel(one: torch.Tensor, other: torch.Tensor) -> float:
    """The same for the draw with Gumbel noise."""
    first, second = (each.double().log_softmax(0) for each in (one, other))
    likely = torch.nonzero(first > -30).squeeze(1)  # the others have less than 1e-10 in total
    ahead = torch.maximum(first - first[likely, None], second - second[likely, None])
    left = float(first.exp().sum() - first[likely].exp().sum())
    return max(0.0, 1.0 - left - float((1.0 / ahead.exp().sum(dim=1)).sum()))


TURNED = {"inverse": turned_inverse, "gumbel": turned_gumbel}


def chance(name: str, one: torch.Tensor, other: torch.Tensor) -> float:
    """The probability that two logits [vocabulary] give different tokens under a draw."""
    return 0.0 if torch.equal(one, other) else TURNED[name](one, other)


def play(
    params: Params, tasks: Sequence[Task], engines: Sequence[GumbelEngine], slots: int
) -> list[Trajectory]:
    """The episodes of these tasks, divided between the engines as between processes."""
    wanted = requests(tasks, EACH, params.seed, "draws")
    experiment = Experiment(changed(params, sampling={"slots": slots}))
    found: dict[int, Trajectory] = {}
    for rank, engine in enumerate(engines):
        share = dict(share_of(wanted, 0, rank, len(engines)))
        agent = experiment.agent(engine.policy, engine, experiment.training_sampling)
        with experiment.collector(agent) as collector:
            found |= zip(share, collector.collect(list(share.values())), strict=True)
    return [found[number] for number in range(len(wanted))]


def responses(episode: Trajectory) -> list[tuple[int, ...]]:
    """All tokens that were drawn in an episode."""
    return [step.response_ids for step in episode.decisions]


def places(episodes: Sequence[Trajectory]) -> list[Place]:
    """The places of all draws in some episodes."""
    return [
        (derive(episode.seed, number), position)
        for episode in episodes
        for number, step in enumerate(episode.decisions)
        for position in range(len(step.response_ids))
    ]


def repeats(name: str, policy: Policy, params: Params, tasks: Sequence[Task]) -> dict[str, Any]:
    """The changes under a draw if other episodes are played beside it."""
    engine = ENGINES[name](policy)
    together = play(params, tasks, [engine], TOGETHER["slots"])
    rows = []
    for setting in SETTINGS:
        engines = [ENGINES[name](policy) for _ in range(setting["processes"])]
        apart = play(params, tasks, engines, setting["slots"])
        pairs = list(zip(together, apart, strict=True))
        same = [one for one, other in pairs if responses(one) == responses(other)]
        seen = {place: logits for each in engines for place, logits in each.seen.items()}
        looked_at = places(same)
        chances = [
            chance(name, engine.seen[place], seen[place])
            for place in looked_at[:: max(1, len(looked_at) // LOOKED_AT)]
        ]
        rows.append({
            **setting,
            "changed": len(together) - len(same),
            "turned_per_million": 1e6 * statistics.fmean(chances),
        })  # fmt: skip
    return {
        "episodes": len(together),
        "won": statistics.fmean(each.won for each in together),
        "draws": len(places(together)),
        "against_one_batch": rows,
    }


def cost(policy: Policy, params: Params, tasks: Sequence[Task]) -> dict[str, float]:
    """Microseconds of processor time per sampled token, under each draw, all episodes in one batch."""
    engines = {name: kind(policy) for name, kind in ENGINES.items()}
    found: dict[str, list[float]] = {name: [] for name in engines}
    for _ in range(TURNS):
        for name, engine in engines.items():
            engine.remembers = False
            began = time.process_time()
            episodes = play(params, tasks, [engine], TOGETHER["slots"])
            seconds = time.process_time() - began
            sampled = sum(len(response) for episode in episodes for response in responses(episode))
            found[name].append(1e6 * seconds / sampled)
    medians = {name: statistics.median(times) for name, times in found.items()}
    return {**medians, "gumbel_over_inverse": medians["gumbel"] / medians["inverse"]}


def compare(params: Params, folder: Path) -> dict[str, Any]:
    """Both draws in both number formats."""
    prepare(params, folder)
    tasks = read_tasks(folder / "train.parquet")
    found: dict[str, Any] = {}
    for dtype, type_ in DTYPES.items():
        policy = load_policy(folder / "start")
        torch.nn.Module.to(policy.model, type_)
        found[dtype] = {name: repeats(name, policy, params, tasks) for name in ENGINES}
        found[dtype]["microseconds_per_token"] = cost(policy, params, tasks)
    return found


def main() -> None:
    """Print the comparison as JSON, or write it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--demonstrations", type=int, default=8000, help="to train the policy with")
    parser.add_argument("--result", type=Path, help="the file to write")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    params = changed(
        load_params("params.yaml", "params/smoke.yaml"),
        policy={"width": 64, "layers": 2},
        imitation={"demonstrations": chosen.demonstrations, "epochs": 2},
    )
    with tempfile.TemporaryDirectory() as folder:
        found = compare(params, Path(folder))
    result = {
        **found,
        "setting": {"demonstrations": chosen.demonstrations, "together": TOGETHER, "threads": 1},
        "versions": {"torch": torch.__version__, "python": platform.python_version()},
        "machine": {"cores": os.cpu_count(), "load": os.getloadavg()[0]},
    }
    if chosen.result is None:
        print(json.dumps(result, indent=2))
    else:
        write_json(chosen.result, result)


if __name__ == "__main__":
    main()
