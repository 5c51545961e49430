"""A taskset of verifiers is a program: ``vf-eval`` plays a task, and its traces say what it earned."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from skillpress.integrations.verifiers import OUTPUT, verify

VF_EVAL = """#!/bin/sh
printf '%s\\n' "$@" > arguments.txt
"""


def traces(folder: Path, *found: dict[str, Any]) -> str:
    """An episode's folder as version 0.4.0 leaves it, with the fields that are read."""
    run = folder / OUTPUT / "sums--policy--null--1f2e3d4c"
    run.mkdir(parents=True)
    (run / "traces.jsonl").write_text(json.dumps({"ok": True, "traces": found}) + "\n")
    return str(folder)


SCORED = {
    "rewards": {"exact": {"score": 1.0, "weight": 0.75}, "short": {"score": 0.5, "weight": 0.5}},
    "metrics": {"words": 4.0, "unknown": None},
}


def test_rewards_and_metrics_are_measures_and_their_weighted_sum_decides(tmp_path: Path) -> None:
    folder = traces(tmp_path, SCORED)
    found = {"exact": 1.0, "short": 0.5, "words": 4.0, "reward": 1.0}
    assert verify({"id": "0"}, "", folder, []) == {**found, "success": True}
    assert verify({"id": "0", "won_at": 1.5}, "", folder, []) == {**found, "success": False}


@pytest.mark.parametrize(
    "found", [[], [{"rewards": {"exact": None}, "metrics": {}}], [{"rewards": {}, "metrics": {}}]]
)
def test_a_task_that_was_not_scored_is_lost_and_states_nothing(
    found: list[dict[str, Any]], tmp_path: Path
) -> None:
    assert verify({"id": "0"}, "", traces(tmp_path, *found), []) == {"success": False}
    assert verify({"id": "0"}, "", str(tmp_path / "nothing"), []) == {"success": False}


def test_the_program_becomes_vf_eval_for_the_task_of_this_place(tmp_path: Path, repository: Path) -> None:
    (tmp_path / "vf-eval").write_text(VF_EVAL)
    (tmp_path / "vf-eval").chmod(0o755)
    given = {"SKILLPRESS_TASK": '{"id": "7"}', "OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}
    command = [sys.executable, "-m", "skillpress.integrations.verifiers", "sums", "--verbose", "true"]
    environment = {**os.environ, **given, "PYTHONPATH": str(repository)}
    with_it = environment | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    subprocess.run(command, cwd=tmp_path, env=with_it, check=True)
    said = (tmp_path / "arguments.txt").read_text()
    assert said.startswith(
        "sums\n--select.include.idx\n7\n--model\npolicy\n--client.base-url\nhttp://127.0.0.1:1/v1\n"
    )
    assert said.endswith("--output-dir\nverifiers\n--verbose\ntrue\n")
    without = subprocess.run(
        command, env=environment | {"PATH": "/nowhere"}, capture_output=True, text=True, check=False
    )
    assert without.returncode == 1 and "vf-eval is not on PATH: pip install verifiers uv" in without.stderr
