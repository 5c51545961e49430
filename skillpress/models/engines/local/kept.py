"""Keys and values of sequences that a later prompt may extend, in a bounded amount of memory.

If an agent's prompts grow, a step's prompt consists of the previous step's prompt, the response to it, and
new tokens. The keys and values of a prompt and its response are kept when the response ends. A later prompt
finds them as the longest kept sequence that it begins with, so no caller has to name its episode. The longer
sequence then replaces the kept one, which is not needed any more.

When memory is short, the sequence that was not requested for the longest time is forgotten. Sequences
requested in the current round stay: episodes take turns, so forgetting the one whose turn comes next would in
the end leave nothing to find.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from skillpress.core.trajectory import TokenIds

Layers = tuple[torch.Tensor, ...]
"""Keys and values of a sequence, as stacks of [pieces, heads, tokens, size] (``stacks.py``)."""


@dataclass(frozen=True, eq=False)
class KeptSequence:
    """Keys and values that a model has computed for a sequence."""

    tokens: TokenIds
    layers: Layers

    @property
    def size(self) -> int:
        """Size in bytes."""
        return sum(stack.nbytes for stack in self.layers)


class KeptSequences:
    """The kept sequences, found by the prompts that begin with them."""

    def __init__(self, limit: int) -> None:
        """``limit``: maximum number of bytes."""
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
        """Forget everything; required after an update of the weights."""
        self._kept: OrderedDict[tuple[int, int], KeptSequence] = OrderedDict()
        """Maps (number of tokens, their hash) to the sequence, least recently requested first."""
        self._asked: dict[tuple[int, int], int] = {}
        """The round in which each sequence was last added or requested."""
        self._lengths: Counter[int] = Counter()
        self._size = 0

    def begin_round(self) -> None:
        """Begin a round, in which sequences that are added or requested stay unless they are dropped."""
        self._round += 1

    def find(self, prompt: TokenIds) -> KeptSequence | None:
        """The longest kept sequence that is a proper prefix of the prompt; None if there is none."""
        hashes = prefix_hashes(prompt)
        for length in sorted(self._lengths, reverse=True):
            # A whole prompt does not count: no token would be left to compute logits from.
            key = (length, int(hashes[length - 1])) if length < len(prompt) else None
            found = self._kept.get(key) if key else None
            # Equal hashes do not prove equal tokens.
            if key and found and found.tokens == prompt[:length]:
                self._kept.move_to_end(key)
                self._asked[key] = self._round
                return found
        return None

    def make_room(self, size: int) -> bool:
        """Forget sequences of earlier rounds as needed; return whether ``size`` more bytes then fit."""
        while self._size + size > self._limit and self._kept:
            oldest = next(iter(self._kept))
            if self._asked[oldest] == self._round:
                return False
            self._forget(oldest)
        return self._size + size <= self._limit

    def put(self, sequence: KeptSequence) -> None:
        """Keep a sequence, if it fits and is not kept already."""
        key = _key(sequence.tokens)
        if key in self._kept or not self.make_room(sequence.size):
            return
        self._kept[key] = sequence
        self._asked[key] = self._round
        self._lengths[len(sequence.tokens)] += 1
        self._size += sequence.size

    def drop(self, sequence: KeptSequence) -> None:
        """Forget a sequence that a longer one replaces."""
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
    """[tokens], a hash of each prefix: the sum of products of each token with a number of its place."""
    # Products wrap around, as the hash wants.
    with np.errstate(over="ignore"):
        places = np.arange(1, len(tokens) + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        places = (places ^ (places >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        places ^= places >> np.uint64(27)
        # + 1, because a token 0 would otherwise add nothing at any place.
        hashes: NDArray[np.uint64] = np.cumsum((np.array(tokens, np.uint64) + np.uint64(1)) * places)
    return hashes


def _key(tokens: TokenIds) -> tuple[int, int]:
    return len(tokens), int(prefix_hashes(tokens)[-1])
