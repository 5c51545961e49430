"""The agent's search: ``search`` over paragraphs, and ``read`` for all paragraphs under a title.

``backend.py`` is the contract of every search, with a cache for the answers of any. ``tantivy_search.py``
implements it on an index on disk (made by ``index.py``).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from skillpress.environments.notebook_qa.search.backend import CachedSearch, Hit, SearchBackend, SearchError

if TYPE_CHECKING:
    from skillpress.environments.notebook_qa.search.tantivy_search import TantivySearch

__all__ = ["CachedSearch", "Hit", "SearchBackend", "SearchError", "open_search"]


def open_search(paragraphs: str | Path, home: str | Path) -> TantivySearch:
    """BM25 over a corpus on disk.

    Args:
        paragraphs: Parquet file with ``id``, ``title`` and ``text``, or JSON lines (see ``index.py``).
        home: folder of indexes; the index of the corpus is made there the first time.

    Raises:
        SearchError: tantivy is not installed, or see ``index.index_of``.
        StorageError: there is no room for the index.
    """
    try:
        from skillpress.environments.notebook_qa.search.index import index_of
        from skillpress.environments.notebook_qa.search.tantivy_search import TantivySearch
    except ModuleNotFoundError as error:
        if error.name != "tantivy":
            raise
        raise SearchError(
            "search: the package tantivy is not installed here; pip install 'skillpress[qa]'"
        ) from None
    return TantivySearch(index_of(paragraphs, home))
