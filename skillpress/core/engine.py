"""The contract of an engine: it samples responses from a policy, tokens in and tokens out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

from skillpress.core.logprobs import EqualByValue, Logprobs, as_logprobs
from skillpress.core.trajectory import TokenIds, WeightSpan

StateDict = Mapping[str, Any]
"""Parameter name to tensor. ``Any``, because this module knows nothing of torch."""


@dataclass(frozen=True)
class Sampling:
    """How tokens are drawn."""

    temperature: float = 1.0
    """Divides the logits; 0 means greedy."""
    top_p: float = 1.0
    """Smallest set of tokens with this mass is kept; train at 1 (see FACTS on biased ratios)."""
    top_k: int = 0
    """This many most probable tokens are kept; 0 keeps all."""
    max_new_tokens: int = 64
    """A response that is still open after so many tokens is cut there."""


@dataclass(frozen=True, eq=False)
class Completion(EqualByValue):
    """One sampled response."""

    token_ids: TokenIds
    """The sampled tokens, the stop token included."""
    logprobs: Logprobs
    """[tokens] log-probability (nats) of each under the distribution it was sampled from."""
    finish_reason: Literal["stop", "length"]
    weight_spans: tuple[WeightSpan, ...] = ()
    """In order; together they cover the response."""
    prefilled_tokens: int | None = field(default=None, compare=False)
    """Tokens of the prompt that were computed for it: all but those that were kept from before or computed
    for another request; None where nobody counts. What it cost, and no part of what it is."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "logprobs", as_logprobs(self.logprobs))


@dataclass(frozen=True)
class Request:
    """One response to sample."""

    key: int
    """The caller's; unique among the requests that are not answered yet."""
    prompt: TokenIds
    sampling: Sampling
    seed: int


@dataclass(frozen=True)
class Promises:
    """What an engine can promise."""

    exact_seeds: bool
    """The same prompt, seed and weights give the same tokens, whatever is sampled beside them and whatever
    of the prompt was computed before; but for rounding, which may carry a draw over to the next token."""
    exact_logprobs: bool
    """The learner's scores of what was sampled equal the engine's log-probabilities up to rounding."""
    lockstep: bool
    """``completed`` computes in this process, for all requests in one batch: collect them first, and call it
    when nobody else is busy."""


@runtime_checkable
class Engine(Protocol):
    """Samples responses from a policy. Tokens in, tokens out: nothing is re-tokenised."""

    promises: Promises

    def submit(self, requests: Sequence[Request]) -> None:
        """Ask for responses. Never blocks long."""
        ...

    def completed(self, wait: float) -> list[tuple[int, Completion]]:
        """(key, completion) of those finished since; waits at most ``wait`` seconds for the first."""
        ...

    def abort(self) -> None:
        """Forget what is not answered (after Ctrl-C, an error); nothing of it is ever returned."""
        ...

    def update_weights(self, weights: StateDict, version: int) -> None:
        """Sample from these weights from now on; ``version`` is the training step they stand for."""
        ...

    def sleep(self) -> None:
        """Give back what sampling needs (memory of a GPU, say) while the learner updates."""
        ...

    def wake(self) -> None:
        """Take it again."""
        ...

    def close(self) -> None:
        """End what belongs to the engine; it samples no more."""
        ...
