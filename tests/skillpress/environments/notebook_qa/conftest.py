"""The section and a task of a small world of questions about films."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from skillpress.core.trajectory import Task
from skillpress.environments.notebook_qa.parameters import NotebookQaParameters
from skillpress.environments.sandboxed import SandboxedEnvironment
from tests.support.environments.films import questions, write_world


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder."""
    return write_world(tmp_path_factory.mktemp("qa"))


@pytest.fixture(scope="session")
def parameters(world: Path) -> NotebookQaParameters:
    return NotebookQaParameters(
        name="notebook_qa", max_steps=8, data=str(world), indexes=str(world / "indexes"), cell_seconds=20.0
    )


@pytest.fixture(scope="session")
def task() -> Task:
    row = questions().row(0, named=True)
    spec = {name: row[name] for name in ("question", "answers", "dataset", "supporting_titles")}
    return Task("hotpotqa/q0", "notebook_qa", 0, spec, "train", "hotpotqa/2 hops")


@pytest.fixture
def environment(parameters: NotebookQaParameters) -> Iterator[SandboxedEnvironment]:
    made = parameters.make()
    assert isinstance(made, SandboxedEnvironment)
    yield made
    made.close()
