"""A store in training: rollout files have what its prompts showed, and an interrupted run ends the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from skillpress.core.interface import AgentState, Info
from skillpress.core.rollout_files import read_rollouts, write_rollouts
from skillpress.core.task_files import read_tasks
from skillpress.core.trajectory import Task
from skillpress.experiment.experiment import Experiment
from skillpress.experiment.training import train
from skillpress.models.policy import load_policy
from skillpress.pipeline.identities import embedding_identity
from skillpress.rollouts.agents.store.embeddings import embedding_of
from skillpress.rollouts.agents.store.parameters import StoreParameters
from skillpress.rollouts.agents.store.update import stored
from skillpress.rollouts.collection import requests
from tests.support.experiment.small_training import prepared
from tests.support.programs.training_program import job, parameters

OVERLAY = """
environment: {name: "benchmarks.recall.world:Recall", max_steps: 5, signs: 2, empty: 2}
policy: {history: 0, state_update: store, store: {shown: 1, length: 12}}
reward: {shaping: none}
training: {steps: 2, learning_rate: 0.003}
"""


class StoppedError(Exception):
    """The training was interrupted."""


folder = prepared(OVERLAY, demonstrations=200)


def test_a_rollout_file_has_the_entries_that_each_prompt_showed(folder: Path, tmp_path: Path) -> None:
    experiment, policy = Experiment(parameters(folder, smoke=True)), load_policy(folder / "start")
    agent = experiment.agent(policy, experiment.engine(policy), experiment.training_sampling)
    tasks = {task.task_id: task for task in read_tasks(folder / "train.parquet")[:8]}
    with experiment.collector(agent) as collector:
        write_rollouts(
            tmp_path / "rollouts.parquet", collector.collect(requests([*tasks.values()], 2, 0, ""))
        )
    shown = []
    for episode in read_rollouts(tmp_path / "rollouts.parquet"):
        rooms = tasks[episode.task_id].spec["rooms"]
        state = AgentState(task=tasks[episode.task_id], observation=rooms[0], info=Info())
        for step in episode.steps:
            assert policy.decode(step.prompt_ids) == experiment.rendering.prompt(state)
            shown.append(state.notes)
            state = experiment.state_update(state, "", step.action, step.observation, Info())
    assert any(note.startswith("a sign says") for note in shown), "signs that the window has forgotten"


def test_a_model_folder_makes_vectors_of_its_mean_hidden_states_and_is_part_of_the_experiment(
    folder: Path,
) -> None:
    section = StoreParameters(shown=1, length=12, embedding=str(folder / "start"))
    embed, policy = embedding_of(section), load_policy(folder / "start")
    sign = "a sign says the word of the red door is amber"
    with torch.no_grad():
        (states,) = policy.model.model(torch.tensor(policy.encode([sign]))).last_hidden_state
    mean = states.mean(0)
    assert embed(sign) == pytest.approx((mean / mean.norm()).numpy(), abs=1e-5)
    assert np.array_equal(embed(sign), embed(sign)) and not embed("").any()
    update = stored(0, section, compact=True)
    state = AgentState(Task("t", "none", 0, {}), sign, Info())
    for observation in ("an empty room with a blue lamp", "the red door asks for its word"):
        state = update(state, "", "on", observation, Info())
    assert state.notes in {f"{sign} on", "an empty room with a blue lamp on"}
    assert embedding_identity(section)["embedding"].startswith("folder ")
    assert embedding_identity(None) == embedding_identity(StoreParameters(shown=1, length=12)) == {}


def test_an_interrupted_training_ends_with_the_weights_of_an_undisturbed_one(folder: Path) -> None:
    rows = train(job(folder, "whole"))
    assert [int(row["step"]) for row in rows] == [1, 2] and rows[-1]["mismatch/largest"] < 1e-3

    def stop(step: int, metrics: dict[str, float]) -> None:
        if step == 2:
            raise StoppedError

    with pytest.raises(StoppedError):
        train(job(folder, "cut"), stop)
    resumed: list[int] = []
    train(job(folder, "cut"), lambda step, metrics: resumed.append(step))
    assert resumed[-1] == 2 and 1 not in resumed
    whole, cut = (load_policy(folder / name).model.state_dict() for name in ("whole", "cut"))
    assert all(torch.equal(whole[name], cut[name]) for name in whole)
