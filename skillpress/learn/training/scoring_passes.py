"""Log-probabilities and values of samples that are computed once per step, before its updates.

Three policies score a sampled token. The *behaviour* policy sampled it: its log-probabilities come from the
engine and stand in each step. The *proximal* policy is the learner's before the updates of the step: the
same weights (with ``training.lag`` 1, those of one step later), but not always the same numbers, since the
engine rounds and computes in its own way. The
*reference* policy is the start policy, which a KL term pulls towards. The current policy is the fourth; its
log-probabilities change with every update and are kept nowhere. Where the algorithm asks for values, those of
the samples' states come out of such a pass too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import PreTrainedModel

from skillpress.learn.training.samples import Microbatch, PerToken, Samples, microbatch_rows, pack
from skillpress.models.policy.policy import copy_model
from skillpress.models.policy.scorers import Scorer, choose_scorer

Score = Callable[..., tuple[torch.Tensor, ...]]
"""What a scorer does with responses and a temperature: ([tokens] log-probabilities, [tokens] entropies), and
[responses] values where it has a value head, which is told the steps made before each too."""


def score_samples(
    score: Score,
    samples: Samples,
    temperature: float,
    token_limit: int,
    device: torch.device | str,
    shared: bool = True,
    in_step: Callable[[list[Microbatch]], list[Microbatch]] = lambda batches: batches,
) -> PerToken:
    """Per sample the log-probabilities [response tokens] of its response.

    The passes are those of an update on the same samples, so that nothing but the weights can differ.

    Args:
        token_limit: tokens in one pass at most.
        shared: whether a prompt that several responses follow goes through the model once.
        in_step: adds passes where ranks must make equally many; what those score is left out.
    """
    found: list[np.ndarray[tuple[int], np.dtype[np.float32]]] = [np.zeros(0, np.float32)] * len(samples)

    def scored_alone(batch: Microbatch) -> tuple[torch.Tensor, ...]:
        return score(batch.responses, temperature)

    for rows, scored in _passes(scored_alone, samples, token_limit, device, shared, in_step):
        ends = np.cumsum([len(samples.steps[row].response_ids) for row in rows])
        logprobs = scored[0].float().cpu().numpy()
        for row, part in zip(rows, np.split(logprobs, ends[:-1]), strict=True):
            found[row] = part
    return tuple(found)


def state_values(
    score: Score,
    samples: Samples,
    temperature: float,
    token_limit: int,
    device: torch.device | str,
    shared: bool,
    in_step: Callable[[list[Microbatch]], list[Microbatch]],
) -> NDArray[np.float64]:
    """[samples] V of the state of each; as :func:`score_samples`, by a scorer with a value head.

    Args:
        samples: with targets, of which what the head sees beside the states is read.
    """
    found = np.zeros(len(samples))

    def valued(batch: Microbatch) -> tuple[torch.Tensor, ...]:
        assert batch.targets is not None
        return score(batch.responses, temperature, made=batch.targets.made)

    for rows, scored in _passes(valued, samples, token_limit, device, shared, in_step):
        found[rows] = scored[2].cpu().numpy()
    return found


def _passes(
    score: Callable[[Microbatch], tuple[torch.Tensor, ...]],
    samples: Samples,
    token_limit: int,
    device: torch.device | str,
    shared: bool,
    in_step: Callable[[list[Microbatch]], list[Microbatch]],
) -> Iterator[tuple[NDArray[np.int64], tuple[torch.Tensor, ...]]]:
    """The rows of each pass and what the scorer made of them, without those that ``in_step`` added."""
    parts = list(microbatch_rows(samples, token_limit, shared))
    batches = in_step([pack(samples.select(rows), device) for rows in parts])
    for index, batch in enumerate(batches):
        with torch.no_grad():
            scored = score(batch)
        if index < len(parts):
            yield parts[index], scored


class ReferencePolicy:
    """The start policy; its weights are on the device while it scores and on the CPU otherwise."""

    def __init__(
        self, model: PreTrainedModel, temperature: float, token_limit: int, device: torch.device
    ) -> None:
        """Copy the model as it is now."""
        self._scorer: Scorer = choose_scorer(copy_model(model)).requires_grad_(False).to("cpu")
        self._temperature, self._token_limit, self._device = temperature, token_limit, device

    def logprobs(self, parts: Sequence[Samples]) -> list[PerToken]:
        """Of each part; every rank scores its own, without a word to the others."""
        self._scorer.to(self._device)
        found = [
            score_samples(
                self._scorer,
                part,
                self._temperature,
                self._token_limit,
                self._device,
                self._scorer.shares_prompts,
            )
            for part in parts
        ]
        self._scorer.to("cpu")
        return found
