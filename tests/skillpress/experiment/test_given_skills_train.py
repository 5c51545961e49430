"""A library that begins with a folder of skills: prompts show them, and the record has their hashes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from skillpress.core.errors import ParamsError
from skillpress.core.lab import REFERENCE
from skillpress.core.rollout_files import read_rollouts
from skillpress.experiment.params import check_params, merge, read_yaml
from skillpress.models.policy import load_policy
from skillpress.pipeline.fingerprints import Fingerprints
from skillpress.pipeline.graph import read_stage
from skillpress.skills.library.library import FILE, GENERAL, read_library
from tests.support.experiment.small_training import train_small
from tests.support.models.folders import llama, write_folder
from tests.support.programs.training_program import prepare
from tests.support.skills.folders import EVIDENCE, skill_folder

LIBRARY: dict[str, Any] = {"retrieval": "by_task", "top_k": 2, "every": 1, "new": 2, "teacher": None}
SMALL: dict[str, Any] = {
    "environment": {"max_steps": 2, "max_numbers": 3},
    "policy": {"rendering": "text", "context_tokens": 1700},
    "sampling": {"max_new_tokens": 8},
    "reward": {"invalid_penalty": 1.0},
    "training": {"steps": 1, "tasks_per_step": 2, "rollouts_per_task": 2, "minibatches": 1},
}


def test_prompts_show_the_skills_and_the_policy_keeps_them(tmp_path: Path) -> None:
    source = write_folder(tmp_path / "source", llama())
    skills = skill_folder(tmp_path / "skills", "find-things", f"1. Look.{EVIDENCE}")
    overlay = {
        **SMALL,
        "policy": {**SMALL["policy"], "model": str(source)},
        "skills": {"library": {**LIBRARY, "folder": str(skills)}},
    }
    prepare(tmp_path, yaml.safe_dump(overlay), demonstrations=8)
    train_small(tmp_path, "whole", overlay)
    tokenizer = load_policy(tmp_path / "start").tokenizer
    told = "Skills learned in earlier tasks:\n- find-things: Use it for find-things.\n1. Look."
    played = list(read_rollouts(tmp_path / "training-whole.parquet"))
    assert played
    for episode in played:
        assert told in tokenizer.decode(episode.steps[0].prompt_ids)
    kept = read_library(tmp_path / "whole" / FILE)
    assert [(skill.text, skill.task_class) for skill in kept.at(0).skills] == [
        ("find-things: Use it for find-things.\n1. Look.", GENERAL)
    ]


def test_a_stage_that_reads_the_library_is_named_by_every_byte_of_its_skills(tmp_path: Path) -> None:
    skills = skill_folder(tmp_path / "skills", "find-things")
    values = merge(
        read_yaml(REFERENCE / "params.yaml"),
        {
            "policy": {"rendering": "text", "model": "smollm2-135m"},
            "skills": {"library": {**LIBRARY, "folder": str(skills)}},
        },
    )

    def named(stage: str) -> Any:
        return Fingerprints.here(check_params(values, "a test")).of(read_stage(stage)).get("skills")

    before = named("train_policy")
    assert list(before) == ["find-things"]
    assert named("prepare_policy") is None
    (skills / "find-things" / "more.txt").write_text("more")
    assert named("train_policy") != before
    (skills / "find-things" / "SKILL.md").write_text("no front matter")
    with pytest.raises(ParamsError, match=r"^skills.library.folder: .*SKILL.md has no front matter"):
        named("train_policy")
