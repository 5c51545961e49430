"""``skillpress upgrade``: a lab's unedited files follow the installed version, its edited ones are named."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from skillpress.cli import init, origin, upgrade
from skillpress.cli.command import main
from skillpress.cli.init import MANIFEST, LabManifest, contents, write_lab
from skillpress.pipeline import exit_codes

MAKEFILE, GRPO, STAGE, LEFT = (
    Path("Makefile"),
    Path("params/grpo.yaml"),
    Path("tasks/new.py"),
    Path("flows/children.py"),
)


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A lab of skillpress 0.1.0."""
    monkeypatch.setattr(init, "__version__", "0.1.0")
    write_lab(tmp_path / "lab")
    monkeypatch.setattr("skillpress.core.lab.LAB", tmp_path / "lab")
    return tmp_path / "lab"


@pytest.fixture
def newer(lab: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same lab, and skillpress 0.2.0 installed: two files changed, one is new and one is gone."""
    before = contents("lab")
    after = {place: content for place, content in before.items() if place != LEFT}
    after |= {MAKEFILE: before[MAKEFILE] + b"# 0.2\n", GRPO: before[GRPO] + b"# 0.2\n", STAGE: b"# new\n"}
    after[init.REQUIREMENTS] = before[init.REQUIREMENTS].replace(b"0.1.0", b"0.2.0")
    monkeypatch.setattr(upgrade, "contents", lambda name: dict(after))
    monkeypatch.setattr(upgrade, "__version__", "0.2.0")
    return lab


def texts(lab: Path) -> dict[str, bytes]:
    """Every file of the lab that git knows."""
    return {
        str(file.relative_to(lab)): file.read_bytes()
        for file in sorted(lab.rglob("*"))
        if file.is_file() and file.name != origin.FILE and ".git" not in file.relative_to(lab).parts
    }


def test_the_manifest_has_a_hash_of_every_file_that_was_written(lab: Path) -> None:
    manifest = LabManifest.read(lab)
    assert (manifest.name, manifest.version) == ("lab", "0.1.0")
    assert set(manifest.files) == set(texts(lab)) - {MANIFEST}


def test_where_nothing_differs_it_says_so_and_changes_nothing(
    lab: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upgrade, "__version__", "0.1.0")
    before = texts(lab)
    assert main(["upgrade"]) == 0
    assert "no file differs" in capsys.readouterr().out and texts(lab) == before


def test_a_dry_run_shows_the_difference_of_each_file_and_changes_nothing(
    newer: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (newer / GRPO).write_text("mine: 1\n")
    (newer / "params" / "smoke.yaml").write_text("mine: 1\n")  # which 0.2 leaves as 0.1 had it
    before = texts(newer)
    assert main(["upgrade", "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert "lab: from skillpress 0.1.0 to 0.2.0\n" in said
    assert "Makefile: changes\n--- Makefile (lab)\n+++ Makefile (0.2.0)\n" in said and "\n+# 0.2\n" in said
    assert "tasks/new.py: is new\n" in said and "flows/children.py: is not in the new version\n" in said
    assert "params/grpo.yaml: left alone: you have edited it" in said and "\n-mine: 1\n" in said
    assert "-skillpress[train,pipeline]==0.1.0\n+skillpress[train,pipeline]==0.2.0\n" in said
    assert "smoke.yaml" not in said
    assert texts(newer) == before


def test_unedited_files_follow_and_edited_ones_stay_until_they_are_merged(
    newer: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (newer / GRPO).write_text("mine: 1\n")
    (newer / "requirements.txt").write_text("skillpress[train]==0.1.0  # pinned\nmine\n")
    assert main(["upgrade"]) == 0
    assert "4 files upgraded, 1 left to you" in capsys.readouterr().out
    found = texts(newer)
    assert found["Makefile"].endswith(b"# 0.2\n") and found["tasks/new.py"] == b"# new\n"
    assert "flows/children.py" not in found and found["params/grpo.yaml"] == b"mine: 1\n"
    assert found["requirements.txt"] == b"skillpress[train]==0.2.0  # pinned\nmine\n"
    assert not [name for name in found if ".upgrade." in name]

    assert main(["upgrade"]) == 0  # it names the edited file again
    assert "params/grpo.yaml: left alone" in capsys.readouterr().out
    assert main(["upgrade", "--merged", "params/grpo.yaml"]) == 0
    capsys.readouterr()
    assert main(["upgrade"]) == 0
    assert "no file differs" in capsys.readouterr().out and texts(newer)["params/grpo.yaml"] == b"mine: 1\n"


def test_a_file_that_was_removed_here_is_not_brought_back(
    newer: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (newer / GRPO).unlink()
    (newer / "params" / "smoke.yaml").unlink()
    assert main(["upgrade"]) == 0
    assert "params/grpo.yaml: left alone" in capsys.readouterr().out
    assert not (newer / GRPO).exists() and not (newer / "params" / "smoke.yaml").exists()


def test_an_interrupted_upgrade_leaves_whole_files_and_goes_on(
    newer: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace, done = os.replace, []

    def cut(source: str, target: str) -> None:
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(target)
        replace(source, target)

    with monkeypatch.context() as killed:
        killed.setattr(os, "replace", cut)
        assert main(["upgrade"]) == exit_codes.INTERRUPTED
    assert json.loads((newer / MANIFEST).read_text())["version"] == "0.1.0"
    assert main(["upgrade"]) == 0
    after = {str(place): content for place, content in upgrade.contents("lab").items()}
    assert {name: content for name, content in texts(newer).items() if name != MANIFEST} == after


@pytest.mark.parametrize(
    ("break_it", "said"),
    [
        (lambda lab: (lab / MANIFEST).unlink(), "`skillpress init` did not write this lab"),
        (lambda lab: (lab / MANIFEST).write_text("{"), "not valid JSON"),
        (
            lambda lab: LabManifest("lab", "0.1.0", {"params/../../.bashrc": "0"}).write(lab),
            "names params/../../.bashrc, which is not inside the lab",
        ),
        (
            lambda lab: LabManifest("lab", "0.10.0", {}).write(lab),
            "the lab was written by skillpress 0.10.0, but 0.2.0 is installed; install 0.10.0 or later",
        ),
    ],
)
def test_a_lab_that_cannot_be_upgraded_is_refused(
    break_it: object, said: str, newer: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert callable(break_it)
    break_it(newer)
    assert main(["upgrade"]) == exit_codes.USER_ERROR
    assert said in capsys.readouterr().err


def test_requirements_without_the_pin_are_an_edited_file(newer: Path) -> None:
    (newer / "requirements.txt").write_text("mine\n")
    assert main(["upgrade"]) == 0
    assert (newer / "requirements.txt").read_text() == "mine\n"


def test_a_file_that_is_not_edited_cannot_be_merged(newer: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (newer / GRPO).write_text("mine: 1\n")
    assert main(["upgrade", "--merged", "params/grpo.yml"]) == exit_codes.USER_ERROR
    assert "is not among the edited files; did you mean 'params/grpo.yaml'?" in capsys.readouterr().err


def test_imports_by_former_names_follow_in_files_of_ones_own(
    newer: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own, edited = newer / "my_lab" / "mine.py", newer / "my_lab" / "number_line.py"
    own.write_text(
        "from skillpress.learn.training.step import TrainingStep\n"
        "from skillpress.learn.algorithms.scored_tokens import ScoredTokens\n"
        "from skillpress.doors import (\n    write_atif,\n    read_log as read,\n)\n"
        "import skillpress.learnt\n"
    )
    edited.write_text(edited.read_text() + "from skillpress.play import Sandbox\n")
    assert main(["upgrade", "--dry-run"]) == 0 and "skillpress.learn.training" in own.read_text()
    assert main(["upgrade"]) == 0
    assert "my_lab/mine.py: uses the present names and forms" in capsys.readouterr().out
    assert own.read_text() == (
        "from skillpress.training.loop.step import TrainingStep\n"
        "from skillpress.training.algorithms.algorithm import ScoredTokens\n"
        "from skillpress.logs import read_log as read\n"
        "from skillpress.integrations import write_atif\n"
        "import skillpress.learnt\n"
    )
    assert edited.read_text().endswith("from skillpress.rollouts import Sandbox\n")
