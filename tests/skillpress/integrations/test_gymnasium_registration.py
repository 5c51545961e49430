"""Our environments under gymnasium: registered by an import, checked by it, judged by the default agent."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from string import printable
from typing import Any

import gymnasium
import pytest
from gymnasium.utils.env_checker import check_env

from skillpress.core.errors import ParamsError, TaskError
from skillpress.core.registry import ENVIRONMENTS
from skillpress.core.seeds import derive
from skillpress.core.trajectory import Task
from skillpress.environments.section import environment_class, projection_without_keys
from skillpress.environments.text.spaces import AnyText
from skillpress.experiment.params import load_params, read_yaml
from skillpress.integrations.gymnasium import DEFAULT_REWARD, REGISTERED
from skillpress.rollouts.agents.reward import OutcomeReward

PUZZLE = {"spec": {"target": 54, "numbers": [80, 2, 28, 1]}}
SOLUTION = ["op(-, 28, 1)", "op(*, 27, 2)"]


def made(name: str, **changed: Any) -> gymnasium.Env:
    return gymnasium.make(f"skillpress/{name}-v0", disable_env_checker=True, **changed).unwrapped


@pytest.fixture
def data(request: pytest.FixtureRequest) -> dict[str, dict[str, Any]]:
    """The folder of each environment's data; a test is skipped if its data are missing."""
    fixtures = {
        "ALFWorld": "alfworld_data", "CodeRepair": "code_repair_data", "NotebookQA": "qa_data",
        "Search": "qa_data",
    }  # fmt: skip
    wanted = request.node.callspec.params["name"]
    return {"data": str(request.getfixturevalue(fixtures[wanted]))} if wanted in fixtures else {}


FEW = {
    "Countdown": 16, "ALFWorld": 3, "TextWorldCooking": 1, "CodeRepair": 2, "NotebookQA": 2,
    "Search": 4, "Shop": 16, "Workshop": 64,
}  # fmt: skip


def test_every_environment_of_ours_is_registered_as_its_overlay_has_it(repository: Path) -> None:
    ours = {name for name in ENVIRONMENTS if projection_without_keys(name).alphabet}
    assert {section["name"] for section in REGISTERED.values()} == ours
    for name, defaults in REGISTERED.items():
        assert f"skillpress/{name}-v0" in gymnasium.registry
        section = {key: value for key, value in defaults.items() if key != "tasks"}
        own = section["name"]
        stated = read_yaml(repository / ("params.yaml" if own == "countdown" else f"params/{own}.yaml"))[
            "environment"
        ]
        assert section.items() <= stated.items()
        environment_class(own).model_validate(section)


def test_the_default_judgement_is_that_of_the_default_experiment(repository: Path) -> None:
    section = load_params(repository / "params.yaml").reward
    stated = OutcomeReward(
        section.success, section.invalid_penalty, section.invalid_counts, section.invalid_credit
    )
    assert stated == DEFAULT_REWARD


@pytest.mark.parametrize(
    "name",
    [
        "Countdown",
        "ALFWorld",
        pytest.param("TextWorldCooking", marks=pytest.mark.thorough),
        "CodeRepair",
        "NotebookQA",
        "Search",
        "Shop",
        "Workshop",
    ],
)
@pytest.mark.filterwarnings("error::UserWarning")
def test_gymnasiums_checker_passes_and_what_is_said_is_in_the_space(
    name: str, data: dict[str, Any], tmp_path: Path
) -> None:
    games = {"games": str(tmp_path)} if name == "TextWorldCooking" else {}
    check_env(made(name, tasks=FEW[name], **data, **games))

    environment = made(name, tasks=FEW[name], **data, **games)
    said, info = environment.reset(seed=0)
    over, steps = False, 0
    while not over and steps < 12:
        assert said in environment.observation_space
        actions = info["admissible"] or ["nonsense"]
        action = actions[derive(steps, name) % len(actions)]
        assert action in environment.action_space
        said, _, terminated, truncated, info = environment.step(action)
        over, steps = terminated or truncated, steps + 1
    assert said in environment.observation_space
    environment.close()
    environment.close()


def test_a_seed_draws_the_task_and_no_seed_draws_the_next() -> None:
    environment, other = made("Countdown"), made("Countdown")
    drawn = [environment.reset(seed=5)[1]["task"], *(environment.reset()[1]["task"] for _ in range(8))]
    again = [other.reset(seed=5)[1]["task"], *(other.reset()[1]["task"] for _ in range(8))]
    assert drawn == again and len(set(drawn)) > 4
    assert made("Countdown", tasks_seed=1).reset(seed=5)[1]["task"] != drawn[0]
    assert made("Countdown", split="test").reset(seed=5)[1]["task"] != drawn[0]


def test_a_given_task_is_played_and_judged_by_the_default_agent() -> None:
    environment = made("Countdown")
    said, info = environment.reset(options={"task": {"spec": {"target": 54, "numbers": [2, 28, 1]}}})
    assert said == "Target: 54. Numbers: 1 2 28" and info["won"] is False
    said, reward, terminated, truncated, info = environment.step("op(+, 5, 5)")
    assert (reward, terminated, truncated, info["invalid"]) == (-0.01, False, False, "no_such_number")
    rewards = [environment.step(action) for action in SOLUTION]
    assert [step[1] for step in rewards] == [0.0, 10.0]
    assert rewards[-1][2] is True and rewards[-1][4]["won"] is True
    own = Task("mine", "countdown", 0, {"target": 54, "numbers": [2, 28, 1]})
    assert environment.reset(options={"task": own})[1]["task"] == "mine"


def test_another_judgement_can_be_given() -> None:
    environment = made("Countdown", reward=OutcomeReward(success=1.0, invalid_penalty=0.5))
    environment.reset(options={"task": PUZZLE})
    assert environment.step("nonsense")[1] == -0.5


def test_copies_of_an_environment_play_beside_each_other() -> None:
    both = gymnasium.make_vec("skillpress/Countdown-v0", num_envs=2, vectorization_mode="sync", tasks=16)
    said, _ = both.reset(seed=[3, 4])
    _, rewards, terminated, _, info = both.step(("nonsense", "rollback"))
    assert len(said) == 2 and rewards.tolist() == [-0.01, -0.01] and not terminated.any()
    assert list(info["invalid"]) == ["unreadable", "nothing_to_undo"]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"max_number": 3}, "skillpress environment countdown: max_number"),
        ({"max_steps": 0}, "max_steps: Input should be greater than or equal to 1"),
        ({"tasks": 0}, "tasks: is 0; must be at least 1"),
        ({"split": "exam"}, "split: is 'exam'; allowed: train, validation, test"),
    ],
)
def test_a_wrong_argument_is_refused_by_its_name(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(ParamsError, match=said):
        made("Countdown", **changed)


@pytest.mark.parametrize(
    "task", [{"spec": {"goal": 3}}, {"spek": {}}, {"spec": {}, "environment": "alfworld"}, 7]
)
def test_a_task_of_something_else_is_refused(task: Any) -> None:
    with pytest.raises(TaskError):
        made("Countdown").reset(options={"task": task})


def test_one_name_registers_and_makes() -> None:
    program = (
        "import gymnasium; print(gymnasium.make("
        "'skillpress.integrations.gymnasium:skillpress/Countdown-v0', tasks=2).reset(seed=1)[0])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout.startswith("Target: "), done.stderr


def test_spaces_are_of_their_own_and_hold_all_that_people_write() -> None:
    first, second = made("Countdown"), made("Countdown")
    assert first.action_space is not second.action_space and first.action_space == second.action_space
    assert set(first.action_space.characters) == set(printable)  # type: ignore[attr-defined]
    assert "naïve → 🙂" in AnyText(16)
