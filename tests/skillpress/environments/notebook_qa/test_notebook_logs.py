"""The log of the notebook agent, read by ``skillpress skills`` like any other log."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from skillpress.cli.command import main
from skillpress.core.rollout_files import write_rollouts
from skillpress.core.trajectory import Trajectory, skill_sequence
from skillpress.environments.notebook_qa.parameters import NotebookQaParameters
from skillpress.environments.sandboxed import SandboxedEnvironment
from skillpress.environments.section import SplitSizes, projection_without_keys
from skillpress.skills.dictionary import load_dictionary


def test_the_gold_searchers_routine_is_found(
    parameters: NotebookQaParameters, play: Callable[..., Trajectory], script: Callable, tmp_path: Path
) -> None:
    environment = parameters.make()
    oracle = parameters.make_oracle()
    played = [
        play(environment, task, script(oracle(task, 0.3, seed)), seed)
        for task in parameters.make_tasks(SplitSizes(3, 0, 0), 0)
        for seed in range(4)
    ]
    assert isinstance(environment, SandboxedEnvironment)
    environment.close()
    write_rollouts(tmp_path / "rollouts.parquet", played)
    options = ["--rules", "notebook_qa", "--longest", "8", "--output", str(tmp_path / "out")]
    assert main(["skills", str(tmp_path / "rollouts.parquet"), *options]) == 0
    found = load_dictionary(tmp_path / "out" / "dictionary.json")
    assert found.alphabet == ("Answer", "Compute", "Read", "Search", "Plan", "Note")
    assert any(phrase[-2:] == ("Note", "Answer") for phrase in found.learned), json.dumps(found.learned)
    won = [skill_sequence(projection_without_keys("notebook_qa"), None, each) for each in played if each.won]
    assert found.sequences == len(won) and sum(map(len, won)) == sum(
        len(phrase) * count for phrase, count in zip(found.phrases, found.counts, strict=True)
    )
