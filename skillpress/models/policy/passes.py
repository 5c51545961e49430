"""Divides responses into forward passes, so that no pass has more tokens than memory allows.

All code that scores many responses uses such passes: the updates of training and of imitation, the reference
policy, and comparisons of two policies.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from skillpress.core.chains import Pair, Pairs
from skillpress.core.trajectory import TokenIds
from skillpress.models.policy.scoring import Scorer, pack_responses

FAN_OUT = 4
"""The most tokens of keys and values that a pass may fan out to its responses, per token of its limit."""
PASS_TOKENS = 16_384
"""The most tokens of a pass if no parameter sets a limit and nothing is kept for a backward pass."""


@dataclass(frozen=True)
class _Sequence:
    """Neighbouring pairs whose prompts extend one another, or a pair by itself."""

    rows: range
    prompt: TokenIds
    """The first pair's prompt."""
    width: int
    """Number of tokens that follow the prompt, without the last."""

    @property
    def octave(self) -> int:
        """A class of widths, which differ by less than a factor of two, for sequences of several pairs."""
        return self.width.bit_length() if len(self.rows) > 1 else 0


def pass_rows(
    pairs: Sequence[Pair] | Pairs, token_limit: int, shared: bool = True
) -> Iterator[NDArray[np.int64]]:
    """Rows of pairs that share a forward pass of at most ``token_limit`` tokens; a longer sequence has its
    own pass.

    Neighbours that extend one another are one sequence (``chains.py``) and stay together. Sequences are
    sorted by the length of their prompts and by the prompts, so equal prompts share a pass and there is
    little padding. Sequences of several pairs share a pass only with those of the same octave. A shared
    prompt's tokens count once, but its keys and values and the logits take memory for each of its responses:
    both are limited too. If prompts are not ``shared``, each sequence counts its prompt.
    """
    held: list[_Sequence] = []
    prompts = longest = 0
    # Sort by octave, then by length and prompt; otherwise keep the order.
    for each in sorted(_sequences(pairs), key=lambda one: (one.octave, len(one.prompt), one.prompt)):
        more = int(not shared or not held or each.prompt != held[-1].prompt)  # equal prompts are neighbours
        if held and (
            each.octave != held[-1].octave
            or not _fits(
                prompts=prompts + more,
                prompt_width=len(each.prompt),
                rows=len(held) + 1,
                width=max(longest, each.width),
                limit=token_limit,
            )
        ):
            yield _rows_of(held)
            held, prompts, longest, more = [], 0, 0, 1
        held.append(each)
        prompts += more
        longest = max(longest, each.width)
    if held:
        yield _rows_of(held)


def fit_one_pass(pairs: Sequence[Pair] | Pairs, token_limit: int, shared: bool = True) -> bool:
    """Whether all pairs fit into one pass of at most ``token_limit`` tokens, in the given order."""
    found = _sequences(pairs)
    return _fits(
        prompts=len({each.prompt for each in found}) if shared else len(found),
        prompt_width=max(len(each.prompt) for each in found),
        rows=len(found),
        width=max(each.width for each in found),
        limit=token_limit,
    )


@torch.no_grad()
def response_logprobs(
    scorer: Scorer, pairs: Sequence[Pair], temperature: float, token_limit: int, device: torch.device
) -> list[torch.Tensor]:
    """For each pair the log-probabilities [response tokens] of its response in nats, in float32."""
    known = Pairs.of(pairs)
    found = [torch.empty(0)] * len(known)
    for rows in pass_rows(known, token_limit, scorer.shares_prompts):
        some = known.select(rows)
        logprobs, _ = scorer(pack_responses(some, device), temperature)
        for row, part in zip(rows, logprobs.split(some.response_lengths.tolist()), strict=True):
            found[row] = part
    return found


def _sequences(pairs: Sequence[Pair] | Pairs) -> list[_Sequence]:
    known = Pairs.of(pairs)
    return [_Sequence(rows, known.rows[rows.start][0], len(known.behind(rows)) - 1) for rows in known.chains]


def _rows_of(sequences: Sequence[_Sequence]) -> NDArray[np.int64]:
    return np.array([row for each in sequences for row in each.rows])


def _fits(prompts: int, prompt_width: int, rows: int, width: int, limit: int) -> bool:
    """Whether one pass can hold this many prompts and sequences; ``width`` does not count last tokens."""
    # Responses of one token have no second pass, so no keys and values are fanned out.
    fanned_out = rows * (prompt_width + width) if width else 0
    return (
        prompts * prompt_width + rows * width <= limit
        and rows * (width + 1) <= limit
        and fanned_out <= FAN_OUT * limit
    )
