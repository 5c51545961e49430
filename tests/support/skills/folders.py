"""Folders of skills, as people and ``skillpress skills --write`` leave them."""

from __future__ import annotations

from pathlib import Path

EVIDENCE = "\n\n## Evidence\n\n- **Uses:** 7 in 5 of 9 runs."


def skill_folder(folder: Path, name: str, body: str = "1. Look at the shelf.", /, **keys: str) -> Path:
    """Write a skill; returns the folder of skills."""
    front = {"name": name, "description": f"Use it for {name}.", **keys}
    lines = "".join(f"{key}: {value}\n" for key, value in front.items())
    file = folder / name / "SKILL.md"
    file.parent.mkdir(parents=True)
    file.write_text(f"---\n{lines}---\n\n{body}\n")
    return folder
