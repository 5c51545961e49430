"""A rollout file has everything that an algorithm compares: advantages are equal before and after storage."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skillpress.core.errors import StorageError
from skillpress.core.registry import ALGORITHMS
from skillpress.core.resume import ResumeStore
from skillpress.core.rollout_files import ROLLOUT_SCHEMA, read_rollouts, rollout_frame, write_rollouts
from skillpress.core.trajectory import RewardPart, Step, Summary, Task, Trajectory, WeightSpan
from skillpress.rollouts.workers.distributed import Ranks
from skillpress.training.algorithms.batch import REPLAYED, Batch, batch_of, one_process
from skillpress.training.loop.log_ratios import LogRatios
from skillpress.training.loop.replay import ReplayBuffer
from tests.support.episodes import made_step, made_trajectory
from tests.support.training.batches import (
    CISPO,
    DAPO,
    DR_GRPO,
    EXPERT_ITERATION,
    GIGPO,
    GRPO,
    GSPO,
    PPO,
    REINFORCE_PP,
    RLOO,
    algorithm,
)

METHODS = {
    section["name"]: section
    for section in (
        {**GRPO, "discount": 0.9}, {**RLOO, "discount": 0.9}, REINFORCE_PP, {**PPO, "gae_lambda": 0.9}, GIGPO,
        DR_GRPO, DAPO, EXPERT_ITERATION, GSPO, CISPO,
    )
}  # fmt: skip
TASK = Task("t", "countdown", 0, {})


@st.composite
def decisions(draw: st.DrawFn) -> Step:
    tokens = draw(st.integers(0, 3))
    value = st.floats(-5, 5)
    return made_step(
        prompt_ids=(draw(st.integers(1, 9)),) if tokens else (),
        response_ids=(2,) * tokens,
        logprobs=tuple(draw(st.lists(st.floats(-9, 0), min_size=tokens, max_size=tokens))),
        action=draw(st.sampled_from(["go", "stay"])),
        observation=draw(st.sampled_from(["", "a", "b"])),
        invalid=draw(st.sampled_from([None, "unreadable"])),
        reward_parts=(
            RewardPart("success", draw(value), "trajectory"),
            RewardPart("measure", draw(value), "step"),
        ),
        weight_spans=(WeightSpan(0, 0, tokens),) if tokens else (),
        state_key=draw(st.sampled_from([None, "", "a", "b", "c"])),
    )


@st.composite
def groups(draw: st.DrawFn) -> list[Trajectory]:
    """Two groups of rollouts, some with a summary."""
    found = []
    for group in ("train/1/t", "train/1/visit/1/t"):
        for index in range(draw(st.integers(1, 4))):
            steps = draw(st.lists(decisions(), min_size=1, max_size=4))
            summaries = [Summary(0, replace(draw(decisions()), action=""))] if draw(st.booleans()) else []
            won = draw(st.booleans())
            found.append(
                made_trajectory(
                    steps,
                    won=won,
                    group_id=group,
                    rollout_index=index,
                    seed=index,
                    first_observation=draw(st.sampled_from(["", "a"])),
                    summaries=tuple(summaries),
                )
            )
    return found


def buffer(folder: Path) -> ReplayBuffer:
    store = ResumeStore(folder, "key").of_rank(0)
    return ReplayBuffer(store, tasks={"t": TASK}, groups=2, staleness=2, seed=0, ranks=Ranks())


def from_a_file(folder: Path, played: Sequence[Trajectory]) -> list[Trajectory]:
    write_rollouts(folder / "rollouts.parquet", played)
    return read_rollouts(folder / "rollouts.parquet")


def from_the_buffer(folder: Path, played: Sequence[Trajectory]) -> list[Trajectory]:
    keeping = buffer(folder)
    keeping(1, collected(played))
    return replayed(keeping)


def from_a_resumed_run(folder: Path, played: Sequence[Trajectory]) -> list[Trajectory]:
    """The trajectories of step 2 in a run that resumed from the checkpoint of step 1."""
    keeping = buffer(folder)
    keeping(1, collected(played))
    keeping.forget(1)
    return replayed(buffer(folder))


def replayed(keeping: ReplayBuffer) -> list[Trajectory]:
    """The trajectories of step 2, for which nothing was played."""
    return keeping(2, collected([]))[0].played_as(REPLAYED)


def collected(played: Sequence[Trajectory]) -> Batch:
    return batch_of(played, numbers(played), 10.0, 4, [TASK] * len(played))


def numbers(played: Sequence[Trajectory]) -> list[int]:
    names = list(dict.fromkeys(each.group_id for each in played))
    return [names.index(each.group_id) for each in played]


def batch(played: Sequence[Trajectory]) -> Batch:
    """A batch whose values are a function of the prompts, like those of a value head."""
    prompts = [step.prompt_ids for each in played for step in each.decisions]
    return replace(
        batch_of(played, numbers(played), 10.0, 4), values=np.array([sum(ids) / 9 for ids in prompts])
    )


def test_every_algorithm_is_asked() -> None:
    assert set(METHODS) == set(ALGORITHMS)


@pytest.mark.parametrize("again", [from_a_file, from_the_buffer, from_a_resumed_run])
@settings(max_examples=20)
@given(groups())
def test_groups_that_were_on_disk_get_the_advantages_that_they_had(
    tmp_path_factory: pytest.TempPathFactory,
    again: Callable[[Path, Sequence[Trajectory]], list[Trajectory]],
    played: list[Trajectory],
) -> None:
    before, after = batch(played), batch(again(tmp_path_factory.mktemp("disk"), played))
    for section in METHODS.values():
        method = algorithm(section)
        new, old = (method.advantages(each, one_process) for each in (before, after))
        np.testing.assert_array_equal(old, new, section["name"])
        assert method.describe(after, one_process) == method.describe(before, one_process)


@settings(max_examples=20)
@given(groups())
def test_importance_weights_see_the_log_probabilities_that_a_file_keeps(
    tmp_path_factory: pytest.TempPathFactory, played: list[Trajectory]
) -> None:
    def ratios(trajectories: Sequence[Trajectory]) -> np.ndarray:
        samples = Batch.of_steps([step for each in trajectories for step in each.decisions])
        return LogRatios.of(samples, np.full_like(samples.logprobs, -0.1)).tokens

    after = from_a_file(tmp_path_factory.mktemp("disk"), played)
    np.testing.assert_array_equal(ratios(after), ratios(played))


def test_a_file_that_names_no_states_is_read_but_not_replayed(tmp_path: Path) -> None:
    """Version 3 does not have the column."""
    step = Step((1,), (2,), (-1.0,), "", "go", "a cliff", None, (), state_key="at the top")
    played = [Trajectory("t", "train/1/t", 0, (step,), True, True, False, "won", 0, 0)]
    keeping = buffer(tmp_path)
    keeping(1, collected(played))
    file = keeping.store.part("replay", 1)
    old = rollout_frame(played).drop("state_key", "kind", "skills", "answer")
    old.write_parquet(file, metadata={"skillpress": "rollouts/3"})
    assert read_rollouts(file) == [replace(played[0], steps=(replace(step, state_key=None),))]
    assert list(ROLLOUT_SCHEMA)[-4:] == ["state_key", "kind", "skills", "answer"]
    with pytest.raises(StorageError, match=r"replay-00000001\.parquet: schema is 'rollouts/3'"):
        keeping(2, collected([]))
