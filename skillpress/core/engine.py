"""The contract of an engine: it samples responses from a policy, tokens in and tokens out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, runtime_checkable

from skillpress.core.logprobs import EqualByValue, Logprobs, as_logprobs
from skillpress.core.trajectory import TokenIds, WeightSpan

StateDict = Mapping[str, Any]
"""Parameter name to tensor. ``Any``, because this module does not import torch."""


@dataclass(frozen=True)
class Sampling:
    """How tokens are drawn."""

    temperature: float = 1.0
    """Divides the logits; 0 means greedy."""
    top_p: float = 1.0
    """The smallest set of tokens with this mass is kept. Train at 1: other values bias the ratios."""
    top_k: int = 0
    """This many of the most probable tokens are kept; 0 keeps all."""
    max_new_tokens: int = 64
    """A response that has not ended after this many tokens is cut there."""


@dataclass(frozen=True, eq=False)
class Completion(EqualByValue):
    """One sampled response."""

    token_ids: TokenIds
    """The sampled tokens, the stop token included."""
    logprobs: Logprobs
    """[tokens] log-probability (nats) of each under the distribution it was sampled from."""
    finish_reason: Literal["stop", "length"]
    weight_spans: tuple[WeightSpan, ...] = ()
    """The spans in order; together they cover the response."""
    prefilled_tokens: int | None = field(default=None, compare=False)
    """How many prompt tokens the engine computed for this response: all except those that it had cached or
    computed for another request. None if the engine does not count them. This is a cost of the completion and
    not part of it, so comparisons skip it."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "logprobs", as_logprobs(self.logprobs))

    def beginning(self, count: int) -> Completion:
        """The first ``count`` tokens, as if the response had ended there."""
        spans = (replace(span, end=min(span.end, count)) for span in self.weight_spans if span.start < count)
        return replace(
            self,
            token_ids=self.token_ids[:count],
            logprobs=self.logprobs[:count],
            weight_spans=tuple(spans),
        )


@dataclass(frozen=True)
class Request:
    """One response to sample."""

    key: int
    """The caller's number, unique among the unanswered requests."""
    prompt: TokenIds
    sampling: Sampling
    seed: int


@dataclass(frozen=True)
class Promises:
    """What an engine can promise."""

    exact_seeds: bool
    """Whether the same prompt, seed and weights give the same tokens, whatever else is in the batch or the
    prefix cache. Rounding is the exception: it may move a draw to the neighbouring token."""
    exact_logprobs: bool
    """Whether the learner's scores of sampled tokens equal the engine's log-probabilities up to rounding."""
    lockstep: bool
    """Whether ``completed`` computes in this process, for all requests in one batch. Callers then submit all
    requests first, and call it when no other work waits in this process."""
    continues: bool = False
    """Whether ``update_weights`` may be called, from another thread, while requests are open. Their responses
    then continue under the new weights, and their spans say which weights drew which token."""


@runtime_checkable
class Engine(Protocol):
    """Samples responses from a policy. It takes and returns tokens: no text is re-tokenised."""

    promises: Promises

    def submit(self, requests: Sequence[Request]) -> None:
        """Ask for responses. Returns without waiting for them."""

    def completed(self, wait: float) -> list[tuple[int, Completion]]:
        """(key, completion) of the newly finished requests; waits at most ``wait`` seconds for the first."""

    def abort(self) -> None:
        """Drop all unanswered requests, after Ctrl-C or an error; they are never returned."""

    def update_weights(self, weights: StateDict, version: int) -> None:
        """Sample from these weights from now on; ``version`` is their training step.

        With ``training.lag`` above 1 it is called in the thread that plays, at a time that other processes do
        not know; if this engine communicates with them here, it must promise that it ``continues``."""

    def sleep(self) -> None:
        """Release what sampling needs, such as GPU memory, while the learner updates."""

    def wake(self) -> None:
        """Take back what ``sleep`` released."""

    def close(self) -> None:
        """Release all that the engine owns; it cannot sample after this."""
