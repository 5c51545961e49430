"""pi(A | X) estimated from samples, for policies that write text: their responses cannot be listed.

n responses to the same prompt are n independent draws of pi(. | X), once each is parsed; whoever sampled
them. The share that says A estimates pi(A | X) without bias, with Wilson's interval. The entropy of the
shares is too small by about (K - 1) / 2n for K actions seen (Miller 1955), which is added; its interval is
normal, with the variance of - ln p over the draws.
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
    """pi(. | X) of one state, by what was sampled in it."""

    counts: Mapping[str, int]
    """Action to how many responses said it; the empty text is a response without an action."""

    @property
    def samples(self) -> int:
        """n."""
        return sum(self.counts.values())

    def share(self, action: str) -> float:
        """The estimate of pi(action | X)."""
        return self.counts.get(action, 0) / self.samples

    def interval(self, action: str) -> Interval:
        """Wilson's 95% interval of pi(action | X)."""
        return wilson(self.share(action), self.samples)

    @property
    def entropy(self) -> float:
        """The estimate of H(A | X) in nats, Miller's correction included."""
        return self._of_shares + (len(self.counts) - 1) / (2 * self.samples)

    @property
    def entropy_interval(self) -> Interval:
        """A normal 95% interval of H(A | X). Too narrow where most actions were seen once or not at all."""
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
    """``samples`` responses of an engine to each prompt, read; the engine must have nothing else to do.

    Args:
        read: Parser(Decode(v)): from a response to its action.

    Raises:
        ValueError: ``samples`` is less than 1.
        UnansweredError: the engine completed nothing for a long time.
    """
    if samples < 1:
        raise ValueError(f"an estimate needs at least one sample of each state, got {samples}")
    asked = [prompt for prompt in prompts for _ in range(samples)]
    seeds = [derive(seed, "macro", state, draw) for state in range(len(prompts)) for draw in range(samples)]
    actions = [read(completion.token_ids) for completion in generate(engine, asked, sampling, seeds)]
    return [
        SampledMacroPolicy(Counter(actions[first : first + samples]))
        for first in range(0, len(actions), samples)
    ]
