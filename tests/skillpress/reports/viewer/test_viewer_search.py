"""Text search compared with ``in``, and its answers before it is complete."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from skillpress.core.errors import StorageError
from skillpress.core.rollout_files import write_rollouts
from skillpress.core.trajectory import Trajectory
from skillpress.reports.viewer import search
from skillpress.reports.viewer.index import IndexedFile, open_rollouts
from skillpress.reports.viewer.search import TextSearch
from tests.support.reports.viewer_samples import HOSTILE, hostile, ordinary

EPISODES = [*ordinary(), *hostile()]


@pytest.fixture(scope="module")
def files(samples: Path) -> list[IndexedFile]:
    return [open_rollouts(samples / f"{name}.parquet") for name in ("ordinary", "hostile")]


def stands_in(text: str, episode: Trajectory) -> bool:
    steps = ((step.thought, step.action, step.observation) for step in episode.decisions)
    return any(text in field.lower() for field in (episode.first_observation, *(f for s in steps for f in s)))


def finished(found: TextSearch) -> Iterator[float]:
    """Continues until it is complete; yields the progress."""
    while not found.complete:
        found.go_on()
        yield found.progress


@pytest.mark.parametrize("rows", [5, 10_000])
@pytest.mark.parametrize(
    "text",
    ["op(+, 4, 6)", "helps towards 41", "target 20,", "too small", "nowhere", "solved.", "[", "\\", "a" * 99],
)
def test_a_search_finds_what_stands_somewhere(
    text: str, rows: int, files: list[IndexedFile], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "STRETCH", rows)
    monkeypatch.setattr(search, "MOMENT", 0.0)
    found = TextSearch(text, files)
    steps = list(finished(found))
    assert found.go_on().tolist() == [stands_in(text, episode) for episode in EPISODES]
    assert steps == sorted(steps) and steps[-1] == 1.0


@pytest.mark.parametrize("text", [text[:1000].lower() for text in HOSTILE], ids=range(len(HOSTILE)))
def test_no_text_has_a_meaning_of_its_own(text: str, files: list[IndexedFile]) -> None:
    found = TextSearch(text, files)
    list(finished(found))
    assert found.go_on().tolist() == [stands_in(text, episode) for episode in EPISODES]


def test_a_search_of_nothing_is_complete_at_once(tmp_path: Path) -> None:
    write_rollouts(tmp_path / "none.parquet", [])
    found = TextSearch("x", [open_rollouts(tmp_path / "none.parquet")])
    assert found.complete and found.progress == 1.0 and not len(found.go_on())


def test_a_file_that_was_replaced_is_not_searched(tmp_path: Path) -> None:
    write_rollouts(tmp_path / "some.parquet", EPISODES[:3])
    found = TextSearch("x", [open_rollouts(tmp_path / "some.parquet")])
    write_rollouts(tmp_path / "some.parquet", EPISODES[:2])
    with pytest.raises(StorageError, match="has changed since it was opened"):
        found.go_on()
