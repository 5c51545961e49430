"""The skills of a program's responses."""

from __future__ import annotations

from dataclasses import replace

from skillpress.core.trajectory import Step, Task, Trajectory
from skillpress.environments.bundle import bundle
from skillpress.environments.program.skills import ProgramProjection, said_by
from skillpress.environments.text.stated_rules import StatedRules
from skillpress.play.programs.requests import Reply, ToolCall

RULES = StatedRules(
    rules=[["bash ls *", "Look"], ["edit view *", "Look"], ["edit *", "Edit"]], verbs=["submit"]
)
STEP = Step((), (), (), "", "", "", None, ())
TASK = Task("a", "program", 0, {"id": "a"})


def episode(*replies: Reply) -> Trajectory:
    steps = tuple(replace(STEP, action=reply.as_action()) for reply in replies)
    return Trajectory("a", "g", 0, steps, True, True, False, "won", 0, 0)


def test_a_response_of_several_calls_has_their_skills_in_order() -> None:
    calls = (
        ToolCall("edit", {"command": "view", "path": "a.py"}),
        ToolCall("edit", {"command": "insert", "line": 3}),
        ToolCall("bash", {"command": "rm -r src"}),
    )
    found = ProgramProjection(RULES)(
        TASK, episode(Reply("", calls), Reply("submit the answer"), Reply("well"))
    )
    assert found == (("Look", "Edit"), ("submit",), ())


def test_a_call_is_read_as_its_tool_and_the_words_of_its_arguments() -> None:
    reply = Reply("some words", (ToolCall("bash", {"command": "ls -l src", "seconds": 3}),))
    assert said_by(reply.as_action()) == ["bash ls -l src 3"]


def test_the_section_states_the_alphabet() -> None:
    found = bundle("program")
    section = found.parameters(
        name="program",
        max_steps=1,
        run="a:b",
        tasks="none",
        verify="a:b",
        seconds=1,
        walls="none",
        skills=RULES,
    )
    assert found.projection_of(section).alphabet == ("Look", "Edit", "submit")
