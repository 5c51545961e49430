"""``--environment`` takes skillpress's names, those of installed packages, and parts of a lab."""

from __future__ import annotations

import json
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import pytest

from skillpress.console.command import main
from skillpress.console.parameter_options import own_overlay, playing_params
from skillpress.console.serve import about_of, tasks_of
from skillpress.core import names
from skillpress.environments import bundle
from skillpress.pipeline import exit_codes

LINE = "my_lab.number_line:BUNDLE"
COMMANDS = {
    "check": ["check"],
    "evaluate": ["evaluate", "--agent", "explorer", "--environment"],
    "serve": ["serve", "--environment"],
    "reverse-parse": ["reverse-parse", "--model", "m", "--output", "out", "--environment"],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_an_unknown_name_is_answered_with_all_names_whose_they_are_and_the_nearest(
    command: str, new_lab: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    point = EntryPoint("theirs", "my_lab.number_line:BUNDLE", "skillpress.environments")
    monkeypatch.setattr(names, "_entry_points", lambda: EntryPoints([point]))
    assert main([*COMMANDS[command], "countdwon"]) == exit_codes.USER_ERROR
    said = capsys.readouterr().err
    assert "is 'countdwon'; allowed: alfworld, code_repair, countdown, " in said
    assert "theirs (from an installed package); did you mean 'countdown'?" in said
    assert "(or module:attribute, from this folder or an installed package)" in said


@pytest.mark.parametrize("command", COMMANDS)
def test_a_part_that_is_missing_is_named(
    command: str, new_lab: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*COMMANDS[command], "my_lab.number_line:BUNDEL"]) == exit_codes.USER_ERROR
    assert "my_lab.number_line has no 'BUNDEL'; did you mean 'BUNDLE'?" in capsys.readouterr().err


def test_the_random_explorer_plays_a_labs_environment_by_its_name_alone(new_lab: Path) -> None:
    words = ["evaluate", "--agent", "explorer", "--environment", LINE, "--tasks", "5", "--votes", "1"]
    assert main([*words, "--output", "played"]) == 0
    record = json.loads((new_lab / "played" / "evaluation.json").read_text())
    assert record["parameters"]["environment"]["name"] == LINE
    assert record["parts"]["all"]["summary"]["pass_at_1"]["episodes"] == 5


def test_a_server_has_the_tasks_and_the_sentence_of_a_labs_environment(new_lab: Path) -> None:
    params = playing_params(LINE, (), ("tasks.train=3",))
    assert [task.environment for task in tasks_of(params, "train")] == [LINE] * 3
    assert about_of(LINE).description == "Walk from 0 to a number in steps of 1 and 9, forwards and back."


def test_an_installed_packages_environment_has_its_name(
    new_lab: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    point = EntryPoint("theirs", "my_lab.number_line:BUNDLE", "skillpress.environments")
    monkeypatch.setattr(names, "_entry_points", lambda: EntryPoints([point]))
    bundle(LINE)  # the lab plays an installed package, which any folder can import
    (new_lab / "params" / "theirs.yaml").write_text(
        (new_lab / "params" / "my_lab.yaml").read_text().replace(LINE, "theirs")
    )
    assert own_overlay("theirs") == new_lab / "params" / "theirs.yaml"
    assert playing_params("theirs", (), ()).environment.name == "theirs"
