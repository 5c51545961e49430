"""The part of Triton that the draw's kernel uses, carried out by numpy, one program after another."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from types import ModuleType
from typing import Any

import numpy as np
import torch


class Block(np.ndarray[Any, Any]):
    """A tensor of a program."""

    def to(self, dtype: Any) -> Any:
        return np.asarray(self.astype(dtype)).view(Block)


def block(values: Any) -> Any:
    return np.asarray(values).view(Block)


class Pointer:
    """An array's address with an offset, or several."""

    def __init__(self, array: Any, offset: Any = 0) -> None:
        self.array, self.offset = array, offset

    def __add__(self, offset: Any) -> Pointer:
        return Pointer(self.array, self.offset + offset)


_place: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())
"""The running program's number and the number of programs, along each axis."""


def load(pointer: Pointer, mask: Any = None, other: Any = None) -> Any:
    if mask is None:
        return block(pointer.array[pointer.offset])
    found = np.full(mask.shape, other, pointer.array.dtype)
    found[mask] = pointer.array[pointer.offset[mask]]
    return block(found)


def store(pointer: Pointer, value: Any) -> None:
    pointer.array[pointer.offset] = value


class Compiled:
    """A kernel; ``kernel[grid](...)`` runs it."""

    def __init__(self, function: Callable[..., None]) -> None:
        self._function = function

    def __getitem__(self, grid: tuple[int, ...]) -> Callable[..., None]:
        def run(*arguments: Any, **constants: Any) -> None:
            global _place
            found = [
                Pointer(each.numpy().reshape(-1)) if isinstance(each, torch.Tensor) else each
                for each in arguments
            ]
            with np.errstate(over="ignore"):
                for number in product(*map(range, grid)):
                    _place = (number, grid)
                    self._function(*found, **constants)

        return run


def modules() -> dict[str, ModuleType]:
    """The modules ``triton`` and ``triton.language``."""
    language, triton = ModuleType("triton.language"), ModuleType("triton")
    for name, value in {
        "float64": np.float64, "int64": np.int64, "constexpr": Any, "load": load, "store": store,
        "program_id": lambda axis: block(_place[0][axis]), "num_programs": lambda axis: _place[1][axis],
        "full": lambda shape, value, dtype: block(np.full(shape, value, dtype)),
        "arange": lambda first, last: block(np.arange(first, last, dtype=np.int32)),
        "log": lambda x: block(np.log(x)), "where": lambda *these: block(np.where(*these)),
        "max": lambda x, axis: x.max(axis), "min": lambda x, axis: x.min(axis),
    }.items():  # fmt: skip
        setattr(language, name, value)
    triton.language = language  # type: ignore[attr-defined]
    triton.jit = lambda function, **options: Compiled(function)  # type: ignore[attr-defined]
    triton.TritonError = RuntimeError  # type: ignore[attr-defined]
    return {"triton": triton, "triton.language": language}
