"""Estimate pi(A | X) from samples, for policies that write text: their responses cannot be enumerated.

n responses to the same prompt, once parsed, are n independent draws of pi(. | X), whichever engine sampled
them. The share of A estimates pi(A | X) without bias, with Wilson's interval. The entropy of the shares is
too small by about (K - 1) / 2n for K observed actions (Miller 1955), so this term is added. The interval of
the entropy is normal, with the variance of - ln p over the draws.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import log, sqrt

from skillpress.core.engine import Engine, Sampling
from skillpress.core.intervals import Z_95, Interval, wilson
from skillpress.core.seeds import derive
from skillpress.core.trajectory import TokenIds
from skillpress.models.engines.generate import generate
from skillpress.models.macro_policy.actions import entropy


@dataclass(frozen=True)
class SampledMacroPolicy:
    """pi(. | X) of one state, estimated from samples."""

    counts: Mapping[str, int]
    """Action to the number of responses that expressed it; the empty text if they have no action."""

    @property
    def samples(self) -> int:
        """n, the number of samples."""
        return sum(self.counts.values())

    def share(self, action: str) -> float:
        """The estimate of pi(action | X)."""
        return self.counts.get(action, 0) / self.samples

    def interval(self, action: str) -> Interval:
        """Wilson's 95% interval of pi(action | X)."""
        return wilson(self.share(action), self.samples)

    @property
    def entropy(self) -> float:
        """The estimate of H(A | X) in nats, including Miller's correction."""
        return self._of_shares + (len(self.counts) - 1) / (2 * self.samples)

    @property
    def entropy_interval(self) -> Interval:
        """A normal 95% interval of H(A | X). It is too narrow if most actions were observed once or never."""
        shares = [count / self.samples for count in self.counts.values()]
        variance = sum(p * (log(p) + self._of_shares) ** 2 for p in shares) / self.samples
        half = Z_95 * sqrt(variance)
        return Interval(max(0.0, self.entropy - half), self.entropy + half)

    @property
    def _of_shares(self) -> float:
        return entropy(count / self.samples for count in self.counts.values())


def sample_actions(
    engine: Engine,
    prompts: Sequence[TokenIds],
    read: Callable[[TokenIds], str],
    sampling: Sampling,
    samples: int,
    seed: int,
) -> list[SampledMacroPolicy]:
    """Read ``samples`` responses to each prompt as actions; the engine must have no other open requests.

    Raises:
        ValueError: ``samples`` is less than 1.
        UnansweredError: the engine completed nothing for a long time.
    """
    if samples < 1:
        raise ValueError(f"samples is {samples}; an estimate needs at least one sample of each state")
    asked = [prompt for prompt in prompts for _ in range(samples)]
    seeds = [derive(seed, "macro", state, draw) for state in range(len(prompts)) for draw in range(samples)]
    actions = [read(completion.token_ids) for completion in generate(engine, asked, sampling, seeds)]
    return [
        SampledMacroPolicy(Counter(actions[first : first + samples]))
        for first in range(0, len(actions), samples)
    ]
