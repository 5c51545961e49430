"""``--environment`` takes skillpress's names, those of installed packages, and parts of a lab."""

from __future__ import annotations

import json
import sys
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import pytest

from skillpress.cli.command import main
from skillpress.cli.parameter_options import own_overlay, playing_params
from skillpress.cli.serve import about_of, tasks_of
from skillpress.core import lab, names
from skillpress.core.errors import ParamsError
from skillpress.core.registry import ENVIRONMENTS
from skillpress.core.yaml_files import write_yaml
from skillpress.environments import environment_class
from skillpress.experiment.params import merge, read_yaml
from skillpress.pipeline import exit_codes

LINE = "my_lab.number_line:NumberLine"
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
    point = EntryPoint("theirs", "my_lab.number_line:NumberLine", "skillpress.environments")
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
    assert main([*COMMANDS[command], "my_lab.number_line:NumberLien"]) == exit_codes.USER_ERROR
    assert "my_lab.number_line has no 'NumberLien'; did you mean 'NumberLine'?" in capsys.readouterr().err


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
    point = EntryPoint("theirs", "my_lab.number_line:NumberLine", "skillpress.environments")
    monkeypatch.setattr(names, "_entry_points", lambda: EntryPoints([point]))
    environment_class(LINE)  # the lab plays an installed package, which any folder can import
    (new_lab / "params" / "theirs.yaml").write_text(
        (new_lab / "params" / "my_lab.yaml").read_text().replace(LINE, "theirs")
    )
    assert own_overlay("theirs") == new_lab / "params" / "theirs.yaml"
    assert playing_params("theirs", (), ()).environment.name == "theirs"


def test_of_overlays_that_play_an_environment_alike_the_first_is_taken_and_otherwise_one_is_asked_for(
    new_lab: Path,
) -> None:
    mine = new_lab / "params" / "my_lab.yaml"
    other = new_lab / "params" / "short.yaml"
    other.write_text(write_yaml(merge(read_yaml(mine), {"training": {"steps": 3}})))
    assert own_overlay(LINE) == mine
    other.write_text(write_yaml(merge(read_yaml(mine), {"tasks": {"test": 3}})))
    said = (
        rf"--params is missing: params/my_lab\.yaml and params/short\.yaml configure {LINE} differently; "
        r"choose one, such as --params params/my_lab\.yaml"
    )
    with pytest.raises(ParamsError, match=said):
        own_overlay(LINE)


@pytest.mark.parametrize("words", [["check"], ["evaluate"], ["serve"], ["run"]])
def test_a_params_file_in_an_arguments_place_is_answered_with_its_option(
    words: list[str], new_lab: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words, "params/my_lab.yaml"]) == exit_codes.USER_ERROR
    assert "did you mean --params params/my_lab.yaml?" in capsys.readouterr().err


def test_a_labs_files_and_parts_have_one_name_in_all_its_folders(
    new_lab: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lab, "ROOT", new_lab)
    monkeypatch.chdir(new_lab / "params")
    monkeypatch.setattr(sys, "path", [folder for folder in sys.path if folder not in ("", str(new_lab))])
    assert lab.overlay("params/my_lab.yaml") == new_lab / "params" / "my_lab.yaml"
    assert lab.overlay("my_lab.yaml") == Path("my_lab.yaml")
    assert names.check_name(ENVIRONMENTS, LINE) == LINE
