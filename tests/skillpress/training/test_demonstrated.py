"""The samples of demonstrations: the same ones whether or not somebody was killed while they were made."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tiny import tiny_policy

from skillpress.agents import Prompter
from skillpress.interface import AgentState, Info
from skillpress.rollout.demonstrations import DemonstratedStep
from skillpress.storage import StorageError
from skillpress.training import demonstrated as module
from skillpress.training.demonstrated import Sample, demonstrated
from skillpress.trajectory import Task
from skillpress.unfinished import Unfinished

COUNT = 25
RESPONSES = ("up stop", "down stop", "stop")


class AsSeen:
    """The prompt is the observation."""

    parser = "plain"
    history = 0

    def prompt(self, state: AgentState) -> str:
        return state.observation

    def response(self, action: str, info: Info) -> str:
        return action


class KilledError(Exception):
    """Stands for the kill."""


class Demonstrator:
    """Demonstration ``n`` has ``n % 4`` steps; remembers which it was asked for."""

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
    unfinished = Unfinished(folder, "key")
    told = seen if seen is not None else []
    return demonstrated(demonstrator, COUNT, prompter, policy, unfinished, told.append)


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
    parts = Unfinished(tmp_path / "killed", "key").parts("demonstrations")
    kept = parts[-1][0] if parts else 0
    assert killed_at - 7 <= kept <= killed_at, "no more than a part is lost"
    again = Demonstrator()
    assert samples(tmp_path / "killed", again) == whole
    assert again.made == list(range(kept, COUNT))
    finished = Demonstrator()
    assert samples(tmp_path / "killed", finished) == whole and not finished.made


def test_a_damaged_part_is_named(tmp_path: Path) -> None:
    samples(tmp_path, Demonstrator())
    _, path = Unfinished(tmp_path, "key").parts("demonstrations")[1]
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(StorageError, match=rf"{path.name}: not a readable Parquet file"):
        samples(tmp_path, Demonstrator())
