"""Trees of common beginnings: each is there once, and a token's ancestors are its sequence."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from skillpress.core.chains import Pairs
from skillpress.models.policy.prefix_tree import PrefixTree

tokens = st.lists(st.integers(1, 3), min_size=1, max_size=6).map(tuple)
pairs = st.lists(st.tuples(tokens, tokens), min_size=1, max_size=9)


def ancestors(tree: PrefixTree, node: int) -> list[int]:
    """What a node sees by its rule, in order."""
    return [other for other in range(node + 1) if node < tree.ends[other]]


@settings(deadline=None, max_examples=150)
@given(pairs)
def test_what_a_predicting_node_sees_is_the_sequence_before_the_token(
    rows: list[tuple[tuple[int, ...], tuple[int, ...]]],
) -> None:
    tree = PrefixTree.of(Pairs.of(rows))
    place = 0
    for prompt, response in rows:
        for number in range(len(response)):
            path = ancestors(tree, int(tree.predicting[place]))
            assert tuple(tree.tokens[path]) == prompt + response[:number]
            assert tree.depth[path].tolist() == list(range(len(path)))
            place += 1
    assert place == len(tree.predicting)


@settings(deadline=None, max_examples=150)
@given(pairs)
def test_there_are_as_many_nodes_as_different_beginnings(
    rows: list[tuple[tuple[int, ...], tuple[int, ...]]],
) -> None:
    whole = [prompt + response[:-1] for prompt, response in rows]
    beginnings = {sequence[:end] for sequence in whole for end in range(1, len(sequence) + 1)}
    tree = PrefixTree.of(Pairs.of(rows))
    assert len(tree.tokens) == len(beginnings)
    assert len(tree.roots) == len({sequence[0] for sequence in whole})


def test_growing_contexts_and_their_branches_are_there_once() -> None:
    first = (1, 2, 3), (4, 5)
    longer = (1, 2, 3, 4, 5, 6), (7,)
    branch = (1, 2, 3, 4, 5, 8), (9, 9)
    tree = PrefixTree.of(Pairs.of([first, longer, branch]))
    assert tree.tokens.tolist() == [1, 2, 3, 4, 5, 6, 8, 9]
    assert tree.ends.tolist() == [8, 8, 8, 8, 8, 6, 8, 8]
    assert tree.predicting.tolist() == [2, 3, 5, 6, 7]


def test_sequences_with_little_in_common_begin_trees_of_their_own_if_asked() -> None:
    rows = Pairs.of([((1, 2, 3, 4), (5, 6)), ((1, 2, 3, 4), (7, 8)), ((1, 9, 9, 9), (9, 9))])
    assert PrefixTree.of(rows).roots.tolist() == [0]
    apart = PrefixTree.of(rows, least_shared=0.5)
    assert apart.tokens[apart.roots].tolist() == [1, 1]
    assert np.diff(apart.roots).tolist() == [6]
