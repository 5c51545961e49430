"""A real language model, SmolLM2-135M, in the two environments that run its code in sandboxes."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from skillpress.cli.command import main
from skillpress.core.rollout_files import read_rollouts
from skillpress.core.trajectory import Trajectory

COUNT = 20
SHORT = (
    "environment.max_steps=2",
    "sampling.max_new_tokens=64",
    "policy.context_tokens=1024",
    "sampling.slots=20",
)
"""Three seconds per episode: the test checks that episodes are played, not how good the model is."""


def play(name: str, data: Path, output: Path, *options: str) -> list[Trajectory]:
    """``COUNT`` episodes of the environment, in its wording for language models."""
    overlay = Path(__file__).parents[4] / "params" / f"{name}.yaml"
    sets = [
        f"environment.data={data}",
        "policy.rendering=text",
        "policy.model=smollm2-135m",
        *SHORT,
        *options,
    ]
    words = ["--environment", name, "--model", "smollm2-135m", "--tasks", str(COUNT), "--votes", "1"]
    words += ["--accept-unread"]  # it writes no answer in the wanted format
    files = ["--params", str(overlay), "--output", str(output)]
    assert main(["evaluate", *words, *files, *(word for value in sets for word in ("--set", value))]) == 0
    return read_rollouts(output / "rollouts.parquet")


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["code_repair", "notebook_qa"])
def test_smollm2_plays_real_episodes(
    name: str, qa_data: Path, code_repair_data: Path, tmp_path: Path
) -> None:
    data = {"notebook_qa": qa_data, "code_repair": code_repair_data}[name]
    options = ("environment.reachable=false",) if name == "notebook_qa" else ()
    episodes = play(name, data, tmp_path / "played", *options)
    assert len({episode.task_id for episode in episodes}) == len(episodes) == COUNT
    for episode in episodes:
        assert 1 <= len(episode.steps) <= 2 and episode.first_observation
        assert episode.won or episode.outcome != "won"
        for step in episode.steps:
            assert 1 <= len(step.response_ids) <= 64 and len(step.prompt_ids) <= 1024
            assert len(step.logprobs) == len(step.response_ids)
            assert step.thought or step.action or step.invalid
    reasons = Counter(step.invalid for episode in episodes for step in episode.steps)
    summary = json.loads((tmp_path / "played" / "evaluation.json").read_text())["parts"]["all"]["summary"]
    print(f"{name}: {summary['pass_at_1']['mean']:.0%} won, {dict(reasons)}")
    # The sandbox's answer to a readable cell or call reached the next prompt.
    assert any(len(episode.steps) == 2 and episode.steps[0].observation for episode in episodes)
