"""A registered environment adapted to our interface: facts, no judgement, and the same episode from the same
task."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skillpress.core.errors import ParamsError, TaskError
from skillpress.core.trajectory import Task
from skillpress.environments.countdown.parameters import CountdownParameters
from skillpress.environments.gymnasium_text.environment import GymnasiumText, explorer_actions
from skillpress.environments.gymnasium_text.parameters import GymnasiumTextParameters
from skillpress.environments.gymnasium_text.tasks import check_tasks, make_tasks
from skillpress.environments.section import SplitSizes, projection_without_keys
from tests.support.environments.small_games import DOORS

GAME = DOORS["module"]
INFO = {"admissible": "doors", "invalid": "refused", "action": "said"}


def task(seed: int = 1, id: str = "tests/Doors-v0") -> Task:
    return Task(f"{id}#{seed}", "gymnasium_text", seed, {"id": id})


def prizes(section: GymnasiumTextParameters, seed: int = 1) -> list[str]:
    from tests.support.environments.doors_game import OpensTheRightDoors

    return OpensTheRightDoors(section)(task(seed), 0.0, 0)


def test_the_keys_of_its_info_become_facts(doors) -> None:
    section = doors(info=INFO)
    environment = GymnasiumText(section)
    first, info = environment.reset(task())
    right, then = prizes(section)
    assert right in first and info.admissible == ("left", "right", "middle") and info.action is None
    said, terminated, truncated, info = environment.step("window")
    assert (said, terminated, truncated) == ("That is no door.", False, False)
    assert info.invalid == "refused" and info.measures == {"reward": 0.0}
    _, terminated, _, info = environment.step(right)
    assert not terminated and not info.won and info.invalid is None
    assert info.action == f"open {right}" and info.measures == {"reward": 0.5}
    _, terminated, truncated, info = environment.step(then)
    assert info.won and terminated and not truncated and info.lost is None
    with pytest.raises(RuntimeError, match="call reset first"):
        environment.step(then)


def test_an_end_that_is_not_won_is_lost_and_its_reward_is_a_fact(doors) -> None:
    section = doors()
    environment = GymnasiumText(section)
    environment.reset(task())
    wrong = next(door for door in ("left", "right") if door != prizes(section)[0])
    _, terminated, truncated, info = environment.step(wrong)
    assert (terminated, truncated, info.won, info.lost) == (True, False, False, "lost")
    assert info.measures == {"reward": -1.0}


@pytest.mark.parametrize(("least", "won"), [(1.5, True), (1.6, False)])
def test_a_threshold_is_on_the_rewards_of_the_whole_episode(doors, least: float, won: bool) -> None:
    section = doors(won={"reward": least})
    environment = GymnasiumText(section)
    environment.reset(task())
    first, then = prizes(section)
    assert not environment.step(first)[3].won
    _, terminated, _, info = environment.step(then)
    assert (terminated, info.won, info.lost) == (True, won, None if won else "lost")


def test_the_step_budget_and_the_environments_own_limit_truncate(doors) -> None:
    for section in (
        doors(max_steps=1, kwargs={"rooms": 3}),
        doors(id="tests/ShortDoors-v0", kwargs={"rooms": 3}),
    ):
        environment = GymnasiumText(section)
        environment.reset(task(id=section.id))
        _, terminated, truncated, info = environment.step(prizes(section)[0])
        assert (terminated, truncated, info.won, info.lost) == (False, True, False, None)


@settings(max_examples=50)
@given(action=st.text(max_size=20))
def test_any_text_is_an_action_and_one_outside_the_space_changes_nothing(action: str) -> None:
    section = GymnasiumTextParameters.model_validate(DOORS | {"max_steps": 1})
    environment = GymnasiumText(section)
    first, _ = environment.reset(task())
    inside = action in environment.action_space
    said, terminated, truncated, info = environment.step(action)
    assert terminated != truncated
    if not inside:
        assert info.invalid == ("not_in_space" if action else "no_action")
        assert said == first and info.measures == {"reward": 0.0}


@settings(max_examples=25)
@given(choices=st.lists(st.integers(0, 99), max_size=8), seed=st.integers(0, 50))
def test_countdown_through_gymnasium_and_back_is_countdown(choices: list[int], seed: int) -> None:
    section = GymnasiumTextParameters.model_validate(
        {
            "name": "gymnasium_text",
            "max_steps": 30,
            "id": "skillpress/Countdown-v0",
            "module": "skillpress.integrations.gymnasium",
            "kwargs": {"tasks": 8},
            "won": {"info": "won"},
            "info": {"admissible": "admissible", "invalid": "invalid", "action": "action"},
        }
    )
    through = GymnasiumText(section)
    said = [through.reset(task(seed, section.id))]
    numbers, target = said[0][0].split("Numbers: ")[1], said[0][0].split()[1].rstrip(".")
    puzzle = Task("p", "countdown", 0, {"target": int(target), "numbers": [*map(int, numbers.split())]})
    from skillpress.integrations.gymnasium import REGISTERED

    kept = {key: value for key, value in REGISTERED["Countdown"].items() if key != "tasks"}
    straight = CountdownParameters.model_validate(kept).make()
    expected = [straight.reset(puzzle)]
    assert said[0][0] == expected[0][0]
    info, terminated, truncated = expected[0][1], False, False
    for choice in choices:
        if terminated or truncated:
            break
        action = info.admissible[choice % len(info.admissible)] if info.admissible else "nonsense"
        observation, terminated, truncated, info = straight.step(action)
        found = through.step(action)
        assert found[:3] == (observation, terminated, truncated)
        assert (found[3].won, found[3].action) == (info.won, info.action or action)
        assert tuple(found[3].admissible) == tuple(info.admissible)


def test_the_same_task_and_actions_are_the_same_episode(doors) -> None:
    section = doors(kwargs={"rooms": 3}, info=INFO)

    def episode(seed: int) -> list:
        environment = GymnasiumText(section)
        return [environment.reset(task(seed)), *(environment.step(door) for door in prizes(section, seed))]

    assert episode(4) == episode(4)
    assert len({episode(seed)[0][0] for seed in range(20)}) == 3


def test_where_nobody_tells_what_is_admissible_the_explorer_draws_from_the_space(doors) -> None:
    environment = GymnasiumText(doors())
    _, info = environment.reset(task())
    drawn = explorer_actions(info)
    assert drawn and all(text in environment.action_space for text in drawn)
    assert drawn == explorer_actions(environment.reset(task())[1])
    _, info = GymnasiumText(doors(actions=["left"])).reset(task())
    assert explorer_actions(info) == ("left",)


def test_tasks_are_seeds_and_no_two_splits_share_one(doors) -> None:
    tasks = list(make_tasks(doors(), SplitSizes(20, 5, 10), 0))
    check_tasks(tasks)
    assert [each.split for each in tasks] == ["train"] * 20 + ["validation"] * 5 + ["test"] * 10
    assert len({each.seed for each in tasks}) == 35
    assert (
        tasks
        == list(make_tasks(doors(), SplitSizes(20, 5, 10), 0))
        != list(make_tasks(doors(), SplitSizes(20, 5, 10), 1))
    )
    with pytest.raises(TaskError, match="seed"):
        check_tasks([*tasks, tasks[0]])


def test_an_environment_that_forgets_its_seed_is_refused(doors) -> None:
    with pytest.raises(TaskError, match="cannot be replayed"):
        list(make_tasks(doors(kwargs={"fickle": True}), SplitSizes(1, 0, 1), 0))


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"won": {"info": "said_"}}, r"environment.won.info: 'said_' is not a key .*; did you mean 'said'\?"),
        ({"info": {"admissible": "dors"}}, r"environment.info.admissible: 'dors' .*; did you mean 'doors'\?"),
        ({"info": {"admissible": "todo"}}, r"environment.info.admissible: 'todo' is not a key of the info"),
        ({"info": {"action": "done"}}, r"environment.info.action: 'done' is not a key of the info"),
        (
            {"info": {"invalid": "sad"}},
            r"environment.info.invalid: 'sad' is not a key .*; did you mean 'said'\?",
        ),
        ({"won": {"info": "said"}}, "won.info: 'said' of tests/Doors-v0 is 'open .*', must be true or false"),
        ({"won": {"info": "doors"}}, "won.info: 'doors' of tests/Doors-v0 is .*, must be true or false"),
        ({"won": {"info": "alive"}}, "won.info: 'alive' of tests/Doors-v0 is true before anything was done"),
        (
            {"info": {"admissible": "said"}},
            "info.admissible: 'said' of .* is 'open .*', must be a list",
        ),
        (
            {"info": {"admissible": "alive"}},
            "info.admissible: 'alive' of .* is 'True', must be a list",
        ),
    ],
)
def test_a_key_that_the_info_never_has_or_of_another_kind_is_refused_before_anything_is_played(
    doors, changed: dict, said: str
) -> None:
    with pytest.raises(ParamsError, match=said):
        next(make_tasks(doors(**changed), SplitSizes(1, 0, 1), 0))


def test_a_key_that_may_come_with_a_win_alone_is_warned_about(
    doors, capsys: pytest.CaptureFixture[str]
) -> None:
    list(make_tasks(doors(won={"info": "prize"}), SplitSizes(1, 0, 1), 0))
    assert "environment.won.info: 'prize' is not a key of the info" in capsys.readouterr().err


def test_a_key_that_says_something_else_at_the_end_alone_wins_nothing(doors) -> None:
    environment = GymnasiumText(doors(won={"info": "outcome"}))
    observation, _ = environment.reset(task())
    wrong = next(door for door in ("left", "right", "middle") if door not in observation)
    with pytest.raises(ParamsError, match=r"won\.info: 'outcome' of .* is 'lost', must be true or false"):
        environment.step(wrong)


def test_a_task_of_another_environment_is_refused(doors) -> None:
    with pytest.raises(TaskError, match="tests/Other-v0"):
        GymnasiumText(doors()).reset(task(id="tests/Other-v0"))


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"id": "tests/Doorz-v0"}, r"environment.id: is 'tests/Doorz-v0'.*did you mean 'tests/Doors-v0'"),
        (
            {"id": "tests/Doors-v0", "kwargs": {"walls": 2}},
            "environment.id: tests/Doors-v0 cannot be made with environment.kwargs",
        ),
        ({"id": "tests/Numbers-v0"}, r"environment.id: tests/Numbers-v0 has actions of Discrete\(2\)"),
        (
            {"module": "no_such_module"},
            "'no_such_module' cannot be imported: .*no_such_module.py of your",
        ),
        ({"id": "no_such_module:Doors-v0"}, "environment.id: no_such_module:Doors-v0 cannot be made"),
        ({"id": "tests/Unmade-v0"}, "environment.id: tests/Unmade-v0 cannot be made .*no attribute 'Unmade'"),
        ({"module": "a..b"}, "environment.module: 'a..b' cannot be imported"),
    ],
)
def test_what_cannot_be_made_is_refused_with_its_key(doors, changed: dict, said: str) -> None:
    with pytest.raises(ParamsError, match=said):
        GymnasiumText(doors(**changed))


def test_a_package_that_is_not_installed_is_named_with_its_extra(wordle, monkeypatch) -> None:
    section = wordle()
    monkeypatch.delitem(sys.modules, section.module, raising=False)
    monkeypatch.setitem(sys.modules, "textarena", None)
    with pytest.raises(ParamsError, match=r"environment.module.*textarena.*'skillpress\[textarena\]'"):
        GymnasiumText(section)


def test_an_oracle_is_what_the_section_names(doors) -> None:
    section = doors(oracle=f"{GAME}:OpensTheRightDoors")
    assert section.has_oracle and not doors().has_oracle
    environment = section.make()
    environment.reset(task())
    actions = section.make_oracle()(task(), 0.0, 0)
    assert [environment.step(action) for action in actions][-1][3].won
    for named, said in (
        (
            f"{GAME}:OpenTheRightDoors",
            r"has no function 'OpenTheRightDoors'; did you mean 'OpensTheRightDoors'",
        ),
        (f"{GAME}:DOORS", "has tuple, no function, as 'DOORS'"),
        (
            f"{GAME}:takes_nothing",
            "must take one argument, the section: too many positional",
        ),
        (GAME, "must be module:function"),
        (":Nobody", "must be module:function"),
        ("doors_gmae:Nobody", "'doors_gmae' cannot be imported"),
    ):
        for refuse in (doors(oracle=named).make_oracle, doors(oracle=named).inputs):
            with pytest.raises(ParamsError, match=said):
                refuse()


def test_what_decides_episodes_outside_the_repository_is_pinned(doors, wordle) -> None:
    found = doors(oracle=f"{GAME}:OpensTheRightDoors").inputs()
    assert found.keys() == {"gymnasium", GAME} and len(found[GAME]) == 32
    assert wordle().inputs().keys() == {"gymnasium", "textarena", "nltk"}


def test_skills_are_those_that_the_section_states(doors) -> None:
    section = doors(skills={"rules": [["open left", "West"]], "verbs": ["open"]})
    assert section.make_projection().alphabet == ("West", "open")
    assert doors().make_projection().alphabet == () == projection_without_keys("gymnasium_text").alphabet
