"""The section "From sessions to skills", walked line by line with session folders of three agents."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import polars as pl
import pytest

from skillpress.cli.command import main
from skillpress.cli.viewing.found import skills_page
from tests.support.skills.scripted_sessions import PLANTED, sessions
from tests.support.skills.session_folders import write_home

PAGE = (Path(__file__).parents[2] / "docs" / "skills_of_any_agent.md").read_text(encoding="utf-8")
SECTION = PAGE.split("\n## From sessions to skills\n")[1].split("\n## ")[0]
WRITE, VIEW, COPY, AGAIN = re.findall(r"^ *(?:skillpress|cp) .*$", SECTION, re.MULTILINE)
WANTED = {"-".join(routine) for routine in PLANTED}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_home(tmp_path, sessions(90, noise=0.1))
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "app").mkdir()
    monkeypatch.chdir(tmp_path / "app")
    return tmp_path


def words(line: str) -> list[str]:
    """The words of a command line, with the home folder and without its comment."""
    return [str(Path(word).expanduser()) for word in shlex.split(line, comments=True)][1:]


def test_a_stranger_who_follows_the_section_has_skills_of_all_three_agents(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words(WRITE)) == 0
    said = capsys.readouterr().out
    assert "bad line" not in said, "a kind of line that says nothing is no damage"
    assert "Claude Code" in said and "Codex" in said and "OpenHands" in said
    found = {path.parent.name: path.read_text() for path in Path("skills").glob("*/SKILL.md")}
    assert set(found) >= WANTED
    assert "1. grep: `grep -rn <text> src`" in found["grep-sed-patch-pytest"], "the same in all three shells"
    assert "tasks such as: Please fix the failing test of <text> in" in found["grep-sed-patch-pytest"]
    assert "copied from an earlier session" in said, "forks count once"
    (view,) = words(VIEW)[1:]
    page = skills_page(Path(view))
    assert page is not None and page.read_text().count('<div class="beside">') == len(found)
    source, target = words(COPY.replace("NAME", "pip-uv-diff"))[1:]
    shutil.copytree(source, Path(target) / "pip-uv-diff")
    assert (home / ".claude" / "skills" / "pip-uv-diff" / "SKILL.md").is_file()


def test_outcomes_of_a_file_turn_away_what_goes_with_failure(home: Path) -> None:
    assert main(words(WRITE)) == 0
    assert Path("skills/rm-cmake-ctest/SKILL.md").is_file()
    rows = [f"5e55-{number:04d},{it.success}".lower() for number, it in enumerate(sessions(90, noise=0.1))]
    Path("labels.csv").write_text("\n".join(["id,success", *rows]))
    assert main(words(AGAIN)) == 0
    passed = dict(pl.read_csv(Path("results/skills/passed_over.csv")).select("routine", "why").iter_rows())
    assert passed["rm → cmake → ctest"].startswith("goes with failure")
    assert "No longer chosen: rm-cmake-ctest" in Path("skills/CHANGELOG.md").read_text()
