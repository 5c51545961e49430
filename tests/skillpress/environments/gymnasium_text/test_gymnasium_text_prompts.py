"""A registered environment in words: as text for pretrained models, as listed words for a scratch policy."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillpress.core.errors import ParamsError
from skillpress.core.interface import AgentState
from skillpress.core.trajectory import Task
from skillpress.environments.gymnasium_text.environment import GymnasiumText
from skillpress.environments.gymnasium_text.prompts import compact, vocabulary
from skillpress.environments.text.words import END
from skillpress.experiment.params import check_params, merge, read_yaml
from tests.support.environments.episodes import state_after
from tests.support.environments.small_games import WORDLE


def played(section, *actions: str, history: int = 5) -> AgentState:
    """The state after these actions."""
    task = Task("t", "gymnasium_text", 3, {"id": section.id})
    return state_after(GymnasiumText(section), task, *actions, keep=history)


def test_the_text_prompt_opens_with_what_the_environment_said_first_at_every_step(doors) -> None:
    rendering = doors().rendering("text", 1)
    for state in (played(doors()), played(doors(), "window")):
        assert rendering.prompt(state).startswith("start: the prize smells of")
    prompt = rendering.prompt(played(doors(), "window"))
    assert "You see: That is no door." in prompt and "did 'window'" in prompt
    assert "actions that you can take" not in prompt, "nobody tells what can be done"


def test_the_text_prompt_takes_the_sections_opening_and_shows_what_can_be_done(doors) -> None:
    section = doors(opening="Find the prizes.", actions=["left", "right"])
    prompt = section.rendering("text", 0).prompt(played(section))
    assert prompt.startswith("Find the prizes.\nThis is step 1. You see: start:")
    assert "['left', 'right']" in prompt


def test_the_compact_prompt_is_the_listed_words_in_their_order(wordle) -> None:
    section = wordle()
    shown = compact(section, 5)
    words = shown.prompt(played(section, "beach", "[child]")).split()
    turns = " ".join(words).split(" ; ")
    assert len(turns) == 3 and turns[0].endswith("> beach") and turns[1].endswith("> child")
    assert turns[1].split()[0] == "beach" and set(turns[1].split()[1:-2]) <= {"g", "y", "x"}
    assert len(turns[1].split()) == 1 + 5 + 2, "the guess, its marks, and what was done"
    assert words[-1] == ">"


@given(
    guesses=st.lists(st.sampled_from(["beach", "bread", "[child]", "nonsense", "", "x" * 30]), max_size=5),
    history=st.integers(0, 4),
)
def test_a_compact_prompt_stays_within_its_words_and_its_length(guesses: list[str], history: int) -> None:
    from skillpress.environments.gymnasium_text.parameters import GymnasiumTextParameters

    section = GymnasiumTextParameters.model_validate(WORDLE)
    known, rendering = vocabulary(section, history), compact(section, history)
    try:
        state = played(section, *guesses, history=history)
    except RuntimeError:  # the game is over
        return
    prompt = rendering.prompt(state).split()
    assert set(prompt) <= set(known.words) and len(prompt) <= known.state_words
    continued = rendering.continuation(state).split()
    assert known.continuation_words is not None and len(continued) <= known.continuation_words
    assert known.stop_words == (END,)


def test_the_compact_rendering_needs_words(doors) -> None:
    with pytest.raises(ParamsError, match=r"environment.compact: is null.*tests/Doors-v0"):
        vocabulary(doors(), 2)


@pytest.fixture
def overlaid(repository):
    """The Wordle overlay with keys changed, checked."""

    def make(**environment):
        base = merge(
            read_yaml(repository / "params.yaml"), read_yaml(repository / "params" / "wordle_smoke.yaml")
        )
        return check_params(merge(base, {"environment": environment}), "overlay")

    return make


def test_imitation_without_an_oracle_is_refused_before_any_work(overlaid) -> None:
    assert overlaid().environment.has_oracle
    with pytest.raises(ParamsError, match=r"imitation\.demonstrations is 1500, must be 0"):
        overlaid(oracle="")


def test_a_scratch_policy_without_words_is_refused_before_any_work(overlaid) -> None:
    with pytest.raises(ParamsError, match=r"environment\.compact: is null"):
        overlaid(compact=None)


@pytest.mark.parametrize("won", [{}, {"info": "won", "reward": 1.0}])
def test_won_is_told_in_one_way(overlaid, won: dict) -> None:
    with pytest.raises(ParamsError, match=r"environment\.won"):
        overlaid(won={"info": "", "reward": None} | won)
