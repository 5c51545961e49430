"""Log-probabilities of given responses under a model, without computing anything twice.

The steps of a group often share their prompt, since all rollouts of a task begin alike. So every different
prompt runs through the model once, and its keys and values are fanned out to the responses that follow it;
gradients flow back through them and add up. Steps whose prompts extend one another are one sequence: the
first prompt, then responses and the texts between them (``chains.py``). Logits are the larger part of a small
model's work, so they are computed only where a response token is predicted.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from transformers import DynamicCache, PreTrainedModel

from skillpress.core.chains import Pair, Pairs
from skillpress.core.errors import PolicyError
from skillpress.core.trajectory import TokenIds
from skillpress.models.policy.logits import sliding_window
from skillpress.models.policy.token_scores import TokenScores


@dataclass(frozen=True)
class Responses:
    """Sequences with responses to score and the different prompts they begin with, padded on the right."""

    prompts: torch.Tensor
    """[prompts, prompt width] token ids of the different prompts."""
    prompt_lengths: torch.Tensor
    """[prompts] number of tokens of each prompt."""
    owner: torch.Tensor
    """[sequences] row of the prompt that each sequence begins with."""
    continuations: torch.Tensor
    """[sequences, width] the tokens after the prompt, without the last one: a response, or several with the
    texts between them. The width may be 0."""
    continuation_lengths: torch.Tensor
    """[sequences] number of continuation tokens of each sequence."""
    predicting: torch.Tensor
    """[tokens] place that predicts each response token: s for the first token of sequence s (from the end of
    its prompt), and sequences + s x width + j for the token after continuation token j."""
    targets: torch.Tensor
    """[tokens] the response tokens, response by response."""
    first: torch.Tensor
    """[responses] place in ``targets`` of each response's first token, which the prompt predicts."""
    pairs: Pairs
    """The prompts and responses themselves, on the host."""

    @property
    def size(self) -> int:
        """Number of tokens in the forward pass, including padding."""
        return self.prompts.numel() + self.continuations.numel()

    def with_continuations(self) -> Responses:
        """The same responses for a second pass through the model, even if no response has a second token.

        Under ZeRO-3 all ranks gather every layer together, so all must make the same number of passes.
        """
        if self.continuations.shape[1]:
            return self
        return replace(self, continuations=self.continuations.new_zeros(len(self.owner), 1))


def pack_responses(pairs: Sequence[Pair] | Pairs, device: torch.device | str = "cpu") -> Responses:
    """Pairs as one padded batch with every prompt once; a pair that extends the last one joins its
    sequence."""
    known = Pairs.of(pairs)
    firsts = [known.rows[chain.start][0] for chain in known.chains]
    place = {prompt: index for index, prompt in enumerate(dict.fromkeys(firsts))}
    following = [known.behind(chain)[:-1] for chain in known.chains]
    width = max(map(len, following))
    counts = known.response_lengths

    def tensor(values: Any) -> torch.Tensor:
        return on_device(np.asarray(values, np.int64), device)

    return Responses(
        prompts=tensor(_pad([*place])),
        prompt_lengths=tensor([len(prompt) for prompt in place]),
        owner=tensor([place[prompt] for prompt in firsts]),
        continuations=tensor(_pad(following)).reshape(len(following), width),
        continuation_lengths=tensor([len(tokens) for tokens in following]),
        predicting=tensor(_predicting(known, width)),
        targets=tensor([token for _, response in known.rows for token in response]),
        first=tensor(np.cumsum(counts) - counts),
        pairs=known,
    )


def on_device(array: NDArray[Any], device: torch.device | str) -> torch.Tensor:
    """The array as a tensor there; the host does not wait until a GPU has it."""
    tensor = torch.from_numpy(np.ascontiguousarray(array))
    if torch.device(device).type != "cuda":
        return tensor.to(device)
    return tensor.pin_memory().to(device, non_blocking=True)


def _predicting(pairs: Pairs, width: int) -> NDArray[np.int64]:
    """[tokens] see :class:`Responses`."""
    counts, joined, rows = pairs.response_lengths, pairs.chains, pairs.rows
    sequence = np.repeat(np.arange(len(joined)), [len(chain) for chain in joined])
    begins = [len(rows[row][0]) - len(rows[chain.start][0]) for chain in joined for row in chain]
    # Place of each response token, counted from the end of its sequence's first prompt.
    place = np.arange(counts.sum()) + np.repeat(begins - (np.cumsum(counts) - counts), counts)
    sequence = np.repeat(sequence, counts)
    return np.where(place == 0, sequence, len(joined) + sequence * width + place - 1)


def _pad(rows: Sequence[TokenIds]) -> NDArray[np.int64]:
    padded = np.zeros((len(rows), max(map(len, rows))), dtype=np.int64)
    for index, row in enumerate(rows):
        padded[index, : len(row)] = row
    return padded


class Scorer(nn.Module):
    """A model as a function from responses to their tokens' log-probabilities."""

    name: ClassVar[str]
    shares_prompts: ClassVar[bool]
    """Whether a shared prompt's tokens are computed once for all its responses."""

    def __init__(self, model: PreTrainedModel) -> None:
        super().__init__()
        self.model = model
        self.scores = TokenScores(model)

    def forward(
        self, responses: Responses, temperature: float, whole: bool = False
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Score responses.

        Args:
            temperature: divides the logits, as it did in sampling.
            whole: return whole distributions, see ``TokenScores``.

        Returns:
            ([tokens] log-probabilities in nats, [tokens] entropies in nats), both float32; the
            entropies carry no gradient.

        Raises:
            PolicyError: as for :meth:`hidden`.
        """
        scored: tuple[torch.Tensor, torch.Tensor] = self.scores(
            self.hidden(responses), responses.targets, temperature, whole
        )
        return scored

    @abstractmethod
    def hidden(self, responses: Responses) -> torch.Tensor:
        """[tokens, width] the final hidden states that predict the response tokens.

        Raises:
            PolicyError: the model has gradient checkpointing on, and this scorer does not work with it.
        """


class ResponseScorer(Scorer):
    """Computes every different prompt once."""

    name: ClassVar[str] = "cached"
    shares_prompts: ClassVar[bool] = True

    def hidden(self, responses: Responses) -> torch.Tensor:
        if self.model.is_gradient_checkpointing:
            raise PolicyError(
                f"policy.model: {type(self.model).__name__} has gradient checkpointing on, which drops the "
                "cache that responses are scored with here: call gradient_checkpointing_disable(), or score "
                "with the tree scorer (skillpress.models.policy.scorers.choose_scorer takes it)"
            )
        return self._everywhere(responses)[responses.predicting]

    def _everywhere(self, responses: Responses) -> torch.Tensor:
        """[sequences + sequences x width, hidden] final states: of prompts' ends, then of continuations."""
        backbone = self.model.base_model
        continued = responses.continuations.shape[1] > 0
        # Without a second pass nothing reads keys and values, so they are not kept.
        cache = DynamicCache(config=self.model.config) if continued else None
        prompts = _Prompts.of(responses, sliding_window(self.model.config) is not None)
        output = backbone(
            input_ids=prompts.tokens,
            attention_mask=prompts.mask,
            position_ids=prompts.positions,
            past_key_values=cache,
            use_cache=continued,
        )
        first: torch.Tensor = output.last_hidden_state[responses.owner, prompts.ends[responses.owner]]
        if cache is None:
            return first
        # From here each sequence has its own copy; the gradients of copies add up at their prompt.
        cache.batch_select_indices(responses.owner)
        columns = torch.arange(responses.continuations.shape[1], device=responses.prompts.device)
        # Padding on the right counts as visible: only padding comes after it, so no token sees it.
        following = torch.ones_like(responses.continuations, dtype=torch.bool)
        output = backbone(
            input_ids=responses.continuations,
            attention_mask=torch.cat([prompts.visible[responses.owner], following], 1),
            position_ids=responses.prompt_lengths[responses.owner][:, None] + columns,
            past_key_values=cache,
            use_cache=True,
        )
        return torch.cat([first, output.last_hidden_state.flatten(0, 1)])


@dataclass(frozen=True)
class _Prompts:
    """Different prompts as they pass through the model."""

    tokens: torch.Tensor
    """[prompts, prompt width]."""
    visible: torch.Tensor
    """[prompts, prompt width] True for tokens, False for padding."""
    ends: torch.Tensor
    """[prompts] the column of each prompt's last token."""
    mask: torch.Tensor | None
    """The attention mask; None if no token sees padding anyway."""
    positions: torch.Tensor | None
    """[prompts, prompt width]; None if they are equal to the columns."""

    @classmethod
    def of(cls, responses: Responses, on_the_left: bool) -> _Prompts:
        """Prompts padded on the right, where causality hides padding, or on the left for a sliding window."""
        tokens, lengths = responses.prompts, responses.prompt_lengths[:, None]
        width = tokens.shape[1]
        columns = torch.arange(width, device=tokens.device)
        if not on_the_left:
            return cls(
                tokens=tokens, visible=columns < lengths, ends=lengths[:, 0] - 1, mask=None, positions=None
            )
        positions = columns - (width - lengths)
        visible = positions >= 0
        positions = positions.clamp(min=0)
        return cls(
            tokens=tokens.gather(1, positions),
            visible=visible,
            ends=torch.full_like(lengths[:, 0], width - 1),
            mask=visible,
            positions=positions,
        )
