"""Two ways to turn a text into a unit vector.

``ngrams`` needs no model: it counts the pieces of 3 to 5 characters of each word, hashed into
:data:`DIMENSIONS` counters. Texts are near if they share words or parts of words. A model folder gives the
mean of the model's last hidden states, on the CPU in float32, one text at a time, so that the vector does not
depend on what else is embedded.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Protocol
from zlib import crc32

import numpy as np

from skillpress.core.errors import ParamsError
from skillpress.rollouts.agents.store.database import Vector
from skillpress.rollouts.agents.store.parameters import NGRAMS, StoreParameters

DIMENSIONS = 512
SIZES = (3, 4, 5)
MOST_TOKENS = 512
"""A model reads at most this many tokens of a text."""


class Embedding(Protocol):
    """Makes the vector of a text."""

    def __call__(self, text: str) -> Vector: ...


@dataclass(frozen=True)
class HashedNgrams:
    """Counts of hashed pieces of words. Words are padded, so ``red`` and ``reddish`` differ at the end."""

    def __call__(self, text: str) -> Vector:
        counts = np.zeros(DIMENSIONS, np.float32)
        for word in text.lower().split():
            padded = f" {word} "
            for size in SIZES:
                for start in range(len(padded) - size + 1):
                    counts[crc32(padded[start : start + size].encode()) % DIMENSIONS] += 1
        return _unit(counts)


@dataclass(frozen=True)
class ModelFolder:
    """The mean of a model's last hidden states over the tokens of a text."""

    folder: str

    def __call__(self, text: str) -> Vector:
        import torch

        tokenizer, model = _loaded(self.folder)
        read = tokenizer(text, return_tensors="pt", truncation=True, max_length=MOST_TOKENS)
        if not read["input_ids"].numel():
            return np.zeros(model.config.hidden_size, np.float32)
        with torch.inference_mode():
            states = model(input_ids=read["input_ids"]).last_hidden_state
        return _unit(states[0].mean(0).numpy())


@cache
def _loaded(folder: str) -> tuple[Any, Any]:
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    model = AutoModel.from_pretrained(folder, local_files_only=True, dtype=torch.float32)
    return tokenizer, model.eval()


def _unit(values: Any) -> Vector:
    """The vector divided by its length; a zero vector is unchanged."""
    vector = np.asarray(values, np.float32)
    length = float(np.linalg.norm(vector))
    return vector / np.float32(length) if length else vector


def embedding_of(section: StoreParameters) -> Embedding:
    """The embedding that makes the vectors of a store.

    Raises:
        ParamsError: the folder of the model is missing.
    """
    if section.model is None:
        return HashedNgrams()
    if not Path(section.model).is_dir():
        raise ParamsError(
            f"policy.store.embedding: {section.model!r} is not an existing folder; use {NGRAMS!r}, or "
            "the folder of a model"
        )
    return ModelFolder(section.model)
