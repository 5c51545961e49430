"""Sampling in this process: batched, with a KV cache, and nothing computed twice.

Prompts are prefilled in chunks of about one length, rows with the same prompt (a group's first step,
say) once; then all rows are decoded together, from whichever chunk they come, because a decode step
reads all weights however few its rows are. Each turn of the decode loop advances the rows that are
still open; a row that has drawn a stop token leaves the batch, and its share of the cache with it.
Prompts of different lengths are padded on the left, so that the newest token of every row stands in
the same column.

The engine works on the device that the policy is on. On a GPU it launches every operation by itself:
there is no static cache and no CUDA graph here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from transformers import DynamicCache, PreTrainedModel

from skillpress.engines.batch import BatchEngine
from skillpress.engines.local.decoding_cache import DecodingCache, bytes_per_token, can_merge
from skillpress.engines.local.grouped_attention import group_queries
from skillpress.engines.sampler import draw, uniforms
from skillpress.interface import Completion, Promises, Sampling, StateDict, TokenIds
from skillpress.policy.policy import Policy, copy_model

PREFILL_TOKENS = 32_768
"""Prompt tokens in one forward pass at most; bounds the memory of activations."""

CACHE_BYTES = 8 << 30
"""Keys and values of the rows that are decoded together at most; further rows wait for them."""

PADDING_WORK = 10**11
"""Multiplications by weights that a CPU may spend on the padding of one pass: a second or two.

A GPU has less of a loss from padding than from more passes."""


@dataclass
class LocalEngineCounters:
    """What the engine has done so far."""

    completions: int = 0
    prompt_tokens: int = 0
    """Tokens of all prompts asked for."""
    prefilled_tokens: int = 0
    """Tokens of the different prompts, the ones really computed."""
    sampled_tokens: int = 0


class LocalEngine(BatchEngine):
    """An ``interface.Engine`` on torch, with its own copy of the policy's weights."""

    promises = Promises(exact_seeds=True, exact_logprobs=True, lockstep=True)

    def __init__(self, policy: Policy) -> None:
        """Copy the model: what is trained elsewhere reaches the engine by ``update_weights``."""
        super().__init__()
        self.model: PreTrainedModel = copy_model(policy.model)
        group_queries(self.model)
        self._merges = can_merge(self.model.config)
        self._weights = policy.parameters
        self.stop = torch.tensor(sorted(policy.stop_token_ids), device=self.model.device)
        self.pad = int(policy.tokenizer.pad_token_id or 0)
        self.counters = LocalEngineCounters()

    def update_weights(self, weights: StateDict, version: int) -> None:
        """See ``interface.Engine``."""
        self.model.load_state_dict(weights)
        self.version = version

    @torch.inference_mode()
    def generate(
        self, prompts: Sequence[TokenIds], sampling: Sampling, seeds: Sequence[int]
    ) -> list[Completion]:
        """See :class:`BatchEngine`."""
        completions: list[Completion | None] = [None] * len(prompts)
        for rows in self._batches(prompts, sampling.max_new_tokens):
            batch = self._complete([prompts[r] for r in rows], sampling, [seeds[r] for r in rows])
            for row, completion in zip(rows, batch, strict=True):
                completions[row] = completion
        return [completion for completion in completions if completion is not None]

    def _batches(self, prompts: Sequence[TokenIds], new_tokens: int) -> list[list[int]]:
        """Row numbers, shortest prompts first, in batches that are decoded together."""
        batches: list[list[int]] = []
        per_token = bytes_per_token(self.model.config, self.model.dtype.itemsize)
        width = 0
        for row in sorted(range(len(prompts)), key=lambda r: (len(prompts[r]), prompts[r])):
            width = len(prompts[row])
            if not batches or not self._fits(len(batches[-1]) + 1, width, (width + new_tokens) * per_token):
                batches.append([])
            batches[-1].append(row)
        return batches

    def _fits(self, rows: int, width: int, row_bytes: int) -> bool:
        """Whether so many rows are one batch; where passes cannot be merged, a batch is one pass."""
        return rows * row_bytes <= CACHE_BYTES and (self._merges or rows * width <= PREFILL_TOKENS)

    def _passes(self, prompts: Sequence[TokenIds]) -> Iterator[list[TokenIds]]:
        """Different prompts, shortest first, cut into prefill passes."""
        some: list[TokenIds] = []
        for prompt in prompts:
            wide = (len(some) + 1) * len(prompt)
            if some and (wide > PREFILL_TOKENS or self._pads_much(wide - sum(map(len, some)) - len(prompt))):
                yield some
                some = []
            some.append(prompt)
        yield some

    def _pads_much(self, padding: int) -> bool:
        costly = self.model.device.type == "cpu" and self._merges
        return costly and padding * self._weights > PADDING_WORK

    def _complete(
        self, prompts: Sequence[TokenIds], sampling: Sampling, seeds: Sequence[int]
    ) -> list[Completion]:
        different = list(dict.fromkeys(prompts))
        place = {prompt: index for index, prompt in enumerate(different)}
        self.counters.completions += len(prompts)
        self.counters.prompt_tokens += sum(map(len, prompts))
        self.counters.prefilled_tokens += sum(map(len, different))
        decoding = sampling.max_new_tokens > 1
        passes = [self._prefill(some, keep_cache=decoding) for some in self._passes(different)]
        logits = torch.cat([made.logits for made in passes])
        fan = torch.tensor([place[prompt] for prompt in prompts], device=logits.device)
        logits = logits[fan]
        answers = _Answers.of(len(prompts), sampling.max_new_tokens)
        row_seeds = np.array(seeds, dtype=np.uint64)
        rows = np.arange(len(prompts))
        state: _Decoding | None = None
        for position in range(sampling.max_new_tokens):
            uniform = torch.from_numpy(uniforms(row_seeds[rows], position))
            tokens, logprobs = draw(logits, sampling, uniform)
            stopped = torch.isin(tokens, self.stop)
            answers.add(rows, position, tokens, logprobs, stopped)
            self.counters.sampled_tokens += len(rows)
            open_rows = torch.nonzero(~stopped).squeeze(1)
            if position + 1 == sampling.max_new_tokens or not len(open_rows):
                break
            if state is None:
                state = _Decoding.of(passes, fan[open_rows], sampling.max_new_tokens - 1)
                passes.clear()
            elif len(open_rows) < len(rows):
                open_rows = state.keep(open_rows)
            rows = rows[open_rows.cpu().numpy()]
            logits = state.advance(self.model, tokens[open_rows])
        return answers.completions()

    def _prefill(self, prompts: Sequence[TokenIds], keep_cache: bool) -> _Prefilled:
        """One pass over different prompts."""
        width = max(map(len, prompts))
        padding = [width - len(prompt) for prompt in prompts]
        ids = [[self.pad] * pad + list(prompt) for pad, prompt in zip(padding, prompts, strict=True)]
        device = self.model.device
        input_ids = torch.tensor(ids, device=device)
        mask = None
        positions = torch.arange(width, device=device)[None, :]
        if any(padding):
            mask = positions >= torch.tensor(padding, device=device)[:, None]
            positions = (mask.long().cumsum(1) - 1).clamp_(min=0)
        cache = DynamicCache(config=self.model.config) if keep_cache else None
        output = self.model(
            input_ids=input_ids, attention_mask=mask, position_ids=positions.expand(len(prompts), -1),
            past_key_values=cache, use_cache=keep_cache, logits_to_keep=1,
        )  # fmt: skip
        lengths = torch.tensor([len(prompt) for prompt in prompts], device=device)
        return _Prefilled(output.logits[:, -1], cache, lengths, width)


@dataclass
class _Prefilled:
    """What a pass over different prompts leaves."""

    logits: torch.Tensor
    """[prompts, vocabulary] after each prompt."""
    cache: DynamicCache | None
    lengths: torch.Tensor
    """[prompts]."""
    width: int
    """Columns, padding included."""


@dataclass
class _Decoding:
    """The rows still open: their keys and values, what of them is padding, and their lengths."""

    cache: DecodingCache
    mask: torch.Tensor | None
    lengths: torch.Tensor

    @classmethod
    def of(cls, passes: Sequence[_Prefilled], fan: torch.Tensor, room: int) -> _Decoding:
        """Rows whose prompts are numbers ``fan`` (ascending) of all passes, with room for so many tokens."""
        columns = max(made.width for made in passes)
        lengths = torch.cat([made.lengths for made in passes])
        first, chosen = 0, []
        for made in passes:
            last = first + len(made.lengths)
            chosen.append(fan[(fan >= first) & (fan < last)] - first)
            first = last
        padding = columns - lengths
        mask = None
        if bool(padding.any()):
            mask = (torch.arange(columns, device=fan.device) >= padding[:, None])[fan]
        caches = [made.cache for made in passes if made.cache is not None]
        return cls(DecodingCache.merged(caches, chosen, columns, room), mask, lengths[fan])

    def keep(self, rows: torch.Tensor) -> torch.Tensor:
        """Keep these rows; returns them in the order that they stand in now."""
        rows = self.cache.keep(rows)
        self.lengths = self.lengths[rows]
        if self.mask is not None:
            self.mask = self.mask[rows]
        return rows

    def advance(self, model: PreTrainedModel, tokens: torch.Tensor) -> torch.Tensor:
        """Append one token per row; returns the logits after it, [rows, vocabulary]."""
        if self.mask is not None:
            self.mask = torch.nn.functional.pad(self.mask, (0, 1), value=True)
        output = model(
            input_ids=tokens[:, None], attention_mask=self.mask, position_ids=self.lengths[:, None],
            past_key_values=self.cache, use_cache=True,
        )  # fmt: skip
        self.lengths = self.lengths + 1
        return output.logits[:, -1]  # type: ignore[no-any-return]


@dataclass
class _Answers:
    """Sampled tokens as they come in, [rows, longest response]."""

    tokens: np.ndarray[tuple[int, int], np.dtype[np.int64]]
    logprobs: np.ndarray[tuple[int, int], np.dtype[np.float32]]
    lengths: np.ndarray[tuple[int], np.dtype[np.int64]]
    stopped: np.ndarray[tuple[int], np.dtype[np.bool_]] = field(repr=False)

    @classmethod
    def of(cls, rows: int, longest: int) -> _Answers:
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

    def completions(self) -> list[Completion]:
        columns = zip(
            self.tokens.tolist(), self.logprobs.tolist(), self.lengths.tolist(), self.stopped, strict=True
        )
        return [
            Completion(tuple(tokens[:length]), tuple(logprobs[:length]), "stop" if stopped else "length")
            for tokens, logprobs, length, stopped in columns
        ]
