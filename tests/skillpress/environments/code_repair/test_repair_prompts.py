"""The two wordings of a state."""

from __future__ import annotations

from skillpress.core.interface import AgentState, Info, Turn
from skillpress.core.trajectory import Task
from skillpress.environments.code_repair.compact import CompactRendering, all_words, longest
from skillpress.environments.code_repair.environment import RepairState
from skillpress.environments.code_repair.mutations import changes
from skillpress.environments.code_repair.programs import Program
from skillpress.environments.code_repair.prompts import OWN, TextRendering

TASK = Task("t", "code_repair", 0, {})


def seen(program: Program, **known: object) -> AgentState:
    state = RepairState(
        program="largest",
        description=program.description,
        files=("largest.py", "test_largest.py", "README.md"),
        changes=changes(program.faulty),
        visible=2,
        steps=3,
        max_steps=12,
        **known,  # type: ignore[arg-type]
    )
    return AgentState(TASK, "1 of 2 visible tests pass.", Info(state=state), (Turn("", "", "test"),))


def test_the_compact_prompt_shows_a_page_of_changes_and_what_the_tests_said_of_them(program: Program) -> None:
    prompt = CompactRendering(2).prompt(
        seen(program, passed=1, passed_first=1, applied=2, tried={1: 0, 2: 1, 3: 2})
    )
    assert prompt.startswith("tests 1 of 2 first 1 at 2 page 1 of ")
    assert " left 9 did test ; 1 variable assign name name worse 2 " in prompt
    assert set(prompt.split()) <= set(all_words()) and len(prompt.split()) <= longest(2)


def test_what_is_not_known_is_shown_so(program: Program) -> None:
    assert CompactRendering(0).prompt(seen(program)).startswith("tests ? of 2 first ? at 0 page 1 of ")


def test_the_text_prompt_holds_task_tools_and_what_is_seen(program: Program) -> None:
    prompt = TextRendering(2, OWN).prompt(seen(program))
    for part in (
        program.description,
        '{"tool": "submit"}',
        '"path": "largest.py"',
        "This is step 4.",
        "did 'test'",
    ):
        assert part in prompt
    assert "at most 12 steps" in prompt and "1 of 2 visible tests pass." in prompt
    answer = TextRendering(2, OWN).response("edit 3", Info(action='{"tool": "test"}'))
    assert answer.endswith('<action>{"tool": "test"}</action>')
