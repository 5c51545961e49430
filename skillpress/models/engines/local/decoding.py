"""The data between a prefill and the last token: results of passes, open rows, and their answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from transformers import DynamicCache, PreTrainedModel

from skillpress.core.engine import Completion
from skillpress.models.engines.local.decoding_cache import DecodingCache
from skillpress.models.engines.local.kept import Layers


@dataclass
class Prefilled:
    """The result of a pass over different prompts."""

    logits: torch.Tensor
    """[prompts, vocabulary] after each prompt."""
    cache: DynamicCache | None
    lengths: torch.Tensor
    """[prompts]."""
    visible: torch.Tensor | None
    """[prompts, width], True for columns that are not padding; None if there is no padding."""
    width: int
    """Number of columns, including padding."""

    def columns(self, count: int) -> torch.Tensor:
        """[prompts, count], True where there is no padding, extended on the left to ``count`` columns."""
        visible = self.visible
        if visible is None:
            visible = torch.ones(len(self.lengths), self.width, dtype=torch.bool, device=self.lengths.device)
        return torch.nn.functional.pad(visible, (count - self.width, 0), value=False)


def rows_of_passes(passes: Sequence[Prefilled], fan: torch.Tensor) -> list[torch.Tensor]:
    """For each pass, its rows among the prompt numbers ``fan`` (ascending), which count over all passes."""
    first, chosen = 0, []
    for made in passes:
        last = first + len(made.lengths)
        chosen.append(fan[(fan >= first) & (fan < last)] - first)
        first = last
    return chosen


class GrowingDecoder:
    """Decodes with a cache that shows one more column after every token; it keeps nothing between batches."""

    name = "growing"

    def begin(self, passes: Sequence[Prefilled], fan: torch.Tensor, room: int) -> Decoding:
        """Open rows of the prompt numbers ``fan`` (ascending), with ``room`` new tokens; takes the passes."""
        return Decoding.of(passes, fan, room)

    def tokens(self, rows: int, columns: int) -> int:
        """The number of tokens for which this many rows of this length take memory."""
        return rows * columns

    def rest(self) -> None:
        """Do nothing: there is nothing to release."""


@dataclass
class Decoding:
    """The open rows: their keys and values, the mask of their padding, and their lengths."""

    cache: DecodingCache
    mask: torch.Tensor | None
    lengths: torch.Tensor

    @classmethod
    def of(cls, passes: Sequence[Prefilled], fan: torch.Tensor, room: int) -> Decoding:
        columns = max(made.width for made in passes)
        lengths = torch.cat([made.lengths for made in passes])
        chosen = rows_of_passes(passes, fan)
        mask = None
        if any(made.visible is not None or made.width < columns for made in passes):
            mask = torch.cat([made.columns(columns) for made in passes])[fan]
        caches = [made.cache for made in passes if made.cache is not None]
        return cls(DecodingCache.merged(caches, chosen, columns, room), mask, lengths[fan])

    def keep(self, rows: torch.Tensor) -> torch.Tensor:
        """Keep these rows (ascending); return them in their new order."""
        rows = self.cache.keep(rows)
        self.lengths = self.lengths[rows]
        if self.mask is not None:
            self.mask = self.mask[rows]
        return rows

    def layers_of(self, row: int) -> Layers:
        """Keys and values of a row's tokens so far, as a copy."""
        layers: list[Any] = self.cache.layers
        if self.mask is None:
            # A view would keep the whole batch in memory, and another row may move into its place.
            return tuple((layer.keys[row].clone(), layer.values[row].clone()) for layer in layers)
        there = self.mask[row]
        # Indexing with a mask makes a copy.
        return tuple((layer.keys[row][:, there], layer.values[row][:, there]) for layer in layers)

    def advance(self, model: PreTrainedModel, tokens: torch.Tensor) -> torch.Tensor:
        """Append one token per row; return the logits after it, [rows, vocabulary]."""
        if self.mask is not None:
            self.mask = torch.nn.functional.pad(self.mask, (0, 1), value=True)
        output = model(
            input_ids=tokens[:, None], attention_mask=self.mask, position_ids=self.lengths[:, None],
            past_key_values=self.cache, use_cache=True,
        )  # fmt: skip
        self.lengths = self.lengths + 1
        return output.logits[:, -1]  # type: ignore[no-any-return]


@dataclass
class Answers:
    """The sampled tokens so far, [rows, longest response]."""

    tokens: np.ndarray[tuple[int, int], np.dtype[np.int64]]
    logprobs: np.ndarray[tuple[int, int], np.dtype[np.float32]]
    lengths: np.ndarray[tuple[int], np.dtype[np.int64]]
    stopped: np.ndarray[tuple[int], np.dtype[np.bool_]] = field(repr=False)

    @classmethod
    def of(cls, rows: int, longest: int) -> Answers:
        return cls(
            np.zeros((rows, longest), np.int64),
            np.zeros((rows, longest), np.float32),
            np.zeros(rows, np.int64),
            np.zeros(rows, np.bool_),
        )

    def add(
        self, rows: np.ndarray[tuple[int], np.dtype[np.int64]], position: int,
        tokens: torch.Tensor, logprobs: torch.Tensor, stopped: torch.Tensor,
    ) -> None:  # fmt: skip
        self.tokens[rows, position] = tokens.cpu().numpy()
        self.logprobs[rows, position] = logprobs.cpu().numpy()
        self.lengths[rows] = position + 1
        self.stopped[rows] = stopped.cpu().numpy()

    def completions(self, prefilled: Sequence[int]) -> list[Completion]:
        """One completion per row, with the number of prompt tokens that were computed for it."""
        rows = zip(
            self.tokens.tolist(),
            self.logprobs,
            self.lengths.tolist(),
            self.stopped,
            prefilled,
            strict=True,
        )
        return [
            Completion(
                token_ids=tuple(tokens[:length]),
                logprobs=logprobs[:length].copy(),  # a part of the array would keep the whole of it in memory
                finish_reason="stop" if stopped else "length",
                prefilled_tokens=computed,
            )
            for tokens, logprobs, length, stopped, computed in rows
        ]
