"""Other programs' model folders in the pipeline: they imitate demonstrations, play, learn, and are saved.

If an algorithm makes one update per step, its ratio is that of learner and engine.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from skillpress.core.rollout_files import read_rollouts
from skillpress.experiment.training import train
from skillpress.models.policy import load_policy
from tests.support.models.folders import IN_PARTS, THINKING, gemma3, llama, tokenizer_with, write_folder
from tests.support.programs.training_program import job, prepare

OVERLAY = """
environment: {{max_steps: 2, max_numbers: 3}}
policy: {{model: {model}, rendering: text, context_tokens: 1700, state_update: concatenate}}
sampling: {{max_new_tokens: 8}}
algorithm: {{kl_coefficient: 0.1}}
training: {{steps: 2, tasks_per_step: 2, rollouts_per_task: 2, minibatches: 1, checkpoint_every: 5}}
"""
FOLDERS = {
    "base": {"config": llama(), "backend": tokenizer_with(text_begins=True)},
    "thinking": {"config": llama(), "template": THINKING},
    "multimodal": {"config": gemma3(), "template": IN_PARTS},
}


@pytest.mark.parametrize("kind", FOLDERS)
def test_a_folder_learns_from_what_it_was_sampled(tmp_path: Path, kind: str) -> None:
    source = write_folder(tmp_path / kind, **FOLDERS[kind])
    prepare(tmp_path, OVERLAY.format(model=source), demonstrations=8)
    curve = train(job(tmp_path, "trained"))
    assert [row["step"] for row in curve] == [1, 2]
    for row in curve:
        assert row["mismatch/largest"] < 1e-4 and abs(row["approximate_kl"]) < 1e-6
    policy = load_policy(tmp_path / "trained")
    assert policy.stop_token_ids == load_policy(source).stop_token_ids
    shown = [
        policy.tokenizer.decode(step.prompt_ids)
        for trajectory in read_rollouts(tmp_path / "training-trained.parquet")
        for step in trajectory.steps
    ]
    assert shown and all("numbers" in text for text in shown)
    # Later prompts also hold sampled responses, and an untrained model may sample any token.
    beginnings = [text.partition("numbers")[0] for text in shown]
    assert all(text.count("<s>") == (kind == "base") for text in beginnings)
    assert all(text.endswith("<think>\n") == (kind == "thinking") for text in shown)
