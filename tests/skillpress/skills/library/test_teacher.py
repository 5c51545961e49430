"""A teacher behind a real server: what it sees, how its answers are read, and that each question is asked
once."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillpress.core.trajectory import Step, Task, Trajectory
from skillpress.environments.section import projection_without_keys
from skillpress.experiment.teaching import server
from skillpress.rollouts.chat.journal import spent
from skillpress.rollouts.chat.server import ChatError
from skillpress.rollouts.workers.distributed import Ranks
from skillpress.skills.library.advice import HEADING, SkillAdvice
from skillpress.skills.library.library import GENERAL, Skill, SkillLibrary, Version
from skillpress.skills.library.parameters import TeacherParameters
from skillpress.skills.library.phrases import PlayedEpisode
from skillpress.skills.library.retrieval import by_task
from skillpress.skills.library.teacher import prompt_of, remembering, rules, taught_skills, transcript
from skillpress.training.algorithms.batch import Batch, batch_of
from skillpress.training.loop.library_evolution import LibraryEvolution
from tests.support.rollouts.chat_server import chat_server

TASKS = [
    Task("54=1,2,28,80", "countdown", 0, {"target": 54, "numbers": [80, 2, 28, 1]}, "train", "4 numbers"),
    Task("6=1,2,3", "countdown", 0, {"target": 6, "numbers": [1, 2, 3]}, "train", "3 numbers"),
]


def episode(task: Task, rollout: int, won: bool, actions: Sequence[str] = ("reset",)) -> Trajectory:
    steps = tuple(Step((), (), (), "", action, f"after {action}", None, ()) for action in actions)
    return Trajectory(
        task_id=task.task_id, group_id=f"train/2/{task.task_id}", rollout_index=rollout, steps=steps, won=won,
        terminated=won, truncated=not won, outcome="won" if won else "timeout", policy_version=1, seed=0,
        first_observation="the pool",
    )  # fmt: skip


def collected(*played: tuple[Task, int, bool]) -> Batch:
    trajectories = [episode(*each) for each in played]
    return batch_of(trajectories, [0] * len(played), 1.0, 4, [task for task, _, _ in played])


def evolution(url: str, folder: Path) -> LibraryEvolution:
    section = TeacherParameters(name="server", url=url, model="", key_variable="", max_new_tokens=200)
    return LibraryEvolution(
        every=2,
        most=1,
        projection=projection_without_keys("countdown"),
        ranks=Ranks(),
        teacher=server(section, 0, folder),
    )


def answer(prompt: str) -> str:
    which = "Divide first." if '"4 numbers"' in prompt else "Add first."
    return f"Let me think.\nRule: {which}\n2. Rule: Never reset.\nGeneral rule: Look at  the target."


EPISODES = (
    (TASKS[0], 0, False), (TASKS[0], 1, True), (TASKS[1], 0, False), (TASKS[1], 1, False),
)  # fmt: skip


def test_a_served_teacher_writes_skills_from_training_failures(tmp_path: Path) -> None:
    with chat_server(answer=answer) as (url, heard):
        evolving = evolution(url, tmp_path)
        assert evolving(1, collected(*EPISODES), None)["library/added"] == 0, "not due"
        assert evolving(2, collected(*EPISODES), None) == {"library/skills": 3.0, "library/added": 3.0}
    asked = [body["messages"][0]["content"] for body in heard.bodies]
    assert len(asked) == 2, "a question for each class that failed"
    assert all(body["temperature"] == 0 and body["max_tokens"] == 200 for body in heard.bodies)
    four = next(prompt for prompt in asked if '"4 numbers"' in prompt)
    assert 'Failure: "the pool\\n1. reset -> after reset\\nEnded: timeout"' in four
    assert 'Success: "the pool\\n1. reset -> after reset\\nEnded: won"' in four
    (version,) = evolving.library.versions
    assert version.step == 2 and len(version.failures) == 3
    assert [(skill.task_class, skill.text) for skill in version.added] == [
        (GENERAL, "Look at the target."), ("3 numbers", "Add first."), ("4 numbers", "Divide first."),
    ]  # fmt: skip
    assert version.added[2].failures == ("train/2/54=1,2,28,80/0",)
    assert spent(tmp_path / "teacher_costs.jsonl")["requests"] == 2
    advice = SkillAdvice(evolving.at, by_task, top_k=2, seed=0, compact=False)
    assert advice(TASKS[0], "", 2) == f"{HEADING}\n- Divide first.\n- Look at the target."


def test_a_killed_run_is_told_again_what_it_was_told_before_without_asking(tmp_path: Path) -> None:
    with chat_server(answer=answer) as (url, heard):
        first = evolution(url, tmp_path)
        first(2, collected(*EPISODES), None)
        again = evolution(url, tmp_path)
        again(2, collected(*EPISODES), None)
    assert again.library == first.library and len(heard.bodies) == 2


def test_a_teacher_is_found_below_the_address_as_an_evaluated_model_is(tmp_path: Path) -> None:
    def listed(path: str) -> tuple[int, dict[str, str], dict[str, str]] | None:
        return None if path == "/v1/models" else (404, {}, {"detail": "Not Found"})

    with chat_server(answer=answer, listed=listed) as (url, heard):
        evolution(url.removesuffix("/v1"), tmp_path)(2, collected(*EPISODES), None)
    assert {body["model"] for body in heard.bodies} == {"toy"} and len(heard.bodies) == 2


def test_a_rule_that_was_cut_off_is_none(tmp_path: Path) -> None:
    def cut(number: int, body: dict[str, Any], good: dict[str, Any]) -> dict[str, Any]:
        message = {"role": "assistant", "content": "Rule: Divide first.\nGeneral rule: Never drop the"}
        return {**good, "choices": [{"index": 0, "finish_reason": "length", "message": message}]}

    with chat_server(manner=cut) as (url, _):
        evolving = evolution(url, tmp_path)
        evolving(2, collected(*EPISODES), None)
    assert {skill.text for skill in evolving.library.skills} == {"Divide first."}


def test_a_teacher_that_cannot_be_asked_is_an_error_that_names_it(tmp_path: Path) -> None:
    section = TeacherParameters(name="server", url="nowhere", model="", key_variable="", max_new_tokens=9)
    with pytest.raises(ChatError, match="'nowhere' is not an address"):
        server(section, 0, tmp_path)


@pytest.mark.parametrize(
    ("response", "found"),
    [
        ("Rule: Look first.", [("Look first.", False)]),
        ("- **General rule:** Look  first.", [("Look first.", True)]),
        ("rule 3: a\nGENERAL RULE: b", [("a", False), ("b", True)]),
        ("<think>Rule: no</think>\nRule: yes", [("yes", False)]),
        ("<think>Rule: no", []),
        ("As a rule: x", []),
        ("Rule:", []),
        ("", []),
        (f"Rule: {'x' * 301}", []),
    ],
)
def test_which_lines_are_rules(response: str, found: list[tuple[str, bool]]) -> None:
    assert rules(response) == found


@given(st.text(), st.lists(st.text(), max_size=2))
def test_what_an_episode_says_stands_in_the_question_as_one_line_of_json(seen: str, told: list[str]) -> None:
    shown = [PlayedEpisode("e", "c", False, (), text) for text in (seen, *told)]
    library = SkillLibrary((Version(step=1, failures=(), added=(Skill(f"known {seen}", "c"),)),))
    lines = prompt_of(library, "c", shown, 2).split("\n")
    failures = [json.loads(line.removeprefix("Failure: ")) for line in lines if line.startswith("Failure: ")]
    assert failures == [seen, *told]
    (known,) = (line for line in lines if line.startswith("It has been told"))
    assert json.loads(known.partition("already: ")[2]) == [f"known {seen}"]


def test_what_is_known_or_said_twice_is_added_once_and_no_more_than_asked() -> None:
    played = [PlayedEpisode("e1", "c", False, (), "x"), PlayedEpisode("e2", "d", False, (), "y")]
    library = SkillLibrary((Version(step=1, failures=(), added=(Skill("old", GENERAL),)),))

    def ask(prompts: Sequence[str]) -> list[str]:
        return ["Rule: old\nRule: a\nRule: a\nRule: b\nRule: c\nGeneral rule: z"] * len(prompts)

    found = taught_skills(library, played, ask, 2)
    assert [(skill.task_class, skill.text) for skill in found] == [
        (GENERAL, "z"), ("c", "a"), ("c", "b"), ("d", "a"), ("d", "b"),
    ]  # fmt: skip
    assert taught_skills(library, [PlayedEpisode("e", "c", True, (), "x")], ask, 2) == (), "nobody failed"
    with pytest.raises(ValueError, match="gave 0 responses to 2 questions"):
        taught_skills(library, played, lambda prompts: [], 2)


def test_a_long_episode_is_told_by_its_end_and_a_long_answer_by_its_beginning() -> None:
    told = transcript(TASKS[0], episode(TASKS[0], 0, False, [f"a{n}" for n in range(1, 40)] + ["y" * 999]))
    lines = told.split("\n")
    assert lines[0] == "the pool" and lines[1].startswith("11. a11 -> ") and lines[-1] == "Ended: timeout"
    assert len(lines) == 32 and lines[-2] == f"40. {'y' * 300} -> {('after ' + 'y' * 999)[:300]}"


def test_new_questions_are_asked_beside_remembered_ones(tmp_path: Path) -> None:
    asked: list[str] = []

    def ask(prompts: Sequence[str]) -> list[str]:
        asked.extend(prompts)
        return [prompt.upper() for prompt in prompts]

    remembered = remembering(ask, tmp_path / "answers.json")
    assert remembered(["a", "b"]) == ["A", "B"] and remembered(["c", "a", "c"]) == ["C", "A", "C"]
    assert asked == ["a", "b", "c"]
