"""Keys and values of all layers in one tensor, so that rows are moved, taken and joined by one operation.

Layer by layer, 64 rows whose prompts grow take thousands of small operations, and a GPU's host is busy with
launching them. The keys of layer 0, its values, the keys of layer 1 and so on are *pieces*. If all have the
same heads, size and type, they are one stack; otherwise each is a stack of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

Stacks = tuple[torch.Tensor, ...]
"""[pieces, rows, heads, columns, size] each; of a single sequence [pieces, heads, tokens, size]."""


def like(pieces: Sequence[torch.Tensor], rows: int, columns: int) -> Stacks:
    """Memory without content for pieces like these, which are [any, heads, any, size]."""
    alike = len({(piece.shape[1], piece.shape[3], piece.dtype) for piece in pieces}) == 1
    counts = [(len(pieces), pieces[0])] if alike else [(1, piece) for piece in pieces]
    return tuple(
        piece.new_empty(count, rows, piece.shape[1], columns, piece.shape[3]) for count, piece in counts
    )


def pieces_of(stacks: Stacks) -> list[torch.Tensor]:
    """The pieces as views, in order."""
    return [piece for stack in stacks for piece in stack.unbind(0)]


def row_of(stacks: Stacks, row: int, columns: NDArray[np.int64]) -> Stacks:
    """A copy of these columns (ascending) of a row."""
    first, count = int(columns[0]), len(columns)
    if int(columns[-1]) - first + 1 == count:
        # A view would keep the whole batch in memory, and another row may move into its place.
        return tuple(stack[:, row, :, first : first + count].clone() for stack in stacks)
    index = torch.from_numpy(columns).to(stacks[0].device)
    return tuple(stack[:, row].index_select(2, index) for stack in stacks)


def move(stacks: Stacks, order: NDArray[np.int64], columns: int) -> None:
    """Put row ``order[i]`` in place i, in the first columns; rows that stay are not touched."""
    moved = np.flatnonzero(order != np.arange(len(order)))
    if len(moved):
        to, origin = torch.from_numpy(np.stack([moved, order[moved]])).to(stacks[0].device)
        for stack in stacks:
            stack[:, to, :, :columns] = stack[:, origin, :, :columns]


def joined(sequences: Sequence[Stacks]) -> tuple[Stacks, NDArray[np.bool_]]:
    """Stacks in which each row is one of the sequences, padded on the left, and [rows, columns], True where
    there is no padding. Padding holds some token's numbers: finite, as masked places have to be."""
    lengths = np.array([stacks[0].shape[2] for stacks in sequences])
    columns = int(lengths.max())
    places = np.arange(columns) - (columns - lengths)[:, None]
    begins = np.cumsum(lengths) - lengths
    index = torch.from_numpy(np.where(places >= 0, begins[:, None] + places, 0).ravel())
    found = []
    for same in zip(*sequences, strict=True):
        chosen = torch.cat(same, dim=2).index_select(2, index.to(same[0].device))
        found.append(chosen.unflatten(2, (len(lengths), columns)).transpose(1, 2))
    return tuple(found), places >= 0
