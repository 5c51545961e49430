"""A taskset of verifiers is a program: ``vf-eval`` plays a task, and its traces say what it earned."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from skillpress.core.trajectory import Task
from skillpress.environments.program.parameters import ProgramParameters
from skillpress.integrations.verifiers import OLDER, OUTPUT, verify
from tests.agents.scripted import ScriptedEngine, byte_policy, collected

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


def test_the_program_becomes_vf_eval_for_the_task_of_this_place_or_the_interpreter_beside_it(
    tmp_path: Path, repository: Path
) -> None:
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
    shutil.copy(tmp_path / "vf-eval", tmp_path / "python")
    subprocess.run([*command[:3], OLDER, "sums", "{}"], cwd=tmp_path, env=with_it, check=True)
    file, *told = (tmp_path / "arguments.txt").read_text().split()
    assert Path(file).name == "verifiers.py" and told == [OLDER, "sums", "{}"]
    without = subprocess.run(
        command, env=environment | {"PATH": "/nowhere"}, capture_output=True, text=True, check=False
    )
    assert without.returncode == 1 and "vf-eval is not on PATH: pip install verifiers uv" in without.stderr


OLD_SUMS = """
import verifiers as vf
from datasets import Dataset

def add(a: int, b: int) -> str:
    "Add two numbers."
    return f"sum={a + b}"

def load_environment(first, last=9):
    def exact(completion, answer, **also):
        return float(answer in (completion[-1]["content"] or ""))

    def sums(*begins):
        rows = [{"question": f"Please add {n} and {last}.", "answer": f"is {n + last}."} for n in begins]
        return Dataset.from_list(rows)

    own = vf.Rubric(funcs=[exact, lambda **also: 1.0], weights=[0.75, 0.25])
    train, evaluation = sums(first, first + 1), sums(30)
    return vf.ToolEnv(tools=[add], max_turns=4, dataset=train, eval_dataset=evaluation, rubric=own)
"""


def older_python() -> Path | None:
    """The interpreter beside ``vf-eval``, if its verifiers has environments of the older form."""
    found = shutil.which("vf-eval")
    python = Path(found).resolve().with_name("python") if found else None
    if python is None:
        return None
    asked = subprocess.run([python, "-c", "import verifiers; verifiers.load_environment"], check=False)
    return None if asked.returncode else python


@pytest.mark.skipif(older_python() is None, reason="no vf-eval of verifiers 0.1 to 0.3 is on PATH")
def test_an_environment_of_the_older_form_plays_its_tools_and_its_rubric_decides(
    tmp_path: Path, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "old_sums.py").write_text(OLD_SUMS)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{repository}")
    run = [sys.executable, "-m", "skillpress.integrations.verifiers", OLDER, "old_sums", '{"first": 2}']
    section = ProgramParameters(
        name="program", max_steps=4, run=run, tasks="none", verify="skillpress.integrations.verifiers:verify",
        seconds=60.0, isolation="none",
    )  # fmt: skip
    tasks: list[dict[str, Any]] = [{"id": "0"}, {"id": "1"}, {"id": "0", "evaluation": True}]
    found = [Task(str(place), "program", 0, task) for place, task in enumerate(tasks)]
    episodes = collected(section, ScriptedEngine(policy := byte_policy()), found, 1 << 15)
    for n, episode in zip((2, 3, 30), episodes, strict=True):
        asked, said = episode.steps
        assert episode.won and f"Please add {n} and 9." in policy.decode(asked.prompt_ids)
        assert f"sum={n + 9}" in policy.decode(said.prompt_ids)
