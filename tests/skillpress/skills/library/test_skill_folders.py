"""Folders of skills: the format's rules, and a skill as text."""

from __future__ import annotations

from pathlib import Path

import pytest

from skillpress.core.errors import ParamsError
from skillpress.skills.library.files import as_text, read_skill_folders
from tests.support.skills.folders import EVIDENCE, skill_folder


def test_skills_are_read_by_name_and_hidden_folders_are_left_out(tmp_path: Path) -> None:
    for name in ("find-things", "close-doors", ".git"):
        skill_folder(tmp_path, name)
    (tmp_path / "CHANGELOG.md").write_text("# Changes")
    found = read_skill_folders(tmp_path, "--skills")
    assert [skill.name for skill in found] == ["close-doors", "find-things"]
    assert found[1].description == "Use it for find-things." and found[1].body == "1. Look at the shelf."


def test_every_byte_and_name_of_a_skill_counts_in_its_hash(tmp_path: Path) -> None:
    skill = skill_folder(tmp_path, "find-things") / "find-things"
    (skill / "scripts").mkdir()
    seen = set()
    for name, text in (("a.py", "1"), ("a.py", "2"), ("b.py", "2")):
        (skill / "scripts" / name).write_text(text)
        seen.add(read_skill_folders(tmp_path, "--skills")[0].digest)
    assert len(seen) == 3


def test_a_skill_as_text_is_a_rule_of_the_library_without_its_evidence(tmp_path: Path) -> None:
    skill_folder(tmp_path, "find-things", f"1. Look.{EVIDENCE}")
    assert as_text(read_skill_folders(tmp_path, "--skills")) == (
        "Skills learned in earlier tasks:\n- find-things: Use it for find-things.\n1. Look."
    )
    assert as_text(()) == ""


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ({"name": "Find"}, "name is 'Find', must be made of a-z, 0-9 and single hyphens between them"),
        ({"name": "a--b"}, "name is 'a--b', must be made"),
        ({"name": "other"}, "name is 'other', must be that of its folder, 'find-things'"),
        ({"name": "a" * 65}, "name has 65 characters, at most 64 are allowed"),
        ({"description": "x" * 1025}, "description has 1025 characters, at most 1024"),
        ({"description": "''"}, "description is '', must be a text of 1 to 1024 characters"),
        ({"description": "7"}, "description is 7, must be a text"),
        ({"compatibility": "x" * 501}, "compatibility has 501 characters, at most 500"),
        ({"description": "[a"}, "the front matter, line 2"),
    ],
)
def test_what_breaks_a_rule_is_named_with_its_file(keys: dict[str, str], says: str, tmp_path: Path) -> None:
    skill_folder(tmp_path, "find-things", **keys)
    with pytest.raises(ParamsError, match=r"^--skills: .*/find-things/SKILL\.md: ") as refused:
        read_skill_folders(tmp_path, "--skills")
    assert says in str(refused.value)


def test_a_folder_that_is_no_folder_of_skills_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ParamsError, match="has no skill"):
        read_skill_folders(tmp_path, "--skills")
    with pytest.raises(ParamsError, match="is itself a skill; name the folder that contains it"):
        read_skill_folders(skill_folder(tmp_path, "one") / "one", "--skills")
    (tmp_path / "one" / "SKILL.md").write_text("# no front matter")
    with pytest.raises(ParamsError, match="has no front matter"):
        read_skill_folders(tmp_path, "--skills")
    (tmp_path / "one" / "secret").symlink_to("/etc/passwd")
    with pytest.raises(ParamsError, match="secret is a link"):
        read_skill_folders(tmp_path, "--skills")
    with pytest.raises(ParamsError, match="cannot be read"):
        read_skill_folders(tmp_path / "nowhere", "--skills")
