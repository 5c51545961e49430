"""Engines that compute when they are asked: requests are queued, and one batch answers them all.

The caller of such an engine works in lockstep: it submits all its requests, and calls ``completed`` when
nothing else in this process has to run meanwhile.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace

from skillpress.core.engine import Completion, Promises, Request, Sampling, StateDict
from skillpress.core.trajectory import TokenIds, WeightSpan


class BatchEngine(ABC):
    """An ``engine.Engine`` built on one function from prompts to completions."""

    promises: Promises
    """The promises of the subclass; ``lockstep`` is True."""

    def __init__(self) -> None:
        self.version = 0
        """Version of the weights. A subclass sets it in ``update_weights``."""
        self._queued: list[Request] = []

    @abstractmethod
    def generate(
        self, prompts: Sequence[TokenIds], sampling: Sampling, seeds: Sequence[int]
    ) -> list[Completion]:
        """One completion per prompt, without weight spans. With exact seeds, row i depends on its inputs
        alone."""

    @abstractmethod
    def update_weights(self, weights: StateDict, version: int) -> None:
        """See ``engine.Engine``."""

    def submit(self, requests: Sequence[Request]) -> None:
        """Queue the requests; nothing is computed yet."""
        self._queued += requests

    def completed(self, wait: float) -> list[tuple[int, Completion]]:
        """Compute all queued requests, in order, however long that takes."""
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

    def sleep(self) -> None:  # noqa: B027  releasing nothing is a valid default
        """Do nothing: there is nothing to release."""

    def wake(self) -> None:  # noqa: B027
        """Do nothing: ``sleep`` released nothing."""

    def close(self) -> None:
        """Forget the queue. The weights are freed with the object."""
        self.abort()
