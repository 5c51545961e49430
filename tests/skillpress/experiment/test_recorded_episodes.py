"""A warm start from recorded episodes alone, as the stage ``prepare_policy`` makes it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from skillpress.core.chat_messages import Message
from skillpress.core.errors import ParamsError
from skillpress.core.resume import ResumeStore
from skillpress.experiment.imitation import ImitationJob
from skillpress.experiment.imitation_job import imitate_rank
from skillpress.experiment.params import Params, check_params, merge, read_yaml
from skillpress.models.policy import save_policy
from skillpress.models.policy.policy import load_policy
from skillpress.rollouts.programs.requests import ModelRequest
from tests.support.models.tiny import tiny_policy

RUN = [("1 2", "up"), ("2 3", "down"), ("3 4", "stop")]


def params(repository: Path, folder: Path, episodes: list[str], **imitation: Any) -> Params:
    """A program, whose policy is a small one in a folder."""
    save_policy(tiny_policy(), folder / "tiny")
    program = {
        "name": "program", "max_steps": 6, "run": "a:b", "tasks": "none", "verify": "a:b", "calls": "words",
        "seconds": 60, "isolation": "none",
    }  # fmt: skip
    learned = {
        "demonstrations": 0,
        "episodes": episodes,
        "batch_size": 4,
        "epochs": 40,
        "learning_rate": 0.01,
    }
    changed = {
        "processes": 1,
        "environment": program,
        "policy": {"model": str(folder / "tiny"), "rendering": "requests", "context_tokens": 12},
        "imitation": learned | imitation,
    }
    return check_params(merge(read_yaml(repository / "params.yaml"), changed), "test")


def job(found: Params, folder: Path) -> ImitationJob:
    store = ResumeStore(folder, "work")
    episodes = found.imitation.gather(store.folder)
    return ImitationJob(found, folder / "none.parquet", folder / "learned", store, episodes=episodes)


def log(folder: Path, *won: bool) -> str:
    """A chat log of runs that ask twice each."""
    messages = [
        {"role": role, "content": text}
        for asked, said in RUN
        for role, text in (("user", asked), ("assistant", said))
    ]
    file = folder / "log.jsonl"
    file.write_text("".join(json.dumps({"messages": messages, "resolved": each}) + "\n" for each in won))
    return str(file)


def test_a_policy_learns_what_a_log_says_and_the_counts_are_metrics(repository: Path, tmp_path: Path) -> None:
    made = job(params(repository, tmp_path, [log(tmp_path, True, False, True)]), tmp_path)
    result = imitate_rank(made, 0, 0, 1, lambda progress: None)
    metrics = result.metrics()
    assert {name: metrics[name] for name in metrics if name.startswith("recorded_")} == {
        "recorded_episodes": 2, "recorded_responses": 6, "recorded_too_long": 0, "recorded_refused": 0,
        "recorded_unlike": 0,
    }  # fmt: skip
    assert result.losses[-1] < 0.1 < 1.0 < result.losses[0]
    learned = load_policy(tmp_path / "learned")
    prompt, response = learned.encode_exchange(
        ModelRequest((Message("user", "1 2"),)), Message("assistant", "up")
    )
    first = learned.model(input_ids=torch.tensor([prompt])).logits[0, -1]
    assert int(first.argmax()) == response[0]


def test_episodes_of_which_none_fits_are_refused_with_what_became_of_them(
    repository: Path, tmp_path: Path
) -> None:
    made = job(params(repository, tmp_path, [log(tmp_path, True)]), tmp_path)
    short = made.params.policy.model_copy(update={"context_tokens": 1})
    narrow = ImitationJob(
        made.params.model_copy(update={"policy": short}),
        made.tasks,
        made.output,
        made.store,
        episodes=made.episodes,
    )
    with pytest.raises(
        ParamsError, match=r"imitation\.episodes: nothing can be learned: 1 episodes read, 1 won"
    ):
        imitate_rank(narrow, 0, 0, 1, lambda progress: None)


def test_a_section_without_files_reads_nothing(repository: Path, tmp_path: Path) -> None:
    found = params(repository, tmp_path, [])
    assert not found.imitation.wanted and found.imitation.gather(tmp_path) is None
