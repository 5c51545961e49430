"""f_agent: what is kept of the past, and in which order."""

from __future__ import annotations

import pytest

from skillpress.agents.state_updates import STATE_UPDATES, Concatenate, Window
from skillpress.interface import AgentState, Info, StateUpdate
from skillpress.trajectory import Task

TASK = Task("t", "countdown", 0, {})


def after(update: StateUpdate, steps: int) -> AgentState:
    state = AgentState(TASK, "O0", Info(), notes="kept")
    for k in range(steps):
        state = update(state, f"th{k}", f"A{k}", f"O{k + 1}", Info(action=f"A{k}"))
    return state


@pytest.mark.parametrize("update", [Window(0), Window(2), Concatenate()])
def test_the_next_state_holds_what_the_world_said_last(update: StateUpdate) -> None:
    state = after(update, 3)
    assert (state.task, state.observation, state.info, state.notes) == (TASK, "O3", Info(action="A2"), "kept")


def test_a_turn_pairs_an_action_with_what_was_seen_before_it() -> None:
    (turn,) = after(Concatenate(), 1).history
    assert (turn.observation, turn.thought, turn.action) == ("O0", "th0", "A0")


@pytest.mark.parametrize("turns", [0, 1, 3, 10])
def test_a_window_is_the_end_of_the_whole_history(turns: int) -> None:
    whole = after(Concatenate(), 5).history
    assert len(whole) == 5
    assert after(Window(turns), 5).history == whole[max(0, 5 - turns) :]


def test_a_rendering_without_a_limit_gets_the_whole_history() -> None:
    assert len(after(STATE_UPDATES["window"](None), 7).history) == 7
    assert len(after(STATE_UPDATES["window"](2), 7).history) == 2
    assert len(after(STATE_UPDATES["concatenate"](2), 7).history) == 7


def test_the_environments_own_state_needs_no_history() -> None:
    assert after(STATE_UPDATES["environment"](2), 7).history == ()
