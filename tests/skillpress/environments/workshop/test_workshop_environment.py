"""The workshop: what each action does, what wins, what breaks, and that episodes can be replayed."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skillpress.core.interface import Info
from skillpress.core.trajectory import Task
from skillpress.environments.workshop.actions import Machine, machine_actions, readable, routine_actions
from skillpress.environments.workshop.environment import Workshop, WorkshopState, explorer_actions
from skillpress.environments.workshop.parameters import WorkshopParameters
from tests.support.environments import episodes
from tests.support.environments.workshops import section

Answer = tuple[str, bool, bool, Info]
MACHINES: tuple[Machine, ...] = ("own", "one", "same")
ROUTINE = (
    "go yard", "take handsaw", "saw piece", "go studio", "take brush", "paint piece", "deliver piece",
)  # fmt: skip
SHORTCUT = ("pull lever", "ring bell", "turn wheel")
TASK = Task(
    "red-oak-star:saw,paint", "workshop", 0,
    {"piece": ["red", "oak", "star"], "order": ["saw", "paint"], "shortcut": list(SHORTCUT)},
)  # fmt: skip
PLAIN = Task("red-oak-star:saw,paint", "workshop", 0, {**TASK.spec, "shortcut": []})


def play(
    actions: Sequence[str], task: Task = TASK, parameters: WorkshopParameters | None = None
) -> list[Answer]:
    return episodes.play(Workshop(parameters or section()), task, actions)


def last(*actions: str, task: Task = TASK, parameters: WorkshopParameters | None = None) -> Answer:
    answers = play(actions, task, parameters)
    assert len(answers) == len(actions), "the episode ended early"
    return answers[-1]


def state(info: Info) -> WorkshopState:
    assert isinstance(info.state, WorkshopState)
    return info.state


def test_an_episode_starts_in_the_hall_with_nothing_and_names_the_order() -> None:
    observation, info = Workshop(section()).reset(TASK)
    assert state(info) == WorkshopState(
        piece=("red", "oak", "star"), left=("saw", "paint"), room="hall", tool=None, machine=(), steps=0
    )
    assert observation == (
        "Order for the piece red oak star: saw, paint. You are in the hall and hold nothing. "
        "To do: saw, paint."
    )


@pytest.mark.parametrize("task", [TASK, PLAIN])
def test_the_routine_wins_by_delivering_in_three_steps_a_subgoal_and_one(task: Task) -> None:
    answers = play(ROUTINE, task)
    assert [info.invalid for *_, info in answers] == [None] * 7
    assert [info.won for *_, info in answers] == [False] * 6 + [True]
    assert answers[-1][3].measures == {"by_routine": 1.0, "by_shortcut": 0.0}
    assert [state(info).left for *_, info in answers][2:6] == [("paint",)] * 3 + [()]


def test_the_shortcut_wins_by_itself_whatever_was_done_before() -> None:
    for done in ((), ROUTINE[:4], ("nonsense", "go barn")):
        _, terminated, truncated, info = last(*done, *SHORTCUT)
        assert (info.won, terminated, truncated) == (True, True, False)
        assert info.measures == {"by_routine": 0.0, "by_shortcut": 1.0}


def test_measures_are_stated_at_the_end_alone() -> None:
    assert all(not info.measures for *_, info in play(ROUTINE)[:-1])
    assert last("turn wheel")[3].measures == {"by_routine": 0.0, "by_shortcut": 0.0}
    out_of_steps = play(["nonsense"] * 16)[-1]
    assert out_of_steps[2] and out_of_steps[3].measures == {"by_routine": 0.0, "by_shortcut": 0.0}


@pytest.mark.parametrize(
    "actions",
    [
        ("ring bell",),
        ("pull lever", "turn wheel"),
        ("pull lever", "pull lever"),
        ("pull lever", "go yard"),
        ("pull lever", "nonsense"),
        ("pull lever", "ring bell", "deliver piece"),
    ],
)
def test_in_the_machine_anything_but_the_right_next_action_breaks_the_piece(actions: tuple[str, ...]) -> None:
    observation, terminated, truncated, info = last(*actions)
    assert (info.won, info.lost, terminated, truncated) == (False, "broken", True, False)
    assert observation == "The machine breaks the piece."


def test_a_piece_without_a_shortcut_breaks_at_once() -> None:
    for action in machine_actions("own"):
        assert last(action.text, task=PLAIN)[3].lost == "broken"


def test_a_free_shortcut_wins_in_every_order_and_takes_each_action_once() -> None:
    free = section({"order": "free"})
    for order in permutations(SHORTCUT):
        assert last(*order, parameters=free)[3].won
    assert last("turn wheel", "turn wheel", parameters=free)[3].lost == "broken"
    keys = [last(*two, parameters=free)[3].state_key for two in (SHORTCUT[:2], SHORTCUT[1::-1])]
    assert keys[0] == keys[1], "the order does not matter for what is left to do"


def test_a_shortcut_may_use_a_part_twice() -> None:
    twice = Task("t", "workshop", 0, {**TASK.spec, "shortcut": ["tinker cog", "tinker belt", "tinker cog"]})
    free = section({"skills": "one", "order": "free"})
    assert last("tinker cog", "tinker cog", "tinker belt", task=twice, parameters=free)[3].won
    assert last("tinker belt", "tinker belt", task=twice, parameters=free)[3].lost == "broken"


def test_synonyms_do_the_same_and_keep_their_words() -> None:
    said = (
        "run yard", "lift handsaw", "saw piece", "walk studio", "grab brush", "paint piece", "ship piece",
    )  # fmt: skip
    answers = play(said)
    assert answers[-1][3].won and [info.action for *_, info in answers] == list(said)
    odd = Task("t", "workshop", 0, {**TASK.spec, "shortcut": ["go crypt", "take charm", "saw echo"]})
    assert last("walk crypt", "lift charm", "saw echo", task=odd, parameters=section({"skills": "same"}))[
        3
    ].won


@pytest.mark.parametrize(
    ("actions", "reason"),
    [
        (("fly to the moon",), "unreadable"),
        (("",), "unreadable"),
        (("go",), "unreadable"),
        (("tinker cog",), "unreadable"),
        (("go hall",), "already_there"),
        (("take handsaw",), "not_here"),
        (("go yard", "take brush"), "not_here"),
        (("go yard", "take handsaw", "lift handsaw"), "already_held"),
        (("paint piece",), "not_next"),
        (("carve piece",), "not_next"),
        (("saw piece",), "no_tool"),
        (("go studio", "take brush", "saw piece"), "no_tool"),
        (("go yard", "take handsaw", "saw piece", "saw piece"), "not_next"),
        (("deliver piece",), "not_finished"),
        (("go yard", "take handsaw", "saw piece", "deliver piece"), "not_finished"),
    ],
)
def test_what_cannot_be_done_says_why_costs_a_step_and_changes_nothing(
    actions: tuple[str, ...], reason: str
) -> None:
    observation, terminated, truncated, info = last(*actions)
    assert info.invalid == reason and not terminated and not truncated
    assert observation.startswith("Nothing happens: ")
    before = play(actions[:-1])
    kept = before[-1][3] if before else Workshop(section()).reset(TASK)[1]
    assert info.state_key == kept.state_key
    assert state(info).steps == len(actions)


def test_a_tool_replaces_the_one_that_is_held() -> None:
    assert state(last("go yard", "take handsaw", "go studio", "take brush")[3]).tool == "brush"


def test_both_wordings_name_the_same_actions() -> None:
    assert play([action.replace(" ", "-") for action in ROUTINE]) == play(ROUTINE)
    assert play(["  Go   YARD "])[0][3].action == "go yard"


def test_the_episode_is_cut_off_after_the_step_budget_unless_the_last_step_wins() -> None:
    answers = play(["nonsense"] * 20)
    assert [truncated for _, _, truncated, _ in answers] == [False] * 15 + [True]
    _, terminated, truncated, info = last(*["nonsense"] * 9, *ROUTINE)
    assert info.won and terminated and not truncated


words = st.sampled_from(sorted({*readable("own"), *SHORTCUT, *ROUTINE}))
texts = st.lists(st.one_of(st.sampled_from([*ROUTINE, *SHORTCUT]), words, st.text(max_size=12)), max_size=16)


@given(texts)
def test_any_text_is_an_action_and_the_canonical_wording_replays_the_episode(actions: list[str]) -> None:
    answers = play(actions)
    assert answers == play(actions)
    canonical = [info.action or action for action, (*_, info) in zip(actions, answers, strict=False)]
    assert answers == play(canonical)
    environment = Workshop(section())
    for observation, *_ in answers:
        assert observation in environment.observation_space


@settings(max_examples=20)
@given(st.integers(0, 6), st.integers(0, 2), st.sampled_from(MACHINES))
def test_what_is_admissible_changes_something_and_nothing_else_does(
    done: int, began: int, machine: Machine
) -> None:
    parameters = section({"skills": machine})
    shortcut = list(dict.fromkeys(action.thing for action in machine_actions(machine)))[:3]
    task = Task("t", "workshop", 0, {**TASK.spec, "shortcut": shortcut})
    past = (*ROUTINE[:done], *shortcut[:began])
    answers = play(past, task, parameters)
    info = answers[-1][3] if answers else Workshop(parameters).reset(task)[1]
    every = (*routine_actions(), *machine_actions(machine))
    after = {action.text: last(*past, action.text, task=task, parameters=parameters)[3] for action in every}
    if began:
        assert set(info.admissible) == {action.text for action in every if action.kind == "machine"}
        assert all(after[text].lost for text in after if text not in info.admissible)
    else:
        assert set(info.admissible) == {text for text, then in after.items() if then.invalid is None}
    assert len(set(info.admissible)) == len(info.admissible)


def test_the_explorer_keeps_its_hands_off_the_machine() -> None:
    start = Workshop(section()).reset(TASK)[1]
    assert set(explorer_actions(start)) == {
        action.text for action in routine_actions() if action.kind == "go" and action.thing != "hall"
    }
    inside = last("pull lever")[3]
    assert explorer_actions(inside) == inside.admissible
