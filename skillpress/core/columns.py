"""Tables whose columns have several levels, such as trajectories, their steps, and the steps' tokens.

A table is a frozen dataclass whose columns are annotated with their levels. A column is an array, a tuple, a
mapping of arrays, or anything else with ``select`` and ``joined``; it may be None until it is computed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, TypeVar, get_type_hints

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.int64]

Column = TypeVar("Column")
PerTrajectory = Annotated[Column, "trajectories"]
PerStep = Annotated[Column, "steps"]
PerToken = Annotated[Column, "tokens"]


def levels_of(table: type) -> dict[str, str]:
    """Field to level, for the fields of a table that are columns."""
    hints = get_type_hints(table, include_extras=True)
    return {name: hint.__metadata__[0] for name, hint in hints.items() if hasattr(hint, "__metadata__")}


def chosen(values: Any, rows: Indices) -> Any:
    """These rows of a column; None stays None."""
    if values is None:
        return None
    if isinstance(values, np.ndarray):
        return values[rows]
    if isinstance(values, tuple):
        return tuple(values[row] for row in rows)
    if isinstance(values, Mapping):
        return {name: each[rows] for name, each in values.items()}
    return values.select(rows)


def joined(columns: Sequence[Any]) -> Any:
    """The columns of several tables, one behind the other; None if all are None."""
    there = [each for each in columns if each is not None]
    if not there:
        return None
    if isinstance(there[0], np.ndarray):
        return np.concatenate(there)
    if isinstance(there[0], tuple):
        return tuple(item for each in there for item in each)
    return type(there[0]).joined(there)


def joined_numbers(columns: Sequence[Indices]) -> Indices:
    """Columns of numbers that count from 0, joined and shifted so that no two tables share a number."""
    counts = [int(each.max(initial=-1)) + 1 for each in columns]
    offsets = np.cumsum([0, *counts[:-1]])
    return np.concatenate([each + offset for each, offset in zip(columns, offsets, strict=True)])


def renumbered(numbers: Indices) -> Indices:
    """The numbers replaced by 0, 1, ... in the order in which each first occurs."""
    _, first, place = np.unique(numbers, return_index=True, return_inverse=True)
    found: Indices = np.argsort(np.argsort(first))[place]
    return found


def members(groups: Indices, sizes: Indices) -> Indices:
    """The positions of some groups' members, one group after another.

    Args:
        groups: numbers of groups, in any order.
        sizes: number of members of every group; members are stored group by group.
    """
    own = sizes[groups]
    first = (np.cumsum(sizes) - sizes)[groups]
    places: Indices = np.arange(own.sum()) + np.repeat(first - (np.cumsum(own) - own), own)
    return places


def by_token(values: NDArray[np.float64], tokens: Indices) -> NDArray[np.float64]:
    """[tokens] from values [steps], or from [steps, at least the longest response] with padding."""
    if values.ndim == 1:
        return np.repeat(values, tokens)
    found: NDArray[np.float64] = values[np.arange(values.shape[1]) < tokens[:, None]]
    return found
