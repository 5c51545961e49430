"""The two renderings: fixed width for a policy from scratch, prose for a pretrained one."""

from __future__ import annotations

from skillpress.core.interface import AgentState
from skillpress.core.trajectory import Task
from skillpress.environments.countdown.environment import Countdown
from skillpress.environments.countdown.parameters import CountdownParameters
from tests.support.environments import episodes


def state_after(task: Task, parameters: CountdownParameters, *actions: str) -> AgentState:
    return episodes.state_after(Countdown(parameters), task, *actions)


def test_compact_shows_target_pool_and_the_last_words_newest_last(
    parameters: CountdownParameters, worked_example: Task
) -> None:
    rendering = parameters.rendering("compact", 3)

    def prompt(*actions: str) -> str:
        return rendering.prompt(state_after(worked_example, parameters, *actions))

    assert prompt() == "54 1 2 28 80 _ _ _"
    assert prompt("-23") == "54 1 2 52 _ _ _ -23"
    assert prompt("-23", "/12", "+12", "reset") == "54 1 2 28 80 /12 +12 reset"
    assert prompt("-23", "12 +01") == "54 1 2 52 _ _ -23 ?"


def test_without_history_compact_shows_none(parameters: CountdownParameters, worked_example: Task) -> None:
    rendering = parameters.rendering("compact", 0)
    assert rendering.prompt(state_after(worked_example, parameters, "-23")) == "54 1 2 52 _"


def test_a_prompt_that_goes_on_says_what_has_changed_and_no_more(
    parameters: CountdownParameters, worked_example: Task
) -> None:
    state = state_after(worked_example, parameters, "-23")
    assert parameters.rendering("compact", 3).continuation(state) == "1 2 52"
    said = parameters.rendering("text", 3).continuation(state)
    assert said.startswith(
        "This is step 2. You see: Numbers: 1 2 52\nThe actions that you can take now: ['op("
    )
    assert said in parameters.rendering("text", 3).prompt(state)


def test_the_vocabulary_has_each_word_once_and_numbers_up_to_the_largest(
    parameters: CountdownParameters,
) -> None:
    vocabulary = parameters.vocabulary(4)
    assert len(set(vocabulary.words)) == len(vocabulary.words)
    assert all(len(word.split()) == 1 for word in vocabulary.words)
    assert sorted(vocabulary.numbers.values()) == list(range(1000))
    assert len(vocabulary.stop_words) == 4 * 6 + 2  # four operators on six pairs of slots; two undos
    assert set(vocabulary.stop_words) <= set(vocabulary.words)


def test_text_shows_task_past_observation_and_admissible_actions(
    parameters: CountdownParameters, worked_example: Task
) -> None:
    rendering = parameters.rendering("text", 2)
    first = rendering.prompt(state_after(worked_example, parameters))
    assert "You have taken" not in first
    assert "Make 54 from the numbers 1 2 28 80" in first
    assert "'op(-, 80, 28)'" in first
    later = rendering.prompt(
        state_after(worked_example, parameters, "op(-, 80, 28)", "op(/, 52, 2)", "rollback")
    )
    assert "You have taken 3 steps" in later
    assert "Step 2: you saw 'Numbers: 1 2 52' and did 'op(/, 52, 2)'." in later
    assert "Step 3: you saw 'Numbers: 1 26' and did 'rollback'." in later
    assert "op(-, 80, 28)" not in later
    assert "This is step 4. You see: Numbers: 1 2 52" in later
    assert "'rollback', 'reset']" in later


def test_the_papers_wording_tells_the_task_as_its_appendix_does_and_the_rest_alike(
    parameters: CountdownParameters, worked_example: Task
) -> None:
    state = state_after(worked_example, parameters, "op(-, 80, 28)")
    own, paper = (parameters.rendering(name, 2).prompt(state) for name in ("text", "paper"))
    assert "reach the target 54 from the numbers 1 2 28 80" in paper
    assert f"There are at most {parameters.max_steps} steps." in paper
    rest = own[own.index("You have taken 1 steps") :]
    assert paper.endswith(rest) and own != paper


def test_brief_is_the_task_then_pools_and_actions(
    parameters: CountdownParameters, worked_example: Task
) -> None:
    rendering = parameters.rendering("brief", 2)
    first = rendering.prompt(state_after(worked_example, parameters))
    assert first.startswith("Make 54 from 1 2 28 80, each used once.")
    assert first.endswith("\nNumbers: 1 2 28 80") and "op(-, 80, 28)" not in first
    later = state_after(worked_example, parameters, "op(-, 80, 28)")
    assert rendering.continuation(later) == "Numbers: 1 2 52"
    assert "did 'op(-, 80, 28)'" in rendering.prompt(later)
    refused = state_after(worked_example, parameters, "op(-, 80, 7)")
    assert rendering.continuation(refused).startswith("Nothing happens: ")
