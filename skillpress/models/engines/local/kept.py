"""Keys and values of sequences that a later prompt may go on from, in a bounded amount of memory.

Where an agent's prompts grow, a step's prompt is that of the step before, the response to it, and something
new. What was computed for a prompt and its response is kept when the response ends, and found again by the
longest kept sequence that a prompt begins with; nobody has to say which episode it belongs to. Its owner has
then no further use for it: the longer sequence takes its place.

When memory is short, what was not asked for longest is forgotten, and what is asked for in this round
stays: episodes take turns, and to forget the one whose turn comes next would in the end find nothing.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from skillpress.core.trajectory import TokenIds

Layers = tuple[tuple[torch.Tensor, torch.Tensor], ...]
"""Per layer keys and values, each [heads, tokens, size]."""


@dataclass(frozen=True, eq=False)
class KeptSequence:
    """What a model has computed for a sequence."""

    tokens: TokenIds
    layers: Layers

    @property
    def size(self) -> int:
        """Bytes."""
        return sum(keys.nbytes + values.nbytes for keys, values in self.layers)


class KeptSequences:
    """Sequences by the prompts that begin with them."""

    def __init__(self, limit: int) -> None:
        """``limit``: bytes at most."""
        self._limit = limit
        self._round = 0
        self.clear()

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def size(self) -> int:
        """Bytes of all sequences."""
        return self._size

    def clear(self) -> None:
        """Forget everything, as new weights demand."""
        self._kept: OrderedDict[tuple[int, int], KeptSequence] = OrderedDict()
        """(tokens, hash of them) to the sequence, the one not asked for longest first."""
        self._asked: dict[tuple[int, int], int] = {}
        """The round in which each was put in or asked for last."""
        self._lengths: Counter[int] = Counter()
        self._size = 0

    def begin_round(self) -> None:
        """From here on: what is put in or asked for stays until the next round, or until it is dropped."""
        self._round += 1

    def find(self, prompt: TokenIds) -> KeptSequence | None:
        """The longest sequence that the prompt begins with and goes beyond; None where there is none."""
        hashes = prefix_hashes(prompt)
        for length in sorted(self._lengths, reverse=True):
            key = (length, int(hashes[length - 1])) if length < len(prompt) else None
            found = self._kept.get(key) if key else None
            if key and found and found.tokens == prompt[:length]:
                self._kept.move_to_end(key)
                self._asked[key] = self._round
                return found
        return None

    def make_room(self, size: int) -> bool:
        """Whether so many bytes more fit, once as many of older rounds are forgotten as it takes."""
        while self._size + size > self._limit and self._kept:
            oldest = next(iter(self._kept))
            if self._asked[oldest] == self._round:
                return False
            self._forget(oldest)
        return self._size + size <= self._limit

    def put(self, sequence: KeptSequence) -> None:
        """Keep a sequence, if it fits and is not there already."""
        key = _key(sequence.tokens)
        if key in self._kept or not self.make_room(sequence.size):
            return
        self._kept[key] = sequence
        self._asked[key] = self._round
        self._lengths[len(sequence.tokens)] += 1
        self._size += sequence.size

    def drop(self, sequence: KeptSequence) -> None:
        """Forget a sequence that a longer one takes the place of."""
        key = _key(sequence.tokens)
        if self._kept.get(key) is sequence:
            self._forget(key)

    def _forget(self, key: tuple[int, int]) -> None:
        self._size -= self._kept.pop(key).size
        del self._asked[key]
        self._lengths[key[0]] -= 1
        if not self._lengths[key[0]]:
            del self._lengths[key[0]]


def prefix_hashes(tokens: TokenIds) -> NDArray[np.uint64]:
    """[tokens] for every i a hash of the first i + 1 tokens: sums of products with a number of the place."""
    with np.errstate(over="ignore"):
        places = np.arange(1, len(tokens) + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        places = (places ^ (places >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        places ^= places >> np.uint64(27)
        hashes: NDArray[np.uint64] = np.cumsum((np.array(tokens, np.uint64) + np.uint64(1)) * places)
    return hashes


def _key(tokens: TokenIds) -> tuple[int, int]:
    return len(tokens), int(prefix_hashes(tokens)[-1])
