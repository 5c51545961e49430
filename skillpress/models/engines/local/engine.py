"""Sampling in this process: batched, with a KV cache, and nothing computed twice.

Prompts are prefilled in chunks of about one length, rows with the same prompt (a group's first step,
say) once; then all rows are decoded together, from whichever chunk they come, because a decode step
reads all weights however few its rows are. Each turn of the decode loop advances the rows that are
still open; a row that has drawn a stop token leaves the batch, and its share of the cache with it.
Prompts of different lengths are padded on the left, so that the newest token of every row stands in
the same column.

Where prompts grow, keys and values of a prompt and its response are kept (``kept.py``), and of a prompt that
goes on from them the new tokens alone are prefilled: the response's last token, which was sampled and
never fed, and what was said after it.

The engine works on the device that the policy is on. On a CPU the cache grows with every token. On a GPU
decode steps of a few fixed shapes are recorded as CUDA graphs and played back (``static_decoding.py``), but
for models that such a step cannot hold, which decode as on a CPU. The steps are tested on a CPU; recording
them was **never run on a GPU so far**. So each is compared with the model's own step before it is used, and
the engine stops where they differ.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import DynamicCache, PreTrainedModel

from skillpress.core.engine import Completion, Promises, Sampling, StateDict
from skillpress.core.trajectory import TokenIds
from skillpress.models.engines.batch import BatchEngine
from skillpress.models.engines.local.decoding import Answers, Decoder, GrowingDecoder, Prefilled
from skillpress.models.engines.local.decoding_cache import (
    bytes_per_token,
    can_merge,
    can_resume,
    resumed_cache,
)
from skillpress.models.engines.local.grouped_attention import group_queries
from skillpress.models.engines.local.kept import KeptSequence, KeptSequences, Layers
from skillpress.models.engines.local.recorded_step import CudaGraphs
from skillpress.models.engines.local.static_cache import why_not_static
from skillpress.models.engines.local.static_decoding import StaticDecoder
from skillpress.models.engines.sampler import draw
from skillpress.models.policy.policy import Policy, copy_model

_log = logging.getLogger(__name__)

PREFILL_TOKENS = 32_768
"""Prompt tokens in one forward pass at most; bounds the memory of activations."""

CACHE_BYTES = 8 << 30
"""Keys and values of the rows that are decoded together at most; further rows wait for them."""

KEPT_BYTES = 8 << 30
"""Keys and values of episodes in flight at most, kept from one step to the next where prompts grow."""

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
    """Tokens of the different prompts, the ones really computed: without those of kept sequences."""
    sampled_tokens: int = 0


class LocalEngine(BatchEngine):
    """An ``engine.Engine`` on torch, with its own copy of the policy's weights."""

    def __init__(self, policy: Policy, growing: bool = False) -> None:
        """Copy the model: what is trained elsewhere reaches the engine by ``update_weights``.

        Args:
            growing: prompts go on from earlier ones and their responses: keep keys and values of these, as
                far as the model's layers allow it and ``KEPT_BYTES`` suffice.
        """
        super().__init__()
        self.model: PreTrainedModel = copy_model(policy.model)
        group_queries(self.model)
        self.decoder = decoder_for(self.model)
        self._merges = can_merge(self.model.config)
        self._weights = policy.parameters
        exact = self.model.dtype == torch.float32  # half types round by 0.04 nats, each pass otherwise
        self.promises = Promises(exact_seeds=True, exact_logprobs=exact, lockstep=True)
        self.stop = torch.tensor(sorted(policy.stop_token_ids), device=self.model.device)
        pad = int(policy.tokenizer.pad_token_id or 0)
        self.pad = pad if pad < policy.vocabulary else 0  # nothing sees it, but the model embeds it
        self.counters = LocalEngineCounters()
        self.kept = KeptSequences(KEPT_BYTES) if growing and can_resume(self.model.config) else None

    def update_weights(self, weights: StateDict, version: int) -> None:
        """See ``engine.Engine``."""
        self.model.load_state_dict(weights)
        self.version = version
        self._forget()

    def abort(self) -> None:
        """See ``engine.Engine``."""
        super().abort()
        self._forget()

    def sleep(self) -> None:
        """Give back the memory of kept keys and values, and of recorded steps."""
        self._forget()
        self.decoder.release()

    def _forget(self) -> None:
        if self.kept is not None:
            self.kept.clear()

    @torch.inference_mode()
    def generate(
        self, prompts: Sequence[TokenIds], sampling: Sampling, seeds: Sequence[int]
    ) -> list[Completion]:
        """See :class:`BatchEngine`."""
        completions: list[Completion | None] = [None] * len(prompts)
        known = self._known(prompts)
        for rows in self._batches(prompts, sampling.max_new_tokens):
            if known:  # behind the others, those with the fewest new tokens first
                rows.sort(key=lambda row: _new_tokens(prompts[row], known))
            batch = self._complete([prompts[r] for r in rows], sampling, [seeds[r] for r in rows], known)
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
            count = len(batches[-1]) + 1 if batches else 1
            size = self.decoder.tokens(count, width + new_tokens) * per_token
            if not batches or not self._fits(count, width, size):
                batches.append([])
            batches[-1].append(row)
        return batches

    def _fits(self, rows: int, width: int, size: int) -> bool:
        """Whether so many rows of so many bytes are one batch; where passes cannot be merged, a batch is one
        pass."""
        return size <= CACHE_BYTES and (self._merges or rows * width <= PREFILL_TOKENS)

    def _passes(self, prompts: Sequence[TokenIds]) -> Iterator[list[TokenIds]]:
        """Different prompts, shortest first, cut into prefill passes."""
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
        """Prompt to the kept sequence that it goes on from, where there is one."""
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
        self.counters.completions += len(prompts)
        self.counters.prompt_tokens += sum(map(len, prompts))
        computed = {prompt: len(prompt) - _length(known.get(prompt)) for prompt in different}
        self.counters.prefilled_tokens += sum(computed.values())
        room = sampling.max_new_tokens - 1
        passes = self._prefilled(different, known, keep_cache=room > 0 or self.kept is not None)
        logits = torch.cat([made.logits for made in passes])
        fan = torch.tensor([place[prompt] for prompt in prompts], device=logits.device)
        logits = logits[fan]
        answers = Answers.of(len(prompts), sampling.max_new_tokens)
        row_seeds = np.array(seeds, dtype=np.uint64)
        rows = np.arange(len(prompts))
        state = None if self.kept is None else self.decoder.begin(passes, fan, room)
        for position in range(sampling.max_new_tokens):
            tokens, logprobs = self.draw(logits, sampling, row_seeds[rows], position)
            stopped = torch.isin(tokens, self.stop)
            answers.add(rows, position, tokens, logprobs, stopped)
            self.counters.sampled_tokens += len(rows)
            over = stopped if position < room else torch.ones_like(stopped)
            if self.kept is not None and state is not None:
                for index in torch.nonzero(over).squeeze(1).tolist():
                    sampled = tuple(answers.tokens[rows[index], :position].tolist())
                    self._keep(self.kept, prompts[rows[index]] + sampled, partial(state.layers_of, index))
            if bool(over.all()):
                break
            open_rows = torch.nonzero(~stopped).squeeze(1)
            if state is None:
                state = self.decoder.begin(passes, fan[open_rows], room)
            elif len(open_rows) < len(rows):
                open_rows = state.keep(open_rows)
            passes.clear()
            rows = rows[open_rows.cpu().numpy()]
            logits = state.advance(self.model, tokens[open_rows])
        return answers.completions([computed.pop(prompt, 0) for prompt in prompts])

    def draw(
        self, logits: torch.Tensor, sampling: Sampling, seeds: NDArray[np.uint64], position: int
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """[rows] the token of each at this position of its response, and its log-probability."""
        return draw(logits, sampling, seeds, position)

    def _keep(self, kept: KeptSequences, tokens: TokenIds, layers: Callable[[], Layers]) -> None:
        """Keep what was computed for a sequence whose last token alone was not fed, if there is room."""
        if kept.make_room(len(tokens) * bytes_per_token(self.model.config, self.model.dtype.itemsize)):
            kept.put(KeptSequence(tokens, layers()))

    def _prefilled(
        self, prompts: Sequence[TokenIds], known: dict[TokenIds, KeptSequence], keep_cache: bool
    ) -> list[Prefilled]:
        """Passes over different prompts; those that go on from kept sequences stand behind the others, and
        the kept sequences are used up."""
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
        """The sequence, which the longer one is to replace."""
        if self.kept is not None:
            self.kept.drop(sequence)
        return sequence

    def _go_on(self, kept: Sequence[KeptSequence], new: Sequence[TokenIds]) -> Prefilled:
        """One pass over the new tokens of prompts of which the rest is kept."""
        device = self.model.device
        cache, seen = resumed_cache([sequence.layers for sequence in kept], self.model.config)
        before = torch.tensor([len(sequence.tokens) for sequence in kept], device=device)
        lengths = torch.tensor([len(tokens) for tokens in new], device=device)
        width = max(map(len, new))
        ids = [[self.pad] * (width - len(tokens)) + list(tokens) for tokens in new]
        places = torch.arange(width, device=device) - (width - lengths)[:, None]
        visible = torch.cat([seen, places >= 0], dim=1)
        output = self.model(
            input_ids=torch.tensor(ids, device=device),
            attention_mask=visible,
            position_ids=before[:, None] + places.clamp(min=0),
            past_key_values=cache,
            use_cache=True,
            logits_to_keep=1,
        )
        return Prefilled(
            logits=output.logits[:, -1],
            cache=cache,
            lengths=before + lengths,
            visible=visible,
            width=visible.shape[1],
        )

    def _prefill(self, prompts: Sequence[TokenIds], keep_cache: bool) -> Prefilled:
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
        return Prefilled(logits=output.logits[:, -1], cache=cache, lengths=lengths, visible=mask, width=width)


def decoder_for(model: PreTrainedModel) -> Decoder:
    """Recorded steps where there is CUDA and the model allows them, which is said where it does not."""
    if model.device.type != "cuda":
        return GrowingDecoder()
    reason = why_not_static(model)
    if reason is not None:
        _log.warning("%s decodes without CUDA graphs: %s", type(model).__name__, reason)
        return GrowingDecoder()
    return StaticDecoder(model, lambda: CudaGraphs(model.device))


def _length(sequence: KeptSequence | None) -> int:
    return len(sequence.tokens) if sequence else 0


def _new_tokens(prompt: TokenIds, known: Mapping[TokenIds, KeptSequence]) -> int:
    """Those behind a kept sequence; 0 where there is none."""
    return len(prompt) - _length(known[prompt]) if prompt in known else 0
