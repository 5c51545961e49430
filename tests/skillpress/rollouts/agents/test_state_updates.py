"""f_agent: what is kept of the past, and in which order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from skillpress.core.interface import AgentState, Info, StateUpdate
from skillpress.core.registry import STATE_UPDATES, lookup
from skillpress.core.trajectory import Task
from skillpress.experiment.experiment import Experiment
from skillpress.experiment.params import check_params, merge, read_yaml
from skillpress.rollouts.agents.state_updates import LONGEST_SECTION, Concatenate, Notepad, Window

ROOT = Path(__file__).parents[4]
TASK = Task("t", "countdown", 0, {})


def after(update: StateUpdate, steps: int) -> AgentState:
    state = AgentState(TASK, "O0", Info(), notes="kept")
    for k in range(steps):
        state = update(state, f"th{k}", f"A{k}", f"O{k + 1}", Info(action=f"A{k}"))
    return state


@pytest.mark.parametrize("update", [Window(0), Window(2), Window(None), Concatenate(2)])
def test_the_next_state_holds_what_the_environment_said_last(update: StateUpdate) -> None:
    state = after(update, 3)
    assert (state.task, state.observation, state.info, state.notes) == (TASK, "O3", Info(action="A2"), "kept")


def test_a_turn_pairs_an_action_with_what_was_seen_before_it() -> None:
    (turn,) = after(Window(None), 1).history
    assert (turn.observation, turn.thought, turn.action) == ("O0", "th0", "A0")


@pytest.mark.parametrize("turns", [0, 1, 3, 10])
def test_a_window_is_the_end_of_the_whole_history(turns: int) -> None:
    whole = after(Window(None), 5).history
    assert len(whole) == 5
    assert after(Window(turns), 5).history == whole[max(0, 5 - turns) :]


def test_a_rendering_without_a_limit_gets_the_whole_history() -> None:
    assert len(after(lookup(STATE_UPDATES, "window", "state update")(None), 7).history) == 7
    assert len(after(lookup(STATE_UPDATES, "window", "state update")(2), 7).history) == 2


def test_what_is_concatenated_grows_and_keeps_a_windows_turns_for_prompts_that_begin_anew() -> None:
    made = {name: lookup(STATE_UPDATES, name, "state update")(2) for name in STATE_UPDATES}
    assert [name for name, update in made.items() if update.grows] == ["concatenate"]
    assert after(made["concatenate"], 5) == after(made["window"], 5)


def test_the_environments_own_state_needs_no_history() -> None:
    assert after(lookup(STATE_UPDATES, "environment", "state update")(2), 7).history == ()


def observations(turns: int | None) -> StateUpdate:
    made: StateUpdate = lookup(STATE_UPDATES, "observations", "state update")(turns)
    return made


@pytest.mark.parametrize("turns", [0, 1, 2, 9, None])
def test_observations_keeps_the_windows_turns_and_a_line_for_every_step(turns: int | None) -> None:
    start = AgentState(TASK, "O0", Info())
    state, windowed = start, start
    for k in range(4):
        step = (f"th{k}", f"A{k}", f"O{k + 1}", Info())
        state = observations(turns)(state, *step)
        windowed = lookup(STATE_UPDATES, "window", "state update")(turns)(windowed, *step)
    assert state.history == windowed.history and state.observation == "O4"
    assert state.notes.splitlines() == [f"{k + 1}. Thought: th{k} Action: A{k}" for k in range(4)]


def test_a_step_is_one_line_of_notes_whatever_was_thought() -> None:
    state = AgentState(TASK, "O0", Info())
    for thought, action in (("first\n\n  then", "look"), ("", "wait"), ("lost", "")):
        state = observations(1)(state, thought, action, "O", Info())
    assert state.notes.splitlines() == [
        "1. Thought: first then Action: look", "2. Action: wait", "3. Thought: lost Action: (none)",
    ]  # fmt: skip


def test_a_text_prompt_shows_all_thoughts_and_actions_and_the_last_observation_alone() -> None:
    experiment = Experiment(
        check_params(
            merge(
                read_yaml(ROOT / "params.yaml"),
                {
                    "policy": {
                        "model": "smollm2-135m", "rendering": "text", "state_update": "observations",
                        "history": 1,
                    }
                },
            ),
            "test",
        )
    )  # fmt: skip
    task = Task("t", "countdown", 0, {"target": 54, "numbers": [80, 2, 28, 1]})
    environment = experiment.params.environment.make()
    state = AgentState(task, *environment.reset(task))
    seen = [state.observation]
    for thought, action in (("go down", "op(-, 80, 28)"), ("halve it", "op(/, 52, 2)"), ("no", "rollback")):
        observation, _, _, info = environment.step(action)
        state = experiment.state_update(state, thought, action, observation, info)
        seen.append(observation)
    prompt = experiment.rendering.prompt(state)
    for line in ("1. Thought: go down Action: op(-, 80, 28)", "2. Thought: halve it", "3. Thought: no"):
        assert line in prompt
    assert f"Step 3: you saw '{seen[2]}' and did 'rollback'." in prompt
    assert seen[3] in prompt and f"'{seen[0]}'" not in prompt and "Step 2: you saw" not in prompt


@dataclass(frozen=True)
class Desk:
    """An environment's state with a notepad."""

    notepad: Mapping[str, str]


def noted(*pages: Mapping[str, str] | None, turns: int = 1) -> AgentState:
    """The agent's state after one step for each notepad; None is a state without a notepad."""
    state = AgentState(TASK, "O0", Info())
    for k, each in enumerate(pages):
        info = Info() if each is None else Info(state=Desk(each))
        state = Notepad(turns)(state, "", f"A{k}", f"O{k + 1}", info)
    return state


def test_the_notes_are_the_environments_notepad_as_it_stands_now() -> None:
    before, now = {"plan": "look"}, {"plan": "search\nread", "facts": " \n", "drafts": "- 1912"}
    assert noted(before, now).notes == "plan:\nsearch\nread\ndrafts:\n- 1912"
    assert [turn.action for turn in noted(before, now).history] == ["A1"]


def test_an_empty_notepad_and_none_leave_no_notes() -> None:
    assert noted({"plan": "look"}, {"plan": "", "facts": ""}).notes == ""
    assert noted({"plan": "look"}, None).notes == ""


def test_a_long_section_is_shortened_and_says_so() -> None:
    notes = noted({"plan": "look", "drafts": "x" * 10_000}).notes
    assert notes.startswith("plan:\nlook\ndrafts:\nxxx") and "8000 characters left out" in notes
    assert len(notes) < LONGEST_SECTION + 100
