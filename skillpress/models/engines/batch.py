"""Engines that compute when they are asked: requests gather, and one batch answers them all.

Whoever drives such an engine works in lock-step: it hands over all requests that there are, and calls
``completed`` when nothing else in this process has to go on meanwhile.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace

from skillpress.core.engine import Completion, Promises, Request, Sampling, StateDict
from skillpress.core.trajectory import TokenIds, WeightSpan


class BatchEngine(ABC):
    """An ``engine.Engine`` made of one function from prompts to completions."""

    promises: Promises
    """What a subclass promises; ``lockstep`` is True."""

    def __init__(self) -> None:
        self.version = 0
        """Of the weights; whoever overrides ``update_weights`` sets it."""
        self._queued: list[Request] = []

    @abstractmethod
    def generate(
        self, prompts: Sequence[TokenIds], sampling: Sampling, seeds: Sequence[int]
    ) -> list[Completion]:
        """One completion per prompt, its weight spans left out. Where seeds are exact, row i depends on
        ``prompts[i]`` and ``seeds[i]`` alone."""

    @abstractmethod
    def update_weights(self, weights: StateDict, version: int) -> None:
        """See ``engine.Engine``."""

    def submit(self, requests: Sequence[Request]) -> None:
        """Queue the requests; nothing is computed yet."""
        self._queued += requests

    def completed(self, wait: float) -> list[tuple[int, Completion]]:
        """All that is queued, in its order, computed now however long that takes."""
        requests, self._queued = self._queued, []
        found = []
        for sampling in dict.fromkeys(request.sampling for request in requests):
            alike = [request for request in requests if request.sampling == sampling]
            completions = self.generate(
                [request.prompt for request in alike], sampling, [request.seed for request in alike]
            )
            for request, completion in zip(alike, completions, strict=True):
                spans = (WeightSpan(self.version, 0, len(completion.token_ids)),)
                found.append((request.key, replace(completion, weight_spans=spans)))
        return found

    def abort(self) -> None:
        """Forget the queue."""
        self._queued.clear()

    def sleep(self) -> None:  # noqa: B027  nothing to give back is a good answer
        """Nothing is given back."""

    def wake(self) -> None:  # noqa: B027
        """Nothing was given back."""

    def close(self) -> None:
        """Forget the queue; the weights go with the object."""
        self.abort()
