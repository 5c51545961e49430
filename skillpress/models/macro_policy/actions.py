"""The probabilities of the actions of one state, and their entropy.

If the sum over responses leaves out a mass d, an action A has at least the summed probability q(A) and at
most q(A) + d. Entropy is concave, so it is smallest if all of d belongs to one action, the likeliest one. It
is largest if d is spread over as many new actions as there are responses left, N:

    H(q) + h(q_max + d) - h(q_max)  <=  H(A | X)  <=  H(q) + d ln(N / d),    h(x) = - x ln x
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import log


@dataclass(frozen=True)
class Bounds:
    """Deterministic bounds of a number."""

    low: float
    high: float


@dataclass(frozen=True)
class MacroPolicy:
    """pi(. | X) of one state, summed over the responses that were read."""

    probabilities: Mapping[str, float]
    """q: action to the mass of the responses that express it; the empty text if they have no action."""
    left_out: float
    """d: the mass of the responses that were not read."""
    log_responses_left: float
    """ln N, or an upper bound, where N is the number of those responses; minus infinity for none."""
    responses: int
    """Number of responses that were read."""
    response_entropy: float
    """H(v | X) in nats as summed, the rest as one response; above H(A | X) if wordings differ."""

    def probability(self, action: str) -> Bounds:
        """Bounds of pi(action | X)."""
        summed = self.probabilities.get(action, 0.0)
        return Bounds(summed, min(1.0, summed + self.left_out))

    @property
    def entropy(self) -> float:
        """H(A | X) in nats, with the mass left out counted as one action; within :attr:`entropy_bounds`."""
        return entropy(self.probabilities.values()) + _term(self.left_out)

    @property
    def entropy_bounds(self) -> Bounds:
        """Bounds of H(A | X)."""
        summed = entropy(self.probabilities.values())
        if self.left_out <= 0:
            return Bounds(summed, summed)
        largest = max(self.probabilities.values(), default=0.0)
        low = summed + _term(min(1.0, largest + self.left_out)) - _term(largest)
        return Bounds(max(0.0, low), summed + self.left_out * (self.log_responses_left - log(self.left_out)))


def entropy(probabilities: Iterable[float]) -> float:
    """- sum of p ln p, in nats; the p need not sum to 1."""
    return sum(map(_term, probabilities))


def _term(probability: float) -> float:
    return -probability * log(probability) if probability > 0 else 0.0
