"""Counts what torch does: operations, and the bytes that they read and write."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten

READS = ("_local_scalar_dense", "nonzero", "masked_select", "is_nonzero", "unique")
"""Operations that a GPU's host waits for: their result, or its shape, is a number that it needs."""


class Counted(TorchDispatchMode):
    """Counts within its block. Views are operations without bytes."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.operations = 0
        """Operations that compute or copy: no views."""
        self.bytes = 0
        self.waits: list[str] = []
        """Operations that a host would wait for, by name."""

    def __torch_dispatch__(
        self, function: Any, types: Any, arguments: tuple[Any, ...] = (), named: dict[str, Any] | None = None
    ) -> Any:
        result = function(*arguments, **(named or {}))
        name = str(function).split(".")[1]
        if any(wait in name for wait in READS) or _by_mask(name, arguments):
            self.waits.append(name)
        if not function.is_view and name not in ("detach", "empty", "_unsafe_view"):
            self.operations += 1
            tensors = [each for each in tree_flatten((arguments, named, result))[0] if _counts(each)]
            self.bytes += sum(tensor.nbytes for tensor in tensors)
        return result


def _counts(each: Any) -> bool:
    return isinstance(each, torch.Tensor)


def _by_mask(name: str, arguments: tuple[Any, ...]) -> bool:
    """Whether an operation selects by a Boolean index, for which torch looks for its places first."""
    if name not in ("index", "index_put_", "index_put"):
        return False
    return any(index is not None and index.dtype == torch.bool for index in arguments[1])
