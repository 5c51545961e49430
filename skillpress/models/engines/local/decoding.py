"""The data between a prefill and the last token: results of passes, open rows, and their answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import DynamicCache, PreTrainedModel

from skillpress.core.engine import Completion
from skillpress.models.engines.local.decoding_cache import DecodingCache
from skillpress.models.engines.local.kept import Layers
from skillpress.models.engines.local.stacks import row_of


@dataclass
class Prefilled:
    """The result of a pass over different prompts. What the host needs for decisions stays on the host."""

    logits: torch.Tensor
    """[prompts, vocabulary] after each prompt."""
    cache: DynamicCache | None
    lengths: NDArray[np.int64]
    """[prompts]."""
    visible: NDArray[np.bool_] | None
    """[prompts, width], True for columns that are not padding; None if there is no padding."""
    width: int
    """Number of columns, including padding."""

    def columns(self, count: int) -> NDArray[np.bool_]:
        """[prompts, count], True where there is no padding, extended on the left to ``count`` columns."""
        found = np.zeros((len(self.lengths), count), np.bool_)
        found[:, count - self.width :] = True if self.visible is None else self.visible
        return found


def rows_of_passes(
    passes: Sequence[Prefilled], fan: NDArray[np.int64], device: torch.device
) -> list[torch.Tensor]:
    """For each pass, its rows among the prompt numbers ``fan`` (ascending), which count over all passes."""
    first, chosen = 0, []
    for made in passes:
        last = first + len(made.lengths)
        chosen.append(torch.from_numpy(fan[(fan >= first) & (fan < last)] - first).to(device))
        first = last
    return chosen


def columns_of(visible: NDArray[np.bool_] | None, row: int, prefilled: int, filled: int) -> NDArray[np.int64]:
    """The columns of a row that hold its tokens: its prompt's, and all columns filled since."""
    prompt = np.arange(prefilled) if visible is None else np.flatnonzero(visible[row])
    return np.concatenate([prompt, np.arange(prefilled, filled)])


class GrowingDecoder:
    """Decodes with a cache that shows one more column after every token; it keeps nothing between batches."""

    name = "growing"
    held = 0
    """Bytes that stay allocated between batches."""

    def begin(self, passes: Sequence[Prefilled], fan: NDArray[np.int64], room: int) -> Decoding:
        """Open rows of the prompt numbers ``fan`` (ascending), with ``room`` new tokens; the passes are
        consumed."""
        return Decoding.of(passes, fan, room)

    def tokens(self, rows: int, columns: int) -> int:
        """The number of tokens for which this many rows of this length take memory."""
        return rows * columns

    def logits(self, rows: int) -> int:
        """The number of rows of logits that exist at once: of this token and of the next."""
        return 2 * rows

    def rest(self) -> None:
        """Do nothing: there is nothing to release."""


@dataclass
class Decoding:
    """The open rows: their keys and values, the mask of their padding, and their lengths."""

    cache: DecodingCache
    visible: NDArray[np.bool_] | None
    """[rows, prefilled columns], True where there is no padding; None if there is none."""
    mask: torch.Tensor | None
    """``visible`` for all columns so far, on the model's device."""
    lengths: torch.Tensor
    prefilled: int
    filled: int
    """Number of columns of the prompts, and of all filled columns."""

    @classmethod
    def of(cls, passes: Sequence[Prefilled], fan: NDArray[np.int64], room: int) -> Decoding:
        device = passes[0].logits.device
        columns = max(made.width for made in passes)
        lengths = np.concatenate([made.lengths for made in passes])[fan]
        visible = None
        if any(made.visible is not None or made.width < columns for made in passes):
            visible = np.concatenate([made.columns(columns) for made in passes])[fan]
        caches = [made.cache for made in passes if made.cache is not None]
        return cls(
            DecodingCache.merged(caches, rows_of_passes(passes, fan, device), columns, room),
            visible,
            None if visible is None else torch.from_numpy(visible).to(device),
            torch.from_numpy(lengths).to(device),
            prefilled=columns,
            filled=columns,
        )

    def keep(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Keep these rows (ascending); return them in their new order."""
        order = self.cache.keep(rows)
        index = torch.from_numpy(order).to(self.lengths.device)
        self.lengths = self.lengths.index_select(0, index)
        if self.visible is not None and self.mask is not None:
            self.visible, self.mask = self.visible[order], self.mask.index_select(0, index)
        return order

    def layers_of(self, row: int) -> Layers:
        """A copy of the keys and values of a row's tokens so far."""
        return row_of(self.cache.stacks, row, columns_of(self.visible, row, self.prefilled, self.filled))

    def advance(self, model: PreTrainedModel, tokens: torch.Tensor) -> torch.Tensor:
        """Append one token per row; return the logits after it, [rows, vocabulary]."""
        if self.mask is not None:
            self.mask = torch.nn.functional.pad(self.mask, (0, 1), value=True)
        output = model(
            input_ids=tokens[:, None], attention_mask=self.mask, position_ids=self.lengths[:, None],
            past_key_values=self.cache, use_cache=True,
        )  # fmt: skip
        self.lengths = self.lengths + 1
        self.filled += 1
        return output.logits[:, -1]  # type: ignore[no-any-return]


@dataclass
class Answers:
    """The sampled tokens so far, [rows, longest response]."""

    tokens: NDArray[np.int64]
    logprobs: NDArray[np.float32]
    lengths: NDArray[np.int64]
    stopped: NDArray[np.bool_] = field(repr=False)

    @classmethod
    def of(cls, rows: int, longest: int) -> Answers:
        return cls(
            np.zeros((rows, longest), np.int64),
            np.zeros((rows, longest), np.float32),
            np.zeros(rows, np.int64),
            np.zeros(rows, np.bool_),
        )

    def add(
        self, rows: NDArray[np.int64], position: int, tokens: torch.Tensor, logprobs: torch.Tensor,
        stop: NDArray[np.int64],
    ) -> NDArray[np.bool_]:  # fmt: skip
        """Add a token per row; return for each row whether the token ends the response. It waits for a GPU,
        which the host does once per token: for tokens and log-probabilities together."""
        if tokens.device.type == "cpu":
            drawn, own = tokens.numpy(), logprobs.numpy()
        else:
            # A float64 holds both exactly.
            drawn, own = torch.stack([tokens.double(), logprobs.double()]).cpu().numpy()
        self.tokens[rows, position] = drawn
        self.logprobs[rows, position] = own
        self.lengths[rows] = position + 1
        self.stopped[rows] = np.isin(self.tokens[rows, position], stop)
        return self.stopped[rows]

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
