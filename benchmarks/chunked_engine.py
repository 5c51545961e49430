"""The local engine as it was before rows of all chunks were decoded together (November 2026).

Kept for comparisons: prompts in chunks of ``PREFILL_TOKENS`` tokens, each decoded by itself, with
transformers' own growing cache. Its batches of one chunk are what the engine's must equal, bit for bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from transformers import DynamicCache, PreTrainedModel

from skillpress.core.engine import Completion, Sampling, StateDict
from skillpress.core.trajectory import TokenIds
from skillpress.models.engines.sampler import draw
from skillpress.models.policy.policy import Policy, copy_model

PREFILL_TOKENS = 32_768
"""Prompt tokens in one forward pass at most; bounds the memory of activations."""


@dataclass
class ChunkedEngineCounters:
    """What the engine has done so far."""

    completions: int = 0
    prompt_tokens: int = 0
    """Tokens of all prompts asked for."""
    prefilled_tokens: int = 0
    """Tokens of the different prompts, the ones really computed."""
    sampled_tokens: int = 0


class ChunkedEngine:
    """An ``engine.Engine``, as it was."""

    def __init__(self, policy: Policy) -> None:
        """Copy the model: what is trained elsewhere reaches the engine by ``update_weights``."""
        self.model: PreTrainedModel = copy_model(policy.model)
        self.stop = torch.tensor(sorted(policy.stop_token_ids), device=self.model.device)
        self.pad = int(policy.tokenizer.pad_token_id or 0)
        self.version = 0
        self.counters = ChunkedEngineCounters()

    def update_weights(self, weights: StateDict, version: int) -> None:
        """See ``engine.Engine``."""
        self.model.load_state_dict(weights)
        self.version = version

    @torch.inference_mode()
    def generate(
        self, prompts: Sequence[TokenIds], sampling: Sampling, seeds: Sequence[int]
    ) -> list[Completion]:
        """See ``engine.Engine``."""
        completions: list[Completion | None] = [None] * len(prompts)
        for rows in self._chunks(prompts):
            batch = self._complete([prompts[r] for r in rows], sampling, [seeds[r] for r in rows])
            for row, completion in zip(rows, batch, strict=True):
                completions[row] = completion
        return [completion for completion in completions if completion is not None]

    def _chunks(self, prompts: Sequence[TokenIds]) -> list[list[int]]:
        """Row numbers, shortest prompts first, in chunks of about ``PREFILL_TOKENS`` tokens."""
        chunks: list[list[int]] = []
        width = 0
        for row in sorted(range(len(prompts)), key=lambda r: (len(prompts[r]), prompts[r])):
            width = len(prompts[row])
            if not chunks or (len(chunks[-1]) + 1) * width > PREFILL_TOKENS:
                chunks.append([])
            chunks[-1].append(row)
        return chunks

    def _complete(
        self, prompts: Sequence[TokenIds], sampling: Sampling, seeds: Sequence[int]
    ) -> list[Completion]:
        different = list(dict.fromkeys(prompts))
        place = {prompt: index for index, prompt in enumerate(different)}
        self.counters.completions += len(prompts)
        self.counters.prompt_tokens += sum(map(len, prompts))
        self.counters.prefilled_tokens += sum(map(len, different))
        decoding = sampling.max_new_tokens > 1
        logits, state = self._prefill(different, keep_cache=decoding)
        fan = torch.tensor([place[prompt] for prompt in prompts], device=logits.device)
        logits = logits[fan]
        answers = _Answers.of(len(prompts), sampling.max_new_tokens)
        row_seeds = np.array(seeds, dtype=np.uint64)
        rows = np.arange(len(prompts))
        for position in range(sampling.max_new_tokens):
            tokens, logprobs = draw(logits, sampling, row_seeds[rows], position)
            stopped = torch.isin(tokens, self.stop)
            answers.add(rows, position, tokens, logprobs, stopped)
            self.counters.sampled_tokens += len(rows)
            open_rows = torch.nonzero(~stopped).squeeze(1)
            if position + 1 == sampling.max_new_tokens or not len(open_rows):
                break
            if position == 0:
                state.select(fan[open_rows])
            elif len(open_rows) < len(rows):
                state.select(open_rows)
            rows = rows[open_rows.cpu().numpy()]
            logits = state.advance(self.model, tokens[open_rows])
        return answers.completions()

    def _prefill(self, prompts: Sequence[TokenIds], keep_cache: bool) -> tuple[torch.Tensor, _Decoding]:
        """Logits after each prompt, [prompts, vocabulary], and the cache to go on from."""
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
        return output.logits[:, -1], _Decoding(cache, mask, lengths)


@dataclass
class _Decoding:
    """The rows still open: their keys and values, what of them is padding, and their lengths."""

    cache: DynamicCache | None
    mask: torch.Tensor | None
    lengths: torch.Tensor

    def select(self, rows: torch.Tensor) -> None:
        assert self.cache is not None
        self.cache.batch_select_indices(rows)
        self.lengths = self.lengths[rows]
        if self.mask is not None:
            self.mask = self.mask[rows]

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
            Completion(
                token_ids=tuple(tokens[:length]),
                logprobs=tuple(logprobs[:length]),
                finish_reason="stop" if stopped else "length",
            )
            for tokens, logprobs, length, stopped in columns
        ]
