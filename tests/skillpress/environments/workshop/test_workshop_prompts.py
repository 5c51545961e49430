"""The renderings: fixed width for a policy from scratch, prose for a pretrained one, and no shortcut."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skillpress.core.interface import AgentState
from skillpress.core.trajectory import Task
from skillpress.environments.workshop.actions import Machine, machine_actions, readable
from skillpress.environments.workshop.environment import Workshop
from skillpress.environments.workshop.oracle import WorkshopOracle
from skillpress.environments.workshop.parameters import WorkshopParameters
from tests.support.environments import episodes
from tests.support.environments.workshops import made, section


def state_after(task: Task, parameters: WorkshopParameters, *actions: str) -> AgentState:
    return episodes.state_after(Workshop(parameters), task, *actions)


def test_compact_shows_the_piece_what_is_left_room_tool_machine_and_the_last_actions(
    parameters: WorkshopParameters, task: Task
) -> None:
    rendering = parameters.rendering("compact", 2)

    def prompt(*actions: str) -> str:
        return rendering.prompt(state_after(task, parameters, *actions))

    assert prompt() == "red oak star saw paint _ hall _ _ _ _ _ _"
    assert prompt("go-yard") == "red oak star saw paint _ yard _ _ _ _ _ go-yard"
    assert (
        prompt("go yard", "take handsaw", "saw piece", "hello there")
        == "red oak star paint _ _ yard handsaw _ _ _ saw-piece ?"
    )
    assert (
        prompt("pull lever", "ring bell")
        == "red oak star saw paint _ hall _ pull-lever ring-bell _ pull-lever ring-bell"
    )


@settings(max_examples=30)
@given(
    machine=st.sampled_from(["own", "same", "one"]),
    history=st.integers(0, 2),
    number=st.integers(0, 115),
    seed=st.integers(0, 99),
)
def test_every_prompt_has_its_width_and_is_made_of_the_vocabularys_words(
    machine: Machine, history: int, number: int, seed: int
) -> None:
    parameters = section({"skills": machine}, synonyms=3)
    tasks = made(parameters)
    task = tasks[number % len(tasks)]
    vocabulary = parameters.vocabulary(history)
    rendering = parameters.rendering("compact", history)
    assert rendering.history == history
    words = WorkshopOracle(parameters)(task, 0.5, seed)
    for done in range(len(words)):
        state = state_after(task, parameters, *words[:done])
        said, further = rendering.prompt(state).split(), rendering.continuation(state).split()
        assert len(said) == vocabulary.state_words and len(further) == vocabulary.continuation_words
        assert {*said, *further} <= set(vocabulary.words)
        assert rendering.response(words[done], state.info) in vocabulary.stop_words


@pytest.mark.parametrize("machine", ["own", "same", "one"])
def test_the_vocabulary_has_each_word_once_and_every_action(machine: Machine) -> None:
    parameters = section({"skills": machine})
    vocabulary = parameters.vocabulary(0)
    assert len(set(vocabulary.words)) == len(vocabulary.words)
    assert all(len(word.split()) == 1 for word in vocabulary.words)
    read = {readable(machine)[word] for word in vocabulary.stop_words}
    assert len(read) == len(vocabulary.stop_words)
    assert {action.text for action in machine_actions(machine)} <= {action.text for action in read}


def test_before_the_machine_is_used_a_prompt_does_not_depend_on_the_shortcut(
    parameters: WorkshopParameters, task: Task
) -> None:
    plain = Task(task.task_id, "workshop", 0, {**task.spec, "shortcut": []})
    for name in parameters.renderings():
        rendering = parameters.rendering(name, 2)
        for actions in ((), ("go yard", "nonsense")):
            with_it, without = (state_after(each, parameters, *actions) for each in (task, plain))
            assert rendering.prompt(with_it) == rendering.prompt(without)


def test_text_tells_piece_order_recipe_past_and_choices(parameters: WorkshopParameters, task: Task) -> None:
    prompt = parameters.rendering("text", 1).prompt(state_after(task, parameters, "go yard", "go barn"))
    assert "Your task is the piece red oak star. Its order, in this sequence: saw, paint;" in prompt
    assert "saw: handsaw, yard; paint: brush, studio" in prompt
    assert "You have taken 2 steps. The last 1 of them:\nStep 2: you saw 'You are in the yard" in prompt
    assert "You see: You are in the barn and hold nothing. To do: saw, paint." in prompt
    assert "'take gluepot'" in prompt and "'take brush'" not in prompt and "'pull lever'" in prompt


def test_the_papers_wording_names_the_step_budget(parameters: WorkshopParameters, task: Task) -> None:
    state = state_after(task, parameters)
    own, paper = (parameters.rendering(name, 0).prompt(state) for name in ("text", "paper"))
    assert "There are at most 16 steps." in paper and "saw: handsaw, yard; paint: brush, studio" in paper
    assert own != paper and own[own.index("This is step 1") :] == paper[paper.index("This is step 1") :]


def test_domain_words_are_the_beginnings_and_objects_of_actions_and_the_words_of_pieces(
    parameters: WorkshopParameters,
) -> None:
    words = parameters.domain_words()
    assert {"go", "walk", "run", "saw", "deliver", "pull"} <= set(words["actions"])
    assert {" red", " oak", " star", " yard", " handsaw", " piece", " lever"} <= set(words["entities"])
    every = [*words["actions"], *words["entities"]]
    assert len(set(every)) == len(every) and all(word.strip().isalpha() for word in every)
