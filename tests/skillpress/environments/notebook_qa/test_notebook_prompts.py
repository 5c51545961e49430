"""Questions in words: for pretrained models, and for a policy trained from scratch."""

from __future__ import annotations

import pytest

from skillpress.core.interface import AgentState
from skillpress.core.trajectory import Task
from skillpress.environments.notebook_qa.parameters import NotebookQaParameters
from skillpress.environments.sandboxed import SandboxedEnvironment
from skillpress.rollouts.agents.state_updates import Window


def after(environment: SandboxedEnvironment, task: Task, *cells: str) -> AgentState:
    observation, info = environment.reset(task)
    state = AgentState(task, observation, info)
    for cell in cells:
        observation, _, _, info = environment.step(cell)
        state = Window(4)(state, "hm", cell, observation, info)
    return state


@pytest.mark.parametrize("name", ["text", "paper"])
def test_a_prompt_shows_task_tools_notes_past_cells_and_what_is_left(
    name: str, parameters: NotebookQaParameters, environment: SandboxedEnvironment, task: Task
) -> None:
    rendering = parameters.rendering(name, 4)
    first = rendering.prompt(after(environment, task))
    assert task.spec["question"] in first and "search(query, k=5)" in first and "<output>\n" not in first
    assert "You have 8 steps left" in first
    state = after(environment, task, "print('seen')", "1 + 1")
    later = rendering.prompt(AgentState(task, state.observation, state.info, state.history, "facts:\n- a"))
    assert "<think>hm</think>\n<code>\nprint('seen')\n</code>\n<output>\nseen\n</output>" in later
    assert "<output>\n2\n</output>" in later and "facts:\n- a" in later and "You have 6 steps left" in later
    assert rendering.continuation(state).startswith("<output>\n2\n</output>\n")


def test_without_turns_the_last_output_is_shown_all_the_same(
    parameters: NotebookQaParameters, environment: SandboxedEnvironment, task: Task
) -> None:
    state = after(environment, task, "print('seen')")
    assert "<output>\nseen\n</output>" in parameters.rendering("text", 0).prompt(state)


def test_what_the_compact_prompt_says(
    parameters: NotebookQaParameters, environment: SandboxedEnvironment, task: Task
) -> None:
    prompt = parameters.rendering("compact", 4).prompt(
        after(environment, task, "search entity 1", "read title 1")
    )
    assert prompt.startswith("ask where was the director of the film e1 born ? titles 1 read n4 ")
    assert " answers 1 title 1 n2 asked 2 " in prompt
    assert prompt.endswith("did search entity 1 ; read title 1 ;")
