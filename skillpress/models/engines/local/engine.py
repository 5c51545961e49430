"""Sampling in this process: in batches, with a KV cache, and without computing anything twice.

Prompts are prefilled in chunks of similar length; rows with the same prompt (such as a group's first step)
are prefilled once. Then the rows of all chunks are decoded together, because a decode step reads all weights,
however few rows it has. Each iteration of the decode loop advances the rows that are still open. A row that
has drawn a stop token leaves the batch and frees its share of the cache. Prompts of different lengths are
padded on the left, so that the newest token of every row is in the same column.

If prompts grow, the keys and values of a prompt and its response are kept (``kept.py``). For a prompt that
extends them, only the new tokens are prefilled: the response's last token, which was sampled but never fed to
the model, and the text after it.

The engine works on the policy's device. On a CPU the cache grows with every token. On a GPU, decode steps of
a few fixed shapes are recorded as CUDA graphs and replayed (``static_decoding.py``). Models that such a step
does not support decode as on a CPU. The steps are tested on a CPU; recorded ones ran on one kind of GPU
(``benchmarks/results/gpu.md``). So each step is compared with the model's own step before it is used, and the
engine stops if they differ.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import DynamicCache, PreTrainedModel

from skillpress.core.engine import Completion, Promises, Sampling, StateDict
from skillpress.core.trajectory import TokenIds
from skillpress.models.engines.batch import BatchEngine
from skillpress.models.engines.local.batches import WaitingRow, batches_of, memory_for_rows
from skillpress.models.engines.local.decoding import Answers, GrowingDecoder, Prefilled
from skillpress.models.engines.local.decoding_cache import (
    bytes_per_token,
    can_merge,
    can_resume,
    resumed_cache,
)
from skillpress.models.engines.local.grouped_attention import group_queries
from skillpress.models.engines.local.kept import KeptSequence, KeptSequences, Layers
from skillpress.models.engines.local.recorded_step import CudaGraphs
from skillpress.models.engines.local.room import MemoryRoom, cuda_memory
from skillpress.models.engines.local.static_cache import why_not_static
from skillpress.models.engines.local.static_decoding import StaticDecoder
from skillpress.models.engines.sampler import draw
from skillpress.models.policy.attention import FLASH, leave_blocks_on_gpu, with_masks
from skillpress.models.policy.policy import Policy, copy_model

_log = logging.getLogger(__name__)

PREFILL_TOKENS = 32_768
"""Maximum number of prompt tokens in one forward pass; it bounds the memory of activations."""

KEPT_BYTES = 8 << 30
"""Maximum bytes of keys and values that are kept from one step to the next, if prompts grow."""

PADDING_WORK = 10**11
"""Multiplications that a CPU may spend on a pass's padding (a second); a GPU loses more by more passes."""


class LocalEngine(BatchEngine):
    """An ``engine.Engine`` on torch, with its own copy of the policy's weights."""

    def __init__(self, policy: Policy, growing: bool = False) -> None:
        """Copy the model. Training elsewhere reaches the engine only through ``update_weights``.

        Args:
            growing: whether prompts extend earlier prompts and responses. Their keys and values are then
                kept, if the model's layers allow it and as far as ``KEPT_BYTES`` suffices.
        """
        super().__init__()
        self.model: PreTrainedModel = copy_model(policy.model)
        if with_masks(self.model):
            _log.warning(
                "the local engine samples with sdpa, because %s does not support masks over its caches", FLASH
            )
        leave_blocks_on_gpu(self.model)
        group_queries(self.model)
        self.decoder = decoder_for(self.model)
        self._merges = can_merge(self.model.config)
        self._weights = policy.parameters
        exact = self.model.dtype == torch.float32  # half types round by 0.04 nats in each pass
        self.promises = Promises(exact_seeds=True, exact_logprobs=exact, lockstep=True)
        self.stop = np.array(sorted(policy.stop_token_ids), np.int64)
        pad = int(policy.tokenizer.pad_token_id or 0)
        self.pad = pad if pad < policy.vocabulary else 0  # masked everywhere, but the model embeds it
        self.kept = KeptSequences(KEPT_BYTES) if growing and can_resume(self.model.config) else None

    def update_weights(self, weights: StateDict, version: int) -> None:
        # In place: recorded steps read these addresses.
        self.model.load_state_dict(weights)
        self.version = version
        self._forget()

    def abort(self) -> None:
        super().abort()
        self._forget()

    def sleep(self) -> None:
        """Release the memory of kept keys and values, and of recorded steps if the learner needs it."""
        self._forget()
        self.decoder.rest()

    def _forget(self) -> None:
        if self.kept is not None:
            self.kept.clear()

    @torch.inference_mode()
    def generate(
        self, prompts: Sequence[TokenIds], sampling: Sampling, seeds: Sequence[int]
    ) -> list[Completion]:
        completions: list[Completion | None] = [None] * len(prompts)
        known = self._known(prompts)
        # The longest first: memory of fixed shapes is then allocated once.
        for rows in reversed(self._batches(prompts, sampling.max_new_tokens, known)):
            if known:  # after the others, those with the fewest new tokens first
                rows.sort(key=lambda row: _new_tokens(prompts[row], known))
            batch = self._complete([prompts[r] for r in rows], sampling, [seeds[r] for r in rows], known)
            for row, completion in zip(rows, batch, strict=True):
                completions[row] = completion
        return [completion for completion in completions if completion is not None]

    def _batches(
        self, prompts: Sequence[TokenIds], new_tokens: int, known: Mapping[TokenIds, KeptSequence]
    ) -> list[list[int]]:
        """Row numbers, shortest prompts first, in batches that are decoded together."""
        # By the prompt too, so that equal prompts are neighbours and are prefilled once.
        order = sorted(range(len(prompts)), key=lambda r: (len(prompts[r]), prompts[r]))
        rows = []
        for number in order:
            kept = _length(known.get(prompts[number]))
            rows.append(WaitingRow(number, kept, len(prompts[number]) - kept))
        limit = memory_for_rows(self.model.device, self.decoder.held)

        def size(count: int, columns: int) -> int:
            # One pass, if passes cannot be merged.
            possible = self._merges or count * columns <= PREFILL_TOKENS
            return self.size(count, columns, new_tokens) if possible else limit + 1

        return batches_of(rows, size, limit)

    def size(self, rows: int, columns: int, new_tokens: int) -> int:
        """Bytes of a batch: keys and values, and the logits that exist at the same time.

        Args:
            columns: of the prompts, with padding.
        """
        of_token, of_logits, beside = self._bytes
        tokens = self.decoder.tokens(rows, columns + new_tokens - 1)
        # Those after the pass over prompts, and those after a step.
        return tokens * of_token + self.decoder.logits(rows) * of_logits + rows * beside

    # Asked once: a batch is sized for every row, and the model looks for these answers each time.
    @cached_property
    def _bytes(self) -> tuple[int, int, int]:
        """Bytes of a token's keys and values, of a row's logits, and of a row's further arrays: on a GPU the
        logits' float32 copy and log-probabilities; on a CPU they fit into a cache."""
        itemsize = self.model.dtype.itemsize
        vocabulary = int(self.model.config.get_text_config().vocab_size)
        beside = 8 * vocabulary if self.model.device.type == "cuda" else 0
        return bytes_per_token(self.model.config, itemsize), itemsize * vocabulary, beside

    def _passes(self, prompts: Sequence[TokenIds]) -> Iterator[list[TokenIds]]:
        """Split different prompts, shortest first, into prefill passes."""
        some: list[TokenIds] = []
        for prompt in prompts:
            wide = (len(some) + 1) * len(prompt)
            if some and (wide > PREFILL_TOKENS or self._pads_much(wide - sum(map(len, some)) - len(prompt))):
                yield some
                some = []
            some.append(prompt)
        if some:
            yield some

    def _pads_much(self, padding: int) -> bool:
        costly = self.model.device.type == "cpu" and self._merges
        return costly and padding * self._weights > PADDING_WORK

    def _known(self, prompts: Sequence[TokenIds]) -> dict[TokenIds, KeptSequence]:
        """Maps prompts to the kept sequences that they extend, for prompts that have one."""
        if self.kept is None:
            return {}
        self.kept.begin_round()
        found = {prompt: self.kept.find(prompt) for prompt in set(prompts)}
        return {prompt: sequence for prompt, sequence in found.items() if sequence is not None}

    def _complete(
        self,
        prompts: Sequence[TokenIds],
        sampling: Sampling,
        seeds: Sequence[int],
        known: dict[TokenIds, KeptSequence],
    ) -> list[Completion]:
        different = list(dict.fromkeys(prompts))
        place = {prompt: index for index, prompt in enumerate(different)}
        computed = {prompt: len(prompt) - _length(known.get(prompt)) for prompt in different}
        # The last token is sampled but never fed to the model, so it needs no place in the cache.
        room = sampling.max_new_tokens - 1
        passes = self._prefilled(different, known, keep_cache=room > 0 or self.kept is not None)
        logits = torch.cat([made.logits for made in passes])
        fan = np.array([place[prompt] for prompt in prompts])
        logits = logits[torch.from_numpy(fan).to(logits.device)]
        answers = Answers.of(len(prompts), sampling.max_new_tokens)
        row_seeds = np.array(seeds, dtype=np.uint64)
        rows = np.arange(len(prompts))
        # If sequences are kept, all rows need their cache, even those whose first token ends the response.
        state = None if self.kept is None else self.decoder.begin(passes, fan, room)
        for position in range(sampling.max_new_tokens):
            tokens, logprobs = self.draw(logits, sampling, row_seeds[rows], position)
            stopped = answers.add(rows, position, tokens, logprobs, self.stop)
            # The longest response ends here whatever its last token is.
            over = stopped if position < room else np.ones_like(stopped)
            if self.kept is not None and state is not None:
                for index in np.flatnonzero(over).tolist():
                    # Without the token drawn just now, which the model has not computed yet.
                    sampled = tuple(answers.tokens[rows[index], :position].tolist())
                    self._keep(self.kept, prompts[rows[index]] + sampled, partial(state.layers_of, index))
            if over.all():
                break
            open_rows = np.flatnonzero(~stopped)
            if state is None:
                state = self.decoder.begin(passes, fan[open_rows], room)
            elif len(open_rows) < len(rows):
                open_rows = state.keep(open_rows)
            # The rows have been copied, so decoding can use the memory of the passes.
            passes.clear()
            if len(open_rows) < len(rows):
                rows, tokens = rows[open_rows], tokens[torch.from_numpy(open_rows).to(tokens.device)]
            logits = state.advance(self.model, tokens)
        # The first row with a prompt counts its tokens; for the other rows nothing was computed.
        return answers.completions([computed.pop(prompt, 0) for prompt in prompts])

    def draw(
        self, logits: torch.Tensor, sampling: Sampling, seeds: NDArray[np.uint64], position: int
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Draw each row's token at this position; return tokens and log-probabilities, [rows] each."""
        return draw(logits, sampling, seeds, position)

    def _keep(self, kept: KeptSequences, tokens: TokenIds, layers: Callable[[], Layers]) -> None:
        """Keep a sequence's keys and values, if there is room. Only its last token was not fed."""
        if kept.make_room(len(tokens) * bytes_per_token(self.model.config, self.model.dtype.itemsize)):
            kept.put(KeptSequence(tokens, layers()))

    def _prefilled(
        self, prompts: Sequence[TokenIds], known: dict[TokenIds, KeptSequence], keep_cache: bool
    ) -> list[Prefilled]:
        """Passes over different prompts. Those that extend kept sequences come last and consume them."""
        fresh = [prompt for prompt in prompts if prompt not in known]
        grown = [prompt for prompt in prompts if prompt in known]
        before = [self._taken(known.pop(prompt)) for prompt in grown]
        new = [prompt[len(kept.tokens) :] for prompt, kept in zip(grown, before, strict=True)]
        passes = [self._prefill(some, keep_cache) for some in self._passes(fresh)]
        for some in self._passes(new):
            passes.append(self._go_on(before[: len(some)], some))
            del before[: len(some)]
        return passes

    def _taken(self, sequence: KeptSequence) -> KeptSequence:
        """Return the sequence and forget it, because a longer one will replace it."""
        if self.kept is not None:
            self.kept.drop(sequence)
        return sequence

    def _go_on(self, kept: Sequence[KeptSequence], new: Sequence[TokenIds]) -> Prefilled:
        """One pass over the new tokens of prompts whose beginning is kept."""
        cache, seen = resumed_cache([sequence.layers for sequence in kept], self.model.config)
        return self._pass(new, cache, np.array([len(sequence.tokens) for sequence in kept]), seen)

    def _prefill(self, prompts: Sequence[TokenIds], keep_cache: bool) -> Prefilled:
        """One pass over different prompts."""
        cache = DynamicCache(config=self.model.config) if keep_cache else None
        return self._pass(prompts, cache, np.zeros(len(prompts), np.int64), None)

    def _pass(
        self,
        rows: Sequence[TokenIds],
        cache: DynamicCache | None,
        before: NDArray[np.int64],
        seen: NDArray[np.bool_] | None,
    ) -> Prefilled:
        """One pass over rows, padded on the left; ``before`` tokens of each are cached, where ``seen``."""
        device, width = self.model.device, max(map(len, rows))
        ids = np.array([[self.pad] * (width - len(row)) + list(row) for row in rows])
        lengths = np.array([len(row) for row in rows])
        places = np.arange(width) - (width - lengths)[:, None]
        mask = places >= 0 if seen is not None or any(len(row) < width for row in rows) else None
        if seen is not None and mask is not None:
            mask = np.concatenate([seen, mask], axis=1)
        # Padding has negative places, which no position embedding knows.
        positions = before[:, None] + places.clip(min=0)
        output = self.model(
            input_ids=torch.from_numpy(ids).to(device),
            attention_mask=None if mask is None else torch.from_numpy(mask).to(device),
            position_ids=torch.from_numpy(positions).to(device),
            past_key_values=cache,
            use_cache=cache is not None,
            # The logits of a whole pass would be a vocabulary times as many numbers as tokens.
            logits_to_keep=1,
        )
        columns = width if mask is None else mask.shape[1]
        return Prefilled(output.logits[:, -1], cache, lengths=before + lengths, visible=mask, width=columns)


def decoder_for(model: PreTrainedModel) -> GrowingDecoder | StaticDecoder:
    """Recorded steps on CUDA if the model allows them; if it does not, a warning says why."""
    if model.device.type != "cuda":
        return GrowingDecoder()
    reason = why_not_static(model)
    if reason is not None:
        _log.warning("%s decodes without CUDA graphs: %s", type(model).__name__, reason)
        return GrowingDecoder()
    device = model.device
    return StaticDecoder(model, lambda: CudaGraphs(device), MemoryRoom(lambda: cuda_memory(device)))


def _length(sequence: KeptSequence | None) -> int:
    return len(sequence.tokens) if sequence else 0


def _new_tokens(prompt: TokenIds, known: Mapping[TokenIds, KeptSequence]) -> int:
    """Number of tokens after the kept sequence; 0 if there is none."""
    return len(prompt) - _length(known[prompt]) if prompt in known else 0
