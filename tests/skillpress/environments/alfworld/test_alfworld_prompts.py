"""ALFWorld in words: every word is in the vocabulary, and prompts stay short."""

from __future__ import annotations

from skillpress.core.interface import AgentState, Info, Turn
from skillpress.core.registry import PARSERS, lookup
from skillpress.core.trajectory import Task
from skillpress.environments.alfworld.actions import NOTHING_HAPPENS
from skillpress.environments.alfworld.compact import all_words, longest, vocabulary
from skillpress.environments.alfworld.environment import AlfworldState
from skillpress.environments.alfworld.memory import Memory
from skillpress.environments.alfworld.parameters import AlfworldParameters
from skillpress.environments.text.words import END, UNKNOWN
from skillpress.models.policy.scratch import build_scratch_policy

HISTORY = 4
TASK = Task("t", "alfworld", 0, {"game": "train/pick_and_place_simple-Mug-None-Bed-301/trial/game.tw-pddl"})
SECTION = AlfworldParameters(name="alfworld", max_steps=50)


def seen(memory: Memory, observation: str = "You see.", history: tuple[Turn, ...] = ()) -> AgentState:
    state = AlfworldState("put a clean cloth in cabinet", memory, len(history))
    return AgentState(TASK, observation, Info(admissible=("go to bed 1", "help"), state=state), history)


def test_the_compact_prompt_tells_what_is_known() -> None:
    memory = Memory(
        ("cabinet 2", "cabinet 1", "shelf 1", "cabinet 4", "sinkbasin 1", "bathtubbasin 1"),
        {"cabinet 4": ("soapbar 1", "cloth 3"), "sinkbasin 1": (), "bathtubbasin 1": ("cloth 1", "candle 1")},
        frozenset(), "cabinet 4", "cloth 2", {"cloth 2": "clean"},
    )  # fmt: skip
    history = (Turn("a", "", "go to cabinet 4"), Turn("Nothing happens.", "", "open Cabinet 4"))
    assert SECTION.rendering("compact", HISTORY).prompt(seen(memory, "You open it.", history)) == (
        "task put a clean cloth in cabinet new cabinet 2 shelf 1 "
        "use cabinet 4 sinkbasin 1 bathtubbasin 1 seen cloth 3 on cabinet 4 cloth 1 on bathtubbasin 1 "
        "did go to cabinet 4 failed open cabinet 4 ; "
        "hold cloth 2 clean at cabinet 4 open see cloth 3"
    )


def test_before_the_first_step_little_is_known() -> None:
    prompt = SECTION.rendering("compact", HISTORY).prompt(seen(Memory(("bed 1", "desk 2", "desk 1"))))
    assert prompt == "task put a clean cloth in cabinet new bed 1 desk 2 use seen did hold nothing at middle"


def test_a_word_of_no_action_is_marked_and_no_history_shows_none() -> None:
    state = seen(Memory(("bed 1",)), history=(Turn("a", "", "dance wildly with desk 1"),))
    assert f"did {UNKNOWN} {UNKNOWN} with desk 1 ; hold" in SECTION.rendering("compact", HISTORY).prompt(
        state
    )
    assert "did hold" in SECTION.rendering("compact", 0).prompt(state)


def test_a_prompt_that_goes_on_tells_what_is_held_and_what_is_here() -> None:
    memory = Memory(("bed 1", "desk 2"), {"desk 2": ("cd 1", "cloth 1")}, frozenset(), "desk 2")
    rendering = SECTION.rendering("compact", HISTORY)
    assert rendering.continuation(seen(memory, "You arrive.")) == "hold nothing at desk 2 open see cloth 1"
    assert rendering.continuation(seen(memory, NOTHING_HAPPENS)).startswith("failed hold nothing at desk 2")


def test_the_fullest_room_and_the_longest_history_fit() -> None:
    kinds = [f"drawer {n}" for n in range(1, 28)] + [f"cabinet {n}" for n in range(1, 28)]
    places = (*kinds, *(f"{name} 1" for name in ("fridge", "microwave", "sinkbasin", "toaster", "shelf")))
    every_other = {place: tuple(f"cloth {n}" for n in range(1, 25)) for place in places[::2]}
    memory = Memory(places, every_other, frozenset(), "drawer 1", "cloth 2", {"cloth 2": "hot"})
    history = (Turn("a", "", "clean cloth 2 with sinkbasin 1"),) * 9
    prompt = SECTION.rendering("compact", HISTORY).prompt(seen(memory, history=history)).split()
    assert len(prompt) <= longest(HISTORY) == vocabulary(HISTORY).state_words
    assert {"new", "use", "seen", "did", "hold", "at", "see"} <= set(prompt), "a section was cut off"


def test_a_response_of_several_words_ends_with_its_own_and_comes_back_without_it() -> None:
    words = vocabulary(HISTORY)
    assert len(set(words.words)) == len(words.words)
    policy = build_scratch_policy(words, 16, 1, 2, 8, seed=0)
    for action in ("go to drawer 12", "clean soapbar 1 with sinkbasin 1", "inventory"):
        ids = policy.encode_response(action)
        assert len(ids) == len(action.split()) + 1
        assert ids[-1] in policy.stop_token_ids
        assert policy.decode(ids) == action
        assert lookup(PARSERS, "plain", "parser")(policy.decode(ids)).action == action
    assert policy.tokenizer.convert_tokens_to_ids(END) in policy.stop_token_ids


def test_numbers_and_names_stand_for_themselves() -> None:
    words = all_words()
    assert {"30", "toiletpaperhanger", "bathtubbasin", "desklamp", "cd", "tvstand"} <= set(words)
    assert vocabulary(1).numbers["27"] == 27


def test_the_text_prompt_holds_task_history_and_admissible_actions() -> None:
    state = seen(
        Memory(("bed 1",)), "You arrive.", (Turn("Welcome.", "", "look"), Turn("Facing.", "", "go to bed 1"))
    )
    prompt = SECTION.rendering("text", 1).prompt(state)
    assert "Your task: put a clean cloth in cabinet\n" in prompt
    assert "You have taken 2 steps. The last 1 of them:\n" in prompt
    assert "Step 2: you saw 'Facing.' and did 'go to bed 1'." in prompt
    assert "Welcome" not in prompt
    assert "This is step 3. You see: You arrive.\n" in prompt
    assert "take now: ['go to bed 1']." in prompt
    told = SECTION.rendering("paper", 1).prompt(state)
    assert "at most 50 steps.\nYour task: put a clean cloth in cabinet\n" in told
    assert told.endswith(prompt[prompt.index("You have taken 2 steps") :])
