"""The section and a task of a small world of questions about films."""

from __future__ import annotations

from pathlib import Path

import pytest

from skillpress.core.trajectory import Task
from skillpress.environments.search.parameters import RETRIEVER_VARIABLE, SearchParameters
from skillpress.environments.section import SplitSizes
from tests.support.environments.films import write_world


@pytest.fixture(autouse=True)
def no_other_retriever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(RETRIEVER_VARIABLE, raising=False)


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder."""
    return write_world(tmp_path_factory.mktemp("search"))


@pytest.fixture(scope="session")
def parameters(world: Path) -> SearchParameters:
    return SearchParameters(
        name="search", max_steps=4, data=str(world), indexes=str(world / "indexes"), top_k=2, reachable=True
    )


@pytest.fixture(scope="session")
def tasks(parameters: SearchParameters) -> list[Task]:
    return list(parameters.make_tasks(SplitSizes(3, 1, 2), 0))
