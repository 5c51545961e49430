"""Scoring without a cache: whole sequences, packed end to end without padding between them.

Every response passes through the model after its prompt; steps whose prompts extend one another pass as one
sequence (``chains.py``). A prompt that several sequences share is computed several times. In return this
scorer works where the others do not: FlashAttention's kernels accept no mask over prompts padded on the
right, nor one over trees.

Position ids start at 0 with every sequence. From these, transformers recognises sequences: sdpa, eager and
flex attention receive a block-diagonal causal mask, and FlashAttention the lengths (``cu_seqlens``), for
which it needs a single row. A mask grows with the square of a row's width. So for the other kernels a row is
as wide as the longest sequence; ends of rows into which nothing fits stay empty. Empty places are sequences
of one token each, which are ignored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from transformers import PreTrainedModel

from skillpress.models.policy.attention import uses_flash
from skillpress.models.policy.scoring import Responses, Scorer


class PackedScorer(Scorer):
    """Computes whole sequences."""

    name: ClassVar[str] = "packed"
    shares_prompts: ClassVar[bool] = False

    def __init__(self, model: PreTrainedModel, one_row: bool | None = None) -> None:
        """``one_row`` packs all sequences into one row; None does so if the model's attention needs it."""
        super().__init__(model)
        self._one_row = uses_flash(model) if one_row is None else one_row

    def hidden(self, responses: Responses) -> torch.Tensor:
        packed = PackedSequences.of(responses, self._one_row)
        output = self.model.base_model(
            input_ids=packed.tokens, position_ids=packed.positions, use_cache=False
        )
        hidden: torch.Tensor = output.last_hidden_state.flatten(0, 1)[packed.predicting]
        return hidden


@dataclass(frozen=True)
class PackedSequences:
    """Prompts with their continuations, without the last token of each, in rows of one width."""

    tokens: torch.Tensor
    """[rows, width] token ids; 0 at empty places."""
    positions: torch.Tensor
    """[rows, width] position within each token's sequence; 0 at empty places."""
    predicting: torch.Tensor
    """[tokens] place that predicts each response token, counted through all rows."""

    @classmethod
    def of(cls, responses: Responses, one_row: bool) -> PackedSequences:
        """Pack sequences; ``one_row`` puts them all into the same row."""
        count, prompt_width = len(responses.owner), responses.prompts.shape[1]
        first = responses.predicting < count
        later = responses.predicting - count
        columns = max(1, responses.continuations.shape[1])
        predicted = torch.where(first, responses.predicting, later // columns)
        nth = torch.where(first, 0, later % columns + 1)
        before = responses.prompt_lengths[responses.owner]
        lengths = before + responses.continuation_lengths

        sizes: list[int] = lengths.tolist()
        width = sum(sizes) if one_row else max(sizes)
        rows, starts = first_fit(sizes, width)
        origin = torch.tensor(
            [row * width + start for row, start in zip(rows, starts, strict=True)], device=lengths.device
        )
        sequence = torch.repeat_interleave(torch.arange(count, device=lengths.device), lengths)
        position = torch.arange(len(sequence), device=lengths.device)
        position = position - (lengths.cumsum(0) - lengths)[sequence]
        # Negative within the prompt; in ``joined`` all continuations begin after the widest prompt.
        behind = position - before[sequence]
        column = torch.where(behind < 0, position, prompt_width + behind)
        joined = torch.cat([responses.prompts[responses.owner], responses.continuations], 1)
        place = origin[sequence] + position
        cells = (max(rows) + 1) * width
        tokens, positions = (torch.zeros(cells, dtype=torch.long, device=lengths.device) for _ in range(2))
        tokens[place], positions[place] = joined[sequence, column], position
        return cls(
            tokens.reshape(-1, width),
            positions.reshape(-1, width),
            origin[predicted] + before[predicted] - 1 + nth,
        )


def first_fit(sizes: Sequence[int], width: int) -> tuple[list[int], list[int]]:
    """The row of each piece, and the place in the row where the piece begins. The longest piece is first;
    each goes into the first row with room.

    This takes at most 11/9 of the minimum number of rows, plus one (Johnson 1973).
    """
    rows, starts, filled = [0] * len(sizes), [0] * len(sizes), [0]
    for piece in sorted(range(len(sizes)), key=lambda index: -sizes[index]):
        row = next((row for row, used in enumerate(filled) if used + sizes[piece] <= width), len(filled))
        if row == len(filled):
            filled.append(0)
        rows[piece], starts[piece] = row, filled[row]
        filled[row] += sizes[piece]
    return rows, starts
