"""The examples of docs/gymnasium.md, run unchanged from the page."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import gymnasium
import pytest
import yaml
from gymnasium.utils.env_checker import check_env

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "gymnasium.md"
BLOCKS = re.findall(r"^```(?:python|yaml)\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)


def the_block(start: str) -> str:
    """The only example that begins like this."""
    (found,) = (block for block in BLOCKS if block.startswith(start))
    return found


def run(block: str) -> None:
    exec(compile(block, str(PAGE), "exec"), {"__name__": "example"})


def test_ours_are_played_through_gymnasium(capsys: pytest.CaptureFixture[str]) -> None:
    run(next(block for block in BLOCKS if "skillpress/Countdown-v0" in block))
    drawn, given = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"[0-9]+=[0-9,]+ (won|stuck|out of steps) -?[0-9.]+", drawn)
    assert given == "10.0"


def test_wordle_of_words_is_played_through_gymnasium(capsys: pytest.CaptureFixture[str]) -> None:
    run(next(block for block in BLOCKS if "WordleOfWords-v0" in block))
    assert "You guessed the word correctly!" in capsys.readouterr().out


@pytest.fixture
def doors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The game's module in a place from which it can be imported, here and in worker processes."""
    (tmp_path / "doors.py").write_text(the_block("# doors.py"))
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    sys.modules.pop("doors", None)
    gymnasium.registry.pop("Doors-v0", None)


def test_theirs_is_imitated_and_trained_on(doors: Path) -> None:
    from skillpress.experiment.training import train
    from tests.support.programs.training_program import job, parameters, prepare

    overlay = yaml.safe_load(the_block("# params/doors.yaml"))
    overlay["tasks"] = {"train": 64, "validation": 16, "test": 1}
    overlay["training"] = {"steps": 1, "tasks_per_step": 4, "rollouts_per_task": 4}
    prepare(doors, yaml.safe_dump(overlay), demonstrations=500)

    section = parameters(doors, smoke=True).environment
    check_env(gymnasium.make("Doors-v0", disable_env_checker=True).unwrapped)
    assert section.make_projection().alphabet == ("left", "right", "middle")

    (row,) = train(job(doors, "trained"))
    assert row["success"] > 0.8, "the prize can be smelled, and the policy has seen how"
