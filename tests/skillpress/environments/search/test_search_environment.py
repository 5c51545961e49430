"""Search-R1's interface: tags, passages, the last step without a search, and exact match."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from skillpress.core.interface import AgentState, Turn
from skillpress.core.trajectory import Task
from skillpress.environments.search.actions import search
from skillpress.environments.search.environment import UNREADABLE, SearchEpisodes
from skillpress.environments.search.parameters import SearchParameters
from tests.support.episodes import made_step, made_trajectory

QUERY = "<search>{}</search>"
ANSWER = "<answer>{}</answer>"


@pytest.fixture
def environment(parameters: SearchParameters) -> SearchEpisodes:
    made = parameters.make()
    assert isinstance(made, SearchEpisodes)
    return made


def film_of(task: Task) -> str:
    return str(task.spec["supporting_titles"][0])


def test_a_search_returns_its_passages_in_the_published_form(
    environment: SearchEpisodes, tasks: list[Task]
) -> None:
    film, director = tasks[0].spec["supporting_titles"]
    environment.reset(tasks[0])
    seen, *over, info = environment.step(QUERY.format(f"{film} film"))
    lines = seen.split("\n")
    assert lines[:2] == ["", ""] and lines[-2:] == ["", ""]
    assert lines[2].startswith(f"<information>Doc 1(Title: {film}) {film} is a film of ")
    assert lines[3].startswith("Doc 2(Title: ") and lines[3].endswith("</information>") and len(lines) == 6
    assert over == [False, False] and info.action == QUERY.format(f"{film} film") and info.invalid is None
    assert f"directed by {director}" in seen


def test_long_passages_are_cut(parameters: SearchParameters, tasks: list[Task]) -> None:
    environment = parameters.model_copy(update={"passage_characters": 100, "top_k": 1}).make()
    environment.reset(tasks[0])
    text = environment.step(QUERY.format(tasks[0].spec["supporting_titles"][1]))[0].partition(") ")[2]
    assert len(text.partition("</information>")[0]) <= 100


def test_an_answer_ends_the_episode_and_is_compared_after_normalisation(
    environment: SearchEpisodes, tasks: list[Task]
) -> None:
    town = tasks[0].spec["answers"][0]
    environment.reset(tasks[0])
    seen, terminated, truncated, info = environment.step(ANSWER.format(f"the {town.upper()}."))
    assert (seen, terminated, truncated, info.won, info.lost) == ("", True, False, True, None)
    assert info.measures == {"exact_match": 1.0, "f1": 1.0, "has_answer": 1.0}
    with pytest.raises(RuntimeError, match="over"):
        environment.step(ANSWER.format(town))
    environment.reset(tasks[0])
    info = environment.step(ANSWER.format(f"{town} in the north"))[3]
    assert (info.won, info.lost, info.measures["exact_match"]) == (False, "wrong_answer", 0.0)
    assert 0 < info.measures["f1"] < 1


def test_the_last_step_has_no_search(environment: SearchEpisodes, tasks: list[Task]) -> None:
    for ending, truncated in ((QUERY.format("a film"), True), (ANSWER.format("Rome"), False)):
        _, info = environment.reset(tasks[0])
        assert "search question" in info.admissible
        for _ in range(3):
            info = environment.step("search question")[3]
        assert info.admissible and not any(each.startswith("search") for each in info.admissible)
        seen, *over, info = environment.step(ending)
        assert over == [not truncated, truncated]
        assert info.invalid == ("no_search_left" if truncated else None)
        assert "<information>" not in seen


@pytest.mark.parametrize("action", ["", "read", "search entity 7", "answer entity 1", "<search> </search>"])
def test_what_is_no_action_costs_its_step(
    environment: SearchEpisodes, tasks: list[Task], action: str
) -> None:
    environment.reset(tasks[0])
    seen, _, _, info = environment.step(action)
    assert (seen, info.invalid, info.action) == (UNREADABLE, "unreadable", None)


def test_equal_states_have_one_key_whatever_the_order_of_queries(
    environment: SearchEpisodes, tasks: list[Task]
) -> None:
    keys = []
    for queries in (("Ada", "Paul"), ("paul", "The Ada", "ada"), ("Ada",)):
        environment.reset(tasks[0])
        keys.append([environment.step(QUERY.format(query))[3].state_key for query in queries][-1])
    assert keys[0] == keys[1] != keys[2]


@pytest.mark.parametrize(
    ("response", "thought", "action", "invalid", "kept"),
    [
        ("I look. <search> a  b </search> <answer>c</answer>", "I look.", "<search>a b</search>", None, 31),
        ("<think>x</think><answer>c</answer> <search>d</search>", "x", "<answer>c</answer>", None, 34),
        ("<search>a <answer>c</answer>", "<search>a", "<answer>c</answer>", None, 28),
        ("<search>a</search>\n<information>made up</information>", "", "<search>a</search>", None, 18),
        ("<answer>\n</answer>", "", "", "empty", 18),
        ("the answer is c", "the answer is c", "", "missing_action", None),
        (f"<search>{'a' * 1001}</search>", "", "", "too_long", 1018),
    ],
)
def test_the_first_closed_tag_counts_and_the_response_ends_there(
    response: str, thought: str, action: str, invalid: str | None, kept: int | None
) -> None:
    parsed = search(response)
    assert (parsed.thought, parsed.action, parsed.invalid, parsed.end) == (thought, action, invalid, kept)


def test_many_open_tags_take_linear_time() -> None:
    assert search("<search>" * 300_000 + "</answer>").invalid == "missing_action"


def test_the_text_prompt_is_the_question_and_the_turns_and_says_when_it_is_the_last(
    parameters: SearchParameters, environment: SearchEpisodes, tasks: list[Task]
) -> None:
    rendering = parameters.rendering("text", 2)
    observation, info = environment.reset(tasks[0])
    state = AgentState(tasks[0], observation, info)
    assert rendering.prompt(state).endswith(f"Question: {tasks[0].spec['question']}\n")
    turns = []
    for _ in range(3):
        turns.append(Turn(state.observation, "why", QUERY.format("Rome")))
        observation, _, _, info = environment.step(turns[-1].action)
        state = replace(state, observation=observation, info=info, history=tuple(turns))
    told = rendering.prompt(state)
    assert told.count(f"<think>why</think>\n{QUERY.format('Rome')}{observation}") == 2
    assert told.endswith("answer now.\n") and rendering.continuation(state).startswith(observation)
    parsed = search(rendering.response("answer yes", replace(info, action=ANSWER.format("yes"))))
    assert (parsed.action, parsed.invalid) == (ANSWER.format("yes"), None)


def test_a_prompt_of_ones_own_is_answered_in_the_same_tags(
    parameters: SearchParameters, environment: SearchEpisodes, tasks: list[Task], tmp_path: Path
) -> None:
    (tmp_path / "mine.jinja").write_text(
        "{{ own.question }}{% for t in history %}{{ t.observation }}{% endfor %}"
    )
    rendering = parameters.rendering(str(tmp_path / "mine.jinja"), 2)
    observation, info = environment.reset(tasks[0])
    state = AgentState(tasks[0], observation, info, (Turn("<information>", "", QUERY.format("a")),))
    assert rendering.prompt(state) == f"{tasks[0].spec['question']}<information>"
    assert rendering.continuation(state) == observation and rendering.parser == "search"
    said = rendering.response("answer yes", replace(info, action=ANSWER.format("yes")))
    assert search(said).action == ANSWER.format("yes")


def test_skills_tell_a_first_query_a_further_one_a_repeated_one_and_an_answer(
    parameters: SearchParameters, tasks: list[Task]
) -> None:
    said = [
        QUERY.format("the film Ada"),
        QUERY.format("Paul"),
        QUERY.format("Film, Ada!"),
        "go",
        ANSWER.format("x"),
    ]
    trajectory = made_trajectory(steps=[made_step(action=each) for each in said])
    found = parameters.make_projection()(tasks[0], trajectory)
    assert found == (("Search",), ("FollowUp",), ("Repeat",), (), ("Answer",))
