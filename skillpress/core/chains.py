"""Chains: steps whose prompts extend one another, so that they are one sequence.

A step's prompt *extends* an earlier step if it begins with that step's prompt and response, token by token.
Such steps are a chain. Its last prompt and response hold all its tokens. Earlier responses are spans of this
sequence, and each is predicted from exactly the tokens that it was sampled from. Steps in between may be
missing: their tokens are still part of the later prompts.

The steps of a chain must be neighbours. Those of an agent that owns its loop often are not, since sub-agents
take turns. So :func:`in_chains` gives an order of an episode's steps in which each follows the one that it
extends. Where several steps extend the same one, the steps are a tree: the first of them continues the chain,
and each other begins a chain of its own.

Code that uses the same steps several times, in parts or in another order, finds their chains once and keeps
:class:`Pairs`. A selection from it compares only neighbours that were not neighbours before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import overload

import numpy as np
from numpy.typing import NDArray

from skillpress.core.beginnings import Beginnings
from skillpress.core.trajectory import TokenIds

Pair = tuple[TokenIds, TokenIds]
"""A prompt and its response."""


def extends(after: TokenIds, before: Pair) -> bool:
    """Whether a prompt begins with an earlier one and its response."""
    prompt, response = before
    length = len(prompt) + len(response)
    return len(after) >= length and after[len(prompt) : length] == response and after[: len(prompt)] == prompt


@dataclass(frozen=True)
class Pairs:
    """Pairs in order, and whether each extends the previous one."""

    rows: tuple[Pair, ...]
    goes_on: NDArray[np.bool_]
    """[pairs] whether each extends the previous one; False for the first."""

    @classmethod
    def of(cls, pairs: Sequence[Pair] | Pairs) -> Pairs:
        """The pairs, each compared with the previous one; the same object if this was already done."""
        if isinstance(pairs, Pairs):
            return pairs
        rows = tuple(pairs)
        found = [row > 0 and extends(rows[row][0], rows[row - 1]) for row in range(len(rows))]
        return cls(rows, np.array(found, np.bool_))

    @classmethod
    def joined(cls, parts: Sequence[Pairs]) -> Pairs:
        """All pairs of the parts, one part after another."""
        found = np.concatenate([np.zeros(0, np.bool_), *(part.goes_on for part in parts)])
        rows = tuple(pair for part in parts for pair in part.rows)
        for first in np.cumsum([len(part.rows) for part in parts[:-1]]):
            if 0 < first < len(rows):
                found[first] = extends(rows[first][0], rows[first - 1])
        return cls(rows, found)

    def __len__(self) -> int:
        return len(self.rows)

    def select(self, wanted: NDArray[np.int64]) -> Pairs:
        """The pairs in these rows; within a chain each extends all earlier ones, so none is compared."""
        return selected(
            [self.rows[row] for row in wanted], np.cumsum(~self.goes_on, dtype=np.int64)[wanted], wanted
        )

    @cached_property
    def chains(self) -> list[range]:
        """Rows of neighbours that extend one another. A pair that extends no other begins a chain."""
        return [*Chains.of(self.goes_on)]

    @cached_property
    def response_lengths(self) -> NDArray[np.int64]:
        """[pairs] number of tokens of each response."""
        return np.array([len(response) for _, response in self.rows], np.int64)

    def behind(self, chain: range) -> TokenIds:
        """The tokens after a chain's first prompt: its responses and the texts between them."""
        prompt, response = self.rows[chain[-1]]
        return prompt[len(self.rows[chain[0]][0]) :] + response


def selected(rows: Sequence[Pair], chain: NDArray[np.int64], place: NDArray[np.int64]) -> Pairs:
    """Some pairs of many. Within a chain each extends all earlier ones, so none is compared.

    Args:
        chain: [pairs] number of each pair's chain among the many.
        place: [pairs] place of each pair among the many.
    """
    found = np.zeros(len(rows), np.bool_)
    found[1:] = (chain[1:] == chain[:-1]) & (place[1:] > place[:-1])
    for row in np.flatnonzero(~found[1:]) + 1:
        found[row] = extends(rows[row][0], rows[row - 1])
    return Pairs(tuple(rows), found)


@dataclass(frozen=True)
class Chains(Sequence[range]):
    """The rows of chains; only the edges are in memory."""

    edges: NDArray[np.int64]
    """[chains + 1] first row of each chain, and the number of rows."""

    @classmethod
    def of(cls, goes_on: NDArray[np.bool_]) -> Chains:
        """The chains of rows, by whether each extends the previous one."""
        return cls(np.append(np.flatnonzero(~goes_on), len(goes_on)))

    def __len__(self) -> int:
        return len(self.edges) - 1

    @overload
    def __getitem__(self, number: int) -> range: ...
    @overload
    def __getitem__(self, number: slice) -> list[range]: ...
    def __getitem__(self, number: int | slice) -> range | list[range]:
        if isinstance(number, slice):
            return [self[each] for each in range(*number.indices(len(self)))]
        if not 0 <= number < len(self):
            raise IndexError(f"no chain {number}: there are {len(self)}")
        return range(int(self.edges[number]), int(self.edges[number + 1]))


def in_chains(pairs: Pairs, episode: NDArray[np.int64]) -> NDArray[np.int64]:
    """The rows of pairs in an order in which chains are neighbours.

    Episodes keep their places, and so do the chains of an episode, by their first pairs. An episode keeps its
    order if no pair extends another pair than its neighbour.

    Args:
        episode: [pairs] the number of each pair's episode; the pairs of an episode are neighbours, in the
            order of time.
    """
    order = np.arange(len(pairs))
    edges = [*np.flatnonzero(np.diff(episode, prepend=-1)), len(pairs)]
    for first, last in pairwise(edges):
        if not pairs.goes_on[first + 1 : last].all():
            order[first:last] = first + _depth_first(pairs.rows[first:last], pairs.goes_on[first:last])
    return order


def _depth_first(rows: Sequence[Pair], goes_on: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The rows of one episode, chain by chain. A row follows its neighbour if it extends it; otherwise the
    longest earlier row that it extends and that no other row follows yet."""
    known = Beginnings.of([prompt + response for prompt, response in rows], [prompt for prompt, _ in rows])
    following: dict[int, int] = {}
    heads = [0]
    for row in range(1, len(rows)):
        earlier = (other for other in known[row] if other < row and other not in following)
        before = row - 1 if goes_on[row] else next(earlier, None)
        if before is None:
            heads.append(row)
        else:
            following[before] = row
    order = []
    for head in heads:
        place: int | None = head
        while place is not None:
            order.append(place)
            place = following.get(place)
    return np.array(order)
