"""Sequences as trees of their common beginnings, so that no token is computed twice.

All sequences of a pass (a prompt with its response) are sorted. Then the longest beginning that one shares
with any earlier one is shared with its neighbour. Only the tokens behind that beginning are new nodes. So a
group's prompt occurs once, and so do growing contexts, their branches and common beginnings of prompts.

Nodes are numbered as they appear, and everything below a node follows it directly. So one number per node,
the end of its subtree, decides what attention needs: a token sees itself and its ancestors,

    i sees j   if and only if   j <= i < end(j)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from skillpress.core.chains import Pairs
from skillpress.core.trajectory import TokenIds

Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class PrefixTree:
    """One tree or several, node by node; every node is a token."""

    tokens: Numbers
    """[nodes] token ids."""
    depth: Numbers
    """[nodes] position of each token in its sequence, from 0."""
    ends: Numbers
    """[nodes] 1 + the last node below each; 1 + the node itself for a leaf."""
    roots: Numbers
    """[trees] the first node of each tree."""
    predicting: Numbers
    """[response tokens] the node that predicts each, response by response."""

    @classmethod
    def of(cls, pairs: Pairs, least_shared: float = 0.0) -> PrefixTree:
        """The trees of prompts and responses, without the last token of each response.

        Args:
            least_shared: a sequence joins the tree of the one before it if they share more than this part of
                its first prompt; otherwise it begins a tree of its own. Equal prompts always share.
        """
        # The last pair of a chain contains the others.
        whole = [_without_last(pairs.rows[chain[-1]]) for chain in pairs.chains]
        building = _Building(sum(map(len, whole)), max(map(len, whole)))
        first = [np.zeros(0, np.int64)] * len(pairs)
        for number in sorted(range(len(whole)), key=whole.__getitem__):
            chain = pairs.chains[number]
            path = building.add(whole[number], least_shared * len(pairs.rows[chain.start][0]))
            for row in chain:
                prompt, response = pairs.rows[row]
                first[row] = path[len(prompt) - 1 : len(prompt) + len(response) - 1].copy()
        return building.finished(np.concatenate(first))


def _without_last(pair: tuple[TokenIds, TokenIds]) -> TokenIds:
    prompt, response = pair
    return prompt + response[:-1]


class _Building:
    """Trees that grow by one sequence after another, in sorted order."""

    def __init__(self, most: int, longest: int) -> None:
        self._tokens, self._depth, self._ends = (np.zeros(most, np.int64) for _ in range(3))
        self._path = np.zeros(longest, np.int64)
        self._last = np.zeros(0, np.int64)
        self._count = 0
        self._roots: list[int] = []

    def add(self, sequence: TokenIds, least: float) -> Numbers:
        """[tokens] the nodes of a sequence; only valid until the next one is added."""
        tokens = np.array(sequence, np.int64)
        shared = _common(self._last, tokens)
        if shared <= least:
            shared = 0
            self._roots.append(self._count)
        self._close(shared)
        new = slice(self._count, self._count + len(tokens) - shared)
        self._tokens[new] = tokens[shared:]
        self._depth[new] = np.arange(shared, len(tokens))
        self._path[shared : len(tokens)] = np.arange(new.start, new.stop)
        self._count, self._last = new.stop, tokens
        return self._path[: len(tokens)]

    def finished(self, predicting: Numbers) -> PrefixTree:
        """The trees."""
        self._close(0)
        tokens, depth, ends = (each[: self._count] for each in (self._tokens, self._depth, self._ends))
        return PrefixTree(
            tokens=tokens, depth=depth, ends=ends, roots=np.array(self._roots), predicting=predicting
        )

    def _close(self, shared: int) -> None:
        """End the subtrees that the next sequence does not belong to."""
        self._ends[self._path[shared : len(self._last)]] = self._count


def _common(first: Numbers, second: Numbers) -> int:
    """Number of tokens that both sequences begin with."""
    length = min(len(first), len(second))
    differs = first[:length] != second[:length]
    return int(differs.argmax()) if differs.any() else length
