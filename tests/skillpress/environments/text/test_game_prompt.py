"""The common prompt of text games."""

from __future__ import annotations

from skillpress.core.interface import Turn
from skillpress.core.registry import PARSERS, lookup
from skillpress.environments.text.prompts import budget_note, game_prompt, tagged_answer


def test_the_first_step_shows_task_observation_and_choices() -> None:
    prompt = game_prompt("You cook. Your task: eat.", (), 0, "A kitchen.", ["look", "go east"])
    assert prompt.startswith(
        "You cook. Your task: eat.\n"
        "This is step 1. You see: A kitchen.\n"
        "The actions that you can take now: ['look', 'go east'].\n"
    )
    assert "<think>" in prompt
    assert "<action>" in prompt


def test_where_nobody_tells_what_can_be_done_no_list_is_promised() -> None:
    prompt = game_prompt("You cook.", (), 0, "A kitchen.", None)
    assert "actions that you can take" not in prompt and "from the list" not in prompt
    assert prompt.startswith("You cook.\nThis is step 1. You see: A kitchen.\n") and "<action>" in prompt


def test_past_turns_carry_the_numbers_of_their_steps() -> None:
    turns = (Turn("a", "", "look"), Turn("b", "", "wait"))
    prompt = game_prompt("MethodEpisodes.", turns, 7, "c", [])
    assert "You have taken 7 steps. The last 2 of them:\n" in prompt
    assert "Step 6: you saw 'a' and did 'look'.\nStep 7: you saw 'b' and did 'wait'.\n" in prompt
    assert "This is step 8." in prompt


def test_notes_stand_before_the_last_turns_and_no_notes_change_nothing() -> None:
    turns = (Turn("a", "", "look"),)
    plain = game_prompt("You cook.", turns, 1, "c", [])
    assert game_prompt("You cook.", turns, 1, "c", [], notes="") == plain
    prompt = game_prompt("You cook.", turns, 1, "c", [], notes="1. Thought: hm Action: look")
    added = "What you noted so far:\n1. Thought: hm Action: look\n"
    assert prompt == plain.replace("You cook.\n", f"You cook.\n{added}")


def test_the_tagged_parser_reads_a_tagged_answer() -> None:
    parsed = lookup(PARSERS, "tagged", "parser")(tagged_answer("Hm.", "go east"))
    assert (parsed.thought, parsed.action, parsed.invalid) == ("Hm.", "go east", None)


def test_what_is_left_of_steps_and_tokens_is_one_line() -> None:
    assert budget_note(3, 250) == "You have 3 steps left, and 250 tokens before earlier turns are cut.\n"
    assert budget_note(1, None) == "You have 1 step left.\n"
