"""Two real servers of ``skillpress serve-workers``, one of them killed: every episode is as it is here."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from benchmarks.remote_workers import ENVIRONMENT, make_world, measure, started
from skillpress.cli.command import main
from skillpress.cli.parameter_options import playing_params
from skillpress.core.errors import UserError
from skillpress.environments.played import packages_of, played_by
from skillpress.experiment.experiment import Experiment
from skillpress.rollouts.remote.slot import KEY_VARIABLE, Slot

EPISODES = 18
KEY = "a-key-of-many-letters"


PROGRAM = """
environment: {name: program, max_calls: 2, run: [python, agent.py], tasks: t.jsonl, verify: "json:loads",
  seconds: 9, isolation: none}
policy: {model: smollm2-135m, rendering: requests, parser: rendering}
"""


@pytest.fixture
def settings(tmp_path: Path, repository: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Questions made for a test."""
    monkeypatch.chdir(repository)
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    return make_world(tmp_path, EPISODES + 1)


@pytest.mark.kills
@pytest.mark.heavy
def test_a_machine_killed_midway_changes_no_byte_of_the_episodes(settings: list[str], tmp_path: Path) -> None:
    measure("here", settings, 4, tmp_path)
    found = measure("killed", settings, 4, tmp_path)
    assert (found["episodes"], found["lost"], found["twice"]) == (EPISODES, 0, 0)
    assert found["lost_sandboxes"] == 0 and found["same_bytes"]


@pytest.mark.heavy
def test_a_machine_says_what_it_plays_and_where_its_log_is(settings: list[str], tmp_path: Path) -> None:
    section = playing_params(ENVIRONMENT, [], settings).environment
    with started(tmp_path, settings, 2, KEY) as machine:
        slot = Slot(machine.url, KEY, packages_of(section))
        assert slot.offer.played == played_by(section) and slot.offer.slots == 2
        assert slot.offer.log == str(machine.log) and f"process {machine.process.pid}" in slot.offer.machine
        slot.close()
        other = [*settings, "environment.top_k=3", f"workers.urls=[{machine.url}]", "processes=1"]
        experiment = Experiment(playing_params(ENVIRONMENT, [], other))
        with pytest.raises(
            UserError, match=r"does not match this process: environment.top_k is 8 there and 3 here;"
        ):
            experiment.collector(experiment.explorer())
        assert KEY not in machine.log.read_text()
    assert machine.process.returncode == 0, "SIGTERM ends it"


@pytest.mark.parametrize("key", [None, "short", "a key with some spaces"])
def test_without_a_key_nothing_starts(
    key: str | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], repository: Path
) -> None:
    monkeypatch.chdir(repository)
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    if key is not None:
        monkeypatch.setenv(KEY_VARIABLE, key)
    assert main(["serve-workers", "--environment", ENVIRONMENT]) == 2
    said = capsys.readouterr().err
    assert f"{KEY_VARIABLE}: {'is not set' if key is None else 'holds no key'}; give every machine" in said


def test_the_key_is_not_inherited_and_a_program_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], repository: Path, tmp_path: Path
) -> None:
    overlay = tmp_path / "program.yaml"
    overlay.write_text(PROGRAM)
    monkeypatch.chdir(repository)
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    assert main(["serve-workers", "--environment", "program", "--params", str(overlay)]) == 2
    assert "--environment: is 'program', whose actions are not texts" in capsys.readouterr().err
    assert KEY_VARIABLE not in os.environ
