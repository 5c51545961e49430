"""Which responses share a forward pass, so that no pass holds more tokens than memory is promised for.

Whatever scores many responses cuts them into such passes: the updates of training and of imitation, the
reference policy, comparisons of two policies.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from skillpress.core.trajectory import TokenIds
from skillpress.models.policy.chains import Pair, Pairs
from skillpress.models.policy.scorers import Scorer
from skillpress.models.policy.scoring import pack_responses

FAN_OUT = 4
"""Tokens of keys and values that one pass may fan out to its responses, per token of its limit."""
PASS_TOKENS = 16_384
"""Tokens in a pass at most, where no parameter sets a limit and nothing is kept for a way back."""


@dataclass(frozen=True)
class _Sequence:
    """Neighbouring pairs whose prompts extend one another, or a pair by itself."""

    rows: range
    prompt: TokenIds
    """The first pair's prompt."""
    width: int
    """Tokens that follow the prompt, without the last."""

    @property
    def octave(self) -> int:
        """A class of widths for sequences of several pairs: those of one octave differ less than twofold."""
        return self.width.bit_length() if len(self.rows) > 1 else 0


def pass_rows(
    pairs: Sequence[Pair] | Pairs, token_limit: int, shared: bool = True
) -> Iterator[NDArray[np.int64]]:
    """Which pairs share a forward pass of at most ``token_limit`` tokens (or of one that is longer).

    Neighbours that extend one another are one sequence (``chains.py``) and stay together. Sequences are
    sorted by the length of their prompts and by the prompts, so that equal prompts meet in one pass and
    little is padded; sequences of several pairs meet those of their octave alone. A shared prompt costs its
    tokens once, but its keys and values and the logits of all its responses take memory for each: both are
    bounded too. Where prompts are not ``shared``, each sequence costs its prompt.
    """
    held: list[_Sequence] = []
    prompts = longest = 0
    # Those of one octave beside each other, then those of one length and one prompt; else in order.
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
    """Whether all pairs fit into one pass of at most ``token_limit`` tokens, in the order given."""
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
    """Per pair the log-probabilities [response tokens] in nats of its response, in float32."""
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
    """Whether one pass may hold so many prompts and sequences; ``width`` leaves out the last tokens."""
    fanned_out = rows * (prompt_width + width) if width else 0
    return (
        prompts * prompt_width + rows * width <= limit
        and rows * (width + 1) <= limit
        and fanned_out <= FAN_OUT * limit
    )
