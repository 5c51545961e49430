"""Our environments in TRL, and the reward with its buffer: without a model (tests/docs has one)."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from collections.abc import Iterator
from importlib import import_module
from math import log2
from pathlib import Path
from typing import Any

import pytest
from transformers import TrainerControl, TrainerState, TrainingArguments
from transformers.utils import get_json_schema

from skillpress.core.errors import ParamsError, StorageError, TaskError, UserError
from skillpress.integrations.trl import BUFFER, SegCostReward, ToolEnvironment, ToolEnvironments
from skillpress.rollouts.agents.reward import OutcomeReward

WINS = ("op(-, 28, 1)", "op(*, 27, 2)")
PUZZLE = {
    "task_id": "54=1,2,28", "environment": "countdown", "seed": 0, "split": "train",
    "spec": {"target": 54, "numbers": [1, 2, 28]},
}  # fmt: skip


@pytest.fixture(autouse=True)
def variables() -> Iterator[None]:
    """TRL's arguments set a launcher's variables if a process group exists, which other tests may leave
    behind."""
    before = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(before)


def countdown(**section: Any) -> ToolEnvironments:
    return ToolEnvironments("Countdown", instruction="Reach it.", **{"tasks": 4, "max_steps": 4, **section})


def played(environments: ToolEnvironments, *actions: str) -> ToolEnvironment:
    """An environment after these actions."""
    environment = environments()
    environment.reset(task=json.dumps(PUZZLE))
    for action in actions:
        environment.act(action)
    return environment


def test_a_row_is_a_task_and_the_prompt_goes_on_with_what_is_seen() -> None:
    environments = countdown()
    rows = environments.dataset()
    assert len(rows) == 4 == len({row["task"] for row in rows})
    environment = environments()
    seen = environment.reset(**rows[0])
    target = json.loads(rows[0]["task"])["spec"]["target"]
    assert f"Target: {target}." in seen and "The actions that you can take now" in seen
    assert rows[0]["prompt"] == [{"role": "user", "content": "Reach it."}]
    assert rows.to_list() == countdown().dataset().to_list(), "the same tasks in every process"


def test_the_one_tool_is_act_with_a_text() -> None:
    tools = [name for name in vars(ToolEnvironment) if not name.startswith("_") and name != "reset"]
    methods = [name for name in tools if not isinstance(vars(ToolEnvironment)[name], property)]
    assert methods == ["act"]
    schema = get_json_schema(countdown()().act)["function"]["parameters"]
    assert schema["required"] == ["action"] and schema["properties"]["action"]["type"] == "string"


def test_an_episode_is_what_was_acted_and_ends_once() -> None:
    environment = played(countdown(), *WINS)
    assert environment.act("reset") == "The episode is over: won."
    episode = environment.episode
    assert episode.actions == WINS and episode.won and episode.terminated and episode.total_reward == 10.0
    environment.reset(task=json.dumps(PUZZLE))
    assert environment.episode.actions == () and environment.episode.outcome == "timeout"


def test_admissible_actions_can_be_left_unsaid() -> None:
    environment = played(countdown(tell_admissible=False))
    assert "can take" not in environment.act("op(-, 28, 1)")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"max_numbers": 1}, "max_numbers"),
        ({"tasks": 0}, "tasks: is 0; must be at least 1"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_what_is_wrong_is_said_when_the_environments_are_named(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ParamsError, match=message):
        countdown(**wrong)


def test_unknown_names_and_rows_without_a_task_are_refused() -> None:
    with pytest.raises(ParamsError, match="name: is 'Chess'; allowed: Countdown"):
        ToolEnvironments("Chess", instruction="")
    with pytest.raises(TaskError, match=r"no column 'task'; use ToolEnvironments\.dataset"):
        countdown()().reset(prompt=[])
    with pytest.raises(ParamsError, match="set environment_factory"):
        SegCostReward(countdown())(prompts=[], completions=[])


def test_a_success_pays_for_its_phrases_and_a_failure_for_nothing() -> None:
    """No phrase pays for itself in one sequence, so both skills cost: 10 · 2 / 4 = 5."""
    environments = countdown()
    logged: dict[str, float] = {}
    batch = [played(environments, *WINS), played(environments, "nonsense"), played(environments)]
    rewards = SegCostReward(environments)(
        environments=batch, log_metric=logged.__setitem__, completions=[[], [], []], task=["", "", ""]
    )
    assert rewards == [5.0, -0.01, 0.0]
    assert logged["dictionary/segments"] == 2.0


@pytest.mark.parametrize("success", [0.9, 1.0, 100.0])
def test_a_success_pays_the_same_part_of_itself_whatever_it_is_worth(success: float) -> None:
    environments = countdown(reward=OutcomeReward(success=success, invalid_penalty=0.0))
    (reward,) = SegCostReward(environments)(environments=[played(environments, *WINS)])
    assert reward == pytest.approx(success / 2)


def test_a_reward_that_does_not_say_what_a_success_is_worth_needs_an_efficiency() -> None:
    environments = countdown(reward=lambda *step: ())
    with pytest.raises(ParamsError, match="shaping_weight: is None, must be a number"):
        SegCostReward(environments)
    SegCostReward(environments, shaping_weight=1.0)


def test_the_buffer_lasts_from_call_to_call() -> None:
    """m equal pairs of skills, K = 26 and L = 4: a phrase for the pair takes 2 log2 K + log2 L bits once and
    saves a segment each time. Alone a success pays 2 segments, after enough others 1: 10 · 1 / 4."""
    environments = countdown()
    phrase, two_segments, one_segment = 2 * log2(26) + log2(4), 2 * log2(26), log2(27)
    assert phrase / 1 + one_segment > two_segments, "of one success"
    assert phrase / 8 + one_segment < two_segments and phrase / 9 + one_segment < two_segments
    reward = SegCostReward(environments)
    alone = [played(environments, *WINS)]
    assert reward(environments=alone) == [5.0]
    assert reward(environments=alone * 7) == [7.5] * 7
    assert reward(environments=alone) == [7.5], "one success, which nine together have made cheaper"
    assert len(reward.corpus.earlier) == 9
    assert SegCostReward(environments)(environments=alone) == [5.0], "another reward remembers nothing"


def test_a_checkpoint_keeps_the_buffer(tmp_path: Path) -> None:
    environments = countdown()
    reward, resumed, state = (
        SegCostReward(environments),
        SegCostReward(environments),
        TrainerState(global_step=3),
    )
    reward(environments=[played(environments, *WINS)] * 8)
    reward.on_save(TrainingArguments(output_dir=str(tmp_path), use_cpu=True), state, TrainerControl())
    resumed.load(tmp_path / "checkpoint-3")
    assert resumed.corpus.earlier == reward.corpus.earlier and len(resumed.corpus.earlier) == 8
    with pytest.raises(StorageError, match="SegCostReward was not among the trainer's callbacks"):
        resumed.load(tmp_path / "checkpoint-4")
    (tmp_path / "checkpoint-3" / BUFFER).write_text('{"sequences": [["A"]]}')
    with pytest.raises(StorageError, match=r"skillpress_buffer\.json: the state has .sequences. and no"):
        resumed.load(tmp_path / "checkpoint-3")


def test_rounds_charges_every_step(tmp_path: Path) -> None:
    """10 - 10 · 3 / 4, and one step was not an action of the game (0.01)."""
    environments = countdown()
    batch = [played(environments, "hm", *WINS)]
    (reward,) = SegCostReward(environments, shaping="rounds")(environments=batch)
    assert reward == pytest.approx(10 - 0.01 - 10 * 3 / 4)


def test_without_trl_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "trl" else found(name))
    monkeypatch.delitem(sys.modules, "skillpress.integrations.trl")
    with pytest.raises(UserError, match=r"the package trl is not installed.*'skillpress\[trl\]'"):
        import_module("skillpress.integrations.trl")
