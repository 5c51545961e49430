"""Passages by the vectors of a sentence-embedding model, compared exactly and kept in memory.

A vector is the mean of the model's last hidden states, of length 1 (``rollouts/agents/store/embeddings.py``).
Passages are embedded once, one at a time on the CPU, and kept in a file; this suits up to some hundred
thousand passages.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np

from skillpress.core.errors import UserError
from skillpress.core.storage import directory_made_once
from skillpress.environments.notebook_qa.search.backend import Passage
from skillpress.environments.notebook_qa.search.index import read_corpus
from skillpress.environments.notebook_qa.search.texts import LONGEST_QUERY, check_top_k
from skillpress.environments.text.words import encodable
from skillpress.rollouts.agents.store.embeddings import ModelFolder


class DenseSearch:
    """Finds the passages whose vectors are nearest to the query's; safe to use from many threads."""

    def __init__(self, corpus: Path, encoder: Path, home: Path, prefixes: tuple[str, str] = ("", "")) -> None:
        """Args:
            home: folder in which the vectors are kept.
            prefixes: what the model expects before a query, and before a passage (E5: ``query: `` and
                ``passage: ``).

        Raises:
            UserError: the folder holds no model, or see ``index.read_corpus``.
        """
        if not (encoder / "config.json").is_file():
            raise UserError(f"{encoder}: no model found, because it has no config.json")
        self._embed, self._prefix = ModelFolder(str(encoder)), prefixes[0]
        rows = read_corpus(corpus)
        self._rows = list(rows.select("id", "title", "text").iter_rows())
        folder = home / f"vectors-{_digest(corpus, encoder, prefixes[1])}"
        if not folder.is_dir():
            texts = (encodable(f"{prefixes[1]}{title}\n{text}") for _, title, text in self._rows)
            with directory_made_once(folder) as temporary:
                np.save(temporary / "vectors.npy", np.stack([self._embed(text) for text in texts]))
        self._vectors = np.load(folder / "vectors.npy", mmap_mode="r")

    def passages(self, query: str, top_k: int) -> tuple[Passage, ...]:
        """The ``top_k`` nearest passages, the nearest first; of equals, the first in the corpus."""
        check_top_k(top_k)
        scores = self._vectors @ self._embed(encodable(self._prefix + query[:LONGEST_QUERY]))
        best = np.argsort(-scores, kind="stable")[:top_k]
        return tuple(
            Passage(
                title=self._rows[row][1],
                text=self._rows[row][2],
                score=float(scores[row]),
                id=self._rows[row][0],
            )
            for row in best.tolist()
        )


def _digest(corpus: Path, encoder: Path, prefix: str) -> str:
    """16 hex digits of everything that determines the vectors."""
    digest = hashlib.blake2b(prefix.encode(), digest_size=8)
    for file in (corpus, *sorted(path for path in encoder.iterdir() if path.is_file())):
        with file.open("rb") as opened:
            digest.update(hashlib.file_digest(opened, "blake2b").digest())
    return digest.hexdigest()
