"""Walkers whose weights are a number, for tests of who plays with which weights."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import torch

from skillpress.core.engine import Completion, Promises, Request, StateDict
from skillpress.core.interface import Decision, DecisionRequest
from skillpress.core.trajectory import WeightSpan
from tests.support.rollouts.walking import Walker


class OneWeight:
    """An engine with one number, which is all that its walkers look at."""

    promises = Promises(exact_seeds=True, exact_logprobs=True, lockstep=True)

    def __init__(self) -> None:
        self.weight, self.taken = torch.zeros(1), [0]
        """``taken``: the versions that it was given, in order."""

    def submit(self, requests: Sequence[Request]) -> None: ...

    def completed(self, wait: float) -> list[tuple[int, Completion]]:
        return []

    def abort(self) -> None: ...

    def sleep(self) -> None: ...

    def wake(self) -> None: ...

    def close(self) -> None: ...

    def update_weights(self, weights: StateDict, version: int) -> None:
        self.weight.copy_(weights["w"])
        self.taken.append(version)


@dataclass
class Shower(Walker):
    """Its prompts are the number that its engine holds, and its spans name the version."""

    engine: OneWeight = field(default_factory=OneWeight)

    def decision(self, request: DecisionRequest) -> Decision:
        spans = (WeightSpan(self.engine.taken[-1], 0, 1),)
        prompt = (int(self.engine.weight.item()),)
        return replace(super().decision(request), prompt_ids=prompt, weight_spans=spans)


@dataclass
class Holder(Shower):
    """A walker that answers one by one. It keeps back the requests for which ``held`` is true."""

    lockstep: bool = False
    held: Callable[[DecisionRequest], bool] = lambda request: False

    def completed(self, wait: float) -> list[tuple[int, Decision]]:
        ready = [request for request in self.asked if not self.held(request)]
        if not ready:
            time.sleep(0.0005)
            return []
        self.asked.remove(ready[0])
        return [(ready[0].key, self.decision(ready[0]))]
