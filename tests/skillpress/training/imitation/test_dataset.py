"""The samples of demonstrations are the same if a process was killed while it made them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from skillpress.core.errors import StorageError
from skillpress.core.interface import AgentState, Info
from skillpress.core.resume import ResumeStore
from skillpress.core.trajectory import Task
from skillpress.rollouts.agents import Prompter
from skillpress.training.imitation import dataset as module
from skillpress.training.imitation.dataset import demonstrated
from skillpress.training.imitation.demonstrations import DemonstratedStep
from skillpress.training.imitation.samples import Sample
from tests.support.models.tiny import tiny_policy

COUNT = 25
RESPONSES = ("up stop", "down stop", "stop")


class AsSeen:
    """A rendering whose prompt is the observation."""

    parser = "plain"
    history = 0

    def prompt(self, state: AgentState) -> str:
        return state.observation

    def response(self, action: str, info: Info) -> str:
        return action


class KilledError(Exception):
    """Raised in place of a kill."""


class Demonstrator:
    """Demonstration ``n`` has ``n % 4`` steps; records the requested numbers."""

    def __init__(self, killed_at: int | None = None) -> None:
        self.made: list[int] = []
        self._killed_at = killed_at

    def __call__(self, first: int) -> Iterator[list[DemonstratedStep]]:
        for number in range(first, COUNT):
            if number == self._killed_at:
                raise KilledError
            self.made.append(number)
            yield [
                DemonstratedStep(
                    AgentState(Task("t", "w", 0, {}), f"{number % 10} {step}", Info()), RESPONSES[number % 3]
                )
                for step in range(number % 4)
            ]


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "STEPS_AT_ONCE", 10)


def samples(folder: Path, demonstrator: Demonstrator, seen: list[int] | None = None) -> list[Sample]:
    policy = tiny_policy()
    prompter = Prompter(AsSeen(), policy.encode, 8)
    store = ResumeStore(folder, "key")
    told = seen if seen is not None else []
    return [*demonstrated(demonstrator, COUNT, prompter, policy, store, told.append)]


def test_one_sample_per_step_and_progress_after_every_demonstration(tmp_path: Path) -> None:
    seen: list[int] = []
    made = samples(tmp_path, Demonstrator(), seen)
    assert len(made) == sum(number % 4 for number in range(COUNT))
    assert seen == list(range(COUNT + 1))


@pytest.mark.parametrize("killed_at", [0, 3, 11, 24])
def test_after_a_kill_only_what_no_part_holds_is_demonstrated_again(tmp_path: Path, killed_at: int) -> None:
    whole = samples(tmp_path / "whole", Demonstrator())
    with pytest.raises(KilledError):
        samples(tmp_path / "killed", Demonstrator(killed_at))
    parts = ResumeStore(tmp_path / "killed", "key").spans("demonstrations")
    kept = parts[-1][0] if parts else 0
    assert killed_at - 7 <= kept <= killed_at, "no more than a part is lost"
    again = Demonstrator()
    assert samples(tmp_path / "killed", again) == whole
    assert again.made == list(range(kept, COUNT))
    finished = Demonstrator()
    assert samples(tmp_path / "killed", finished) == whole and not finished.made


@pytest.mark.parametrize("lost", [0, 1, 2])
def test_a_part_that_is_gone_is_made_again_and_not_skipped(tmp_path: Path, lost: int) -> None:
    """A part may be missing after an interrupted clean-up, or on a disk that lost a file."""
    whole = samples(tmp_path, Demonstrator())
    parts = ResumeStore(tmp_path, "key").spans("demonstrations")
    assert len(parts) > 3
    parts[lost][1].unlink()
    again = Demonstrator()
    assert samples(tmp_path, again) == whole
    done_before = parts[lost - 1][0] if lost else 0
    assert again.made[0] == done_before


def test_a_damaged_part_is_named(tmp_path: Path) -> None:
    samples(tmp_path, Demonstrator())
    _, path = ResumeStore(tmp_path, "key").spans("demonstrations")[1]
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(StorageError, match=rf"{path.name}: not a readable Parquet file"):
        samples(tmp_path, Demonstrator())
