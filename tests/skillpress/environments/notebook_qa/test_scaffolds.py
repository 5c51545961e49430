"""L0's baselines: agents that answer at once, from memory, after thinking, or after one retrieval."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillpress.cli.command import main
from skillpress.core.errors import ParamsError
from skillpress.core.interface import AgentState, Info
from skillpress.core.parsed_action import FORMAT_REASONS
from skillpress.core.rollout_files import read_rollouts
from skillpress.core.trajectory import Task, Trajectory
from skillpress.environments.notebook_qa.answers import exact_match
from skillpress.environments.notebook_qa.desk import first_desk
from skillpress.environments.notebook_qa.environment import NotebookState
from skillpress.environments.notebook_qa.parameters import NotebookQaParameters
from skillpress.environments.notebook_qa.scaffolds import MOST_OF_A_PAGE, answer, answer_line
from tests.support.rollouts.chat_server import chat_server

NAMES = ("direct", "chain_of_thought", "retrieval")
PARAMS = Path(__file__).parents[4] / "params"


def prompt(parameters: NotebookQaParameters, task: Task, name: str) -> str:
    question = task.spec["question"]
    state = NotebookState(question=question, desk=first_desk(question), steps=0, steps_left=1)
    return parameters.rendering(name, 0).prompt(AgentState(task, question, Info(state=state)))


def test_the_baselines_share_their_question_and_only_retrieval_shows_pages(
    parameters: NotebookQaParameters, task: Task
) -> None:
    direct, thought, retrieval = (prompt(parameters, task, name) for name in NAMES)
    assert all(task.spec["question"] in text and "a few words" in text for text in (direct, thought))
    assert "step by step" in thought and "step by step" not in direct + retrieval
    assert retrieval.endswith(direct), "the same request below the pages"
    assert "[Silver Harbour] Silver Harbour is a film of 1931. It was directed by Ada Berg." in retrieval
    assert not any(word in direct + thought + retrieval for word in ("search(", "<code>", "notepad"))


def test_retrieval_shows_the_best_pages_of_the_question_each_once_and_cut(
    parameters: NotebookQaParameters, world: Path, tmp_path: Path, task: Task
) -> None:
    pages = pl.read_parquet(world / "paragraphs.parquet")
    long = pl.DataFrame({"id": ["x"], "title": ["Silver Harbour"], "text": ["the film was born " * 500]})
    pl.concat([pages, long]).write_parquet(tmp_path / "paragraphs.parquet")
    (tmp_path / "questions.parquet").write_bytes((world / "questions.parquet").read_bytes())
    change = {"data": str(tmp_path), "indexes": str(tmp_path / "indexes"), "top_k": 2}
    shown = prompt(parameters.model_copy(update=change), task, "retrieval")
    titles = re.findall(r"^\[(.*?)\] ", shown, re.MULTILINE)
    assert len(titles) == len(set(titles)) <= 2 and "Silver Harbour" in titles
    assert len(shown) < 2 * MOST_OF_A_PAGE + 600


@pytest.mark.parametrize(
    ("response", "submitted", "thought"),
    [
        ("Ghent", "Ghent", ""),
        (" Ghent\n", "Ghent", ""),
        ('It\'s "Ghent",\nI think.', 'It\'s "Ghent",\nI think.', ""),
        ("<think>Hm.</think> Ghent", "Ghent", "Hm."),
        ("<think>Hm.", "unclosed", ""),
        ("<think>Hm.</think>", "empty", "Hm."),
        (" \n", "empty", ""),
        ("x" * 10_001, "too_long", ""),
        ("\ud800", "unprintable", ""),
    ],
)
def test_a_direct_answer_is_the_whole_response(response: str, submitted: str, thought: str) -> None:
    check(answer(response), submitted, thought)


@pytest.mark.parametrize(
    ("response", "submitted", "thought"),
    [
        ("She was born there.\nAnswer: Ghent", "Ghent", "She was born there."),
        ("**Answer:** Ghent.", "Ghent.", ""),
        ("Answer: Leith\nNo.\nFinal answer: **Ghent**\n", "Ghent", "Answer: Leith\nNo."),
        ("<think>Hm.</think>So.\n> Answer: yes", "yes", "Hm.\nSo."),
        ("The answer: Ghent", "missing_action", "The answer: Ghent"),
        ("Ghent", "missing_action", "Ghent"),
        ("Answer:", "empty", ""),
        ("<think>Answer: Ghent", "unclosed", ""),
        ("Answer" + "*" * 100_000 + "x", "missing_action", ""),
    ],
)
def test_a_chain_of_thought_ends_with_a_line_that_is_the_answer(
    response: str, submitted: str, thought: str
) -> None:
    check(answer_line(response), submitted, thought)


def check(found, submitted: str, thought: str) -> None:
    if submitted in FORMAT_REASONS:
        assert (found.invalid, found.action) == (submitted, "")
    else:
        assert (found.invalid, found.thought) == (None, thought)
        assert found.action == f"submit_final_answer({submitted!r})"


@given(st.text() | st.lists(st.sampled_from(["Answer:", "\n", "'", "\\", "</think>", "a", '"'])).map("".join))
def test_any_answer_is_one_call_with_that_text_and_nothing_of_it_is_code(response: str) -> None:
    for found in (answer(response), answer_line(response)):
        assert bool(found.action) == (found.invalid is None)
        if found.action:
            (line,) = ast.parse(found.action).body
            assert isinstance(line, ast.Expr) and isinstance(line.value, ast.Call)
            (said,) = line.value.args
            assert isinstance(said, ast.Constant) and said.value == said.value.strip() != ""


def test_a_demonstration_in_these_words_is_an_answer_or_an_error(parameters: NotebookQaParameters) -> None:
    for name, parse in (("direct", answer), ("chain_of_thought", answer_line)):
        response = parameters.rendering(name, 0).response("answer yes", Info(answer="it's so"))
        assert parse(response).action == 'submit_final_answer("it\'s so")'
    with pytest.raises(ParamsError, match=r"the action 'search question'; set imitation.demonstrations to 0"):
        parameters.rendering("direct", 0).response("search question", Info())


def reader(asked: str) -> str:
    """A model that knows no film: it reads in what it is shown where the director was born."""
    film = re.search(r"the film (.*) born\?", asked)
    director = re.search(rf"{film[1]} is a film of \d+. It was directed by (.*?)\.", asked) if film else None
    town = re.search(rf"{director[1]} directed films. Born in (.*?),", asked) if director else None
    said = town[1] if town else "I do not know"
    return f"Let me think.\nAnswer: {said}" if "step by step" in asked else said


@pytest.mark.parametrize(("name", "wins"), [("direct", 0), ("chain_of_thought", 0), ("retrieval", 2)])
def test_evaluate_offers_each_and_one_response_is_the_whole_episode(
    name: str, wins: int, parameters: NotebookQaParameters, tmp_path: Path
) -> None:
    output = tmp_path / "out"
    with chat_server(answer=reader) as (url, heard):
        done = main(
            ["evaluate", "--environment", "notebook_qa", "--model", url, "--output", str(output),
             "--params", str(PARAMS / "notebook_qa.yaml"), "--tasks", "2", "--votes", "1",
             "--set", f"policy.rendering={name}", "--set", "environment.max_steps=1",
             "--set", f"environment.data={parameters.data}", "--set", "environment.reachable=false",
             "--set", f"environment.indexes={parameters.indexes}", "--set", "tasks.train=1",
             "--set", "tasks.validation=1", "--set", "evaluation.runs=1"]
        )  # fmt: skip
    assert done == 0 and len(heard.bodies) == 2
    assert json.loads((output / "evaluation.json").read_text())["parameters"]["policy"]["rendering"] == name
    played: list[Trajectory] = list(read_rollouts(output / "rollouts.parquet"))
    assert sum(episode.won for episode in played) == wins
    assert {episode.outcome for episode in played} == ({"won"} if wins else {"wrong_answer"})
    for episode in played:
        (step,) = episode.steps
        said = step.answer
        assert step.invalid is None and step.skills == ("Answer",) and said is not None
        assert exact_match(said, ["I do not know"]) != episode.won
