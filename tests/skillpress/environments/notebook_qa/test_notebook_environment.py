"""The notebook agent's environment: cells, tools, the notepad, answers."""

from __future__ import annotations

import pytest

from skillpress.core.interface import Info
from skillpress.core.trajectory import Task
from skillpress.environments.notebook_qa.desk import MOST_PAGES
from skillpress.environments.notebook_qa.environment import NotebookState
from skillpress.environments.sandboxed import SandboxedEnvironment


def state(info: Info) -> NotebookState:
    assert isinstance(info.state, NotebookState)
    return info.state


def test_variables_last_and_what_a_cell_prints_is_seen(environment: SandboxedEnvironment, task: Task) -> None:
    observation, info = environment.reset(task)
    assert observation == "Question: Where was the director of the film Silver Harbour born?"
    assert not info.measures and state(info).steps_left == 8
    assert environment.step("found = [1, 2]\nprint('two')\nlen(found)")[0] == "two\n2"
    assert environment.step("found")[0] == "[1, 2]"
    assert environment.step("x = 3")[0] == "(no output)"


def test_pages_are_found_and_read(environment: SandboxedEnvironment, task: Task) -> None:
    environment.reset(task)
    observation, _, _, info = environment.step("[hit['title'] for hit in search('Silver Harbour film', 2)]")
    assert observation.startswith("['Silver Harbour', ")
    observation, _, _, info = environment.step("read('silver  harbour')")
    assert "directed by Ada Berg" in observation
    assert info.action == "read('silver  harbour')" and info.measures == {"executed": 1.0}


def test_a_number_of_hits_that_no_search_gives_is_brought_into_range(
    environment: SandboxedEnvironment, task: Task
) -> None:
    environment.reset(task)
    assert environment.step("len(search('film', 0)), len(search('film', 10 ** 9))")[0] == "(1, 12)"
    assert environment.step("len(search('film'))")[0] == "5", "what the parameters say"


def test_a_title_that_is_not_there_is_told_and_the_agent_goes_on(
    environment: SandboxedEnvironment, task: Task
) -> None:
    environment.reset(task)
    observation, terminated, _, info = environment.step("read('Nowhere')")
    assert "ToolError: no page has the title 'Nowhere'" in observation and not terminated
    assert info.measures == {"executed": 0.0} and info.invalid is None


@pytest.mark.parametrize(
    ("call", "most"), [("search", 10_000), ("read", 1000), ("submit_final_answer", 10_000)]
)
def test_a_text_that_is_too_long_is_refused_before_anything_is_done_with_it(
    environment: SandboxedEnvironment, task: Task, call: str, most: int
) -> None:
    environment.reset(task)
    observation, terminated, _, info = environment.step(f"{call}('a' + chr(0x301) * 80_000)")
    assert f"has 80001 characters; at most {most} are read" in observation
    assert not terminated and info.measures == {"executed": 0.0}
    assert environment.step("submit_final_answer('Gävle')")[3].won


def test_the_desk_holds_so_many_pages_whatever_is_read(environment: SandboxedEnvironment, task: Task) -> None:
    environment.reset(task)
    spellings = "(''.join(pair) for pair in itertools.product(*[(c, c.upper()) for c in 'silver harbour']))"
    code = f"import itertools\nfor title in itertools.islice({spellings}, 600): read(title)"
    assert len(state(environment.step(code)[3]).desk.pages) == MOST_PAGES


def test_the_first_answer_counts_and_any_alias_wins(environment: SandboxedEnvironment, task: Task) -> None:
    environment.reset(task)
    _, terminated, truncated, info = environment.step(
        "submit_final_answer('the Gävle Town')\nsubmit_final_answer('no')"
    )
    assert (terminated, truncated, info.won, info.lost) == (True, False, True, None)
    assert info.measures == {"executed": 1.0, "exact_match": 1.0, "f1": 1.0, "has_answer": 1.0}


def test_a_wrong_answer_loses(environment: SandboxedEnvironment, task: Task) -> None:
    environment.reset(task)
    _, terminated, _, info = environment.step("submit_final_answer('Gävle in Sweden')\n1 / 0")
    assert terminated and not info.won and info.lost == "wrong_answer"
    assert info.measures == {"executed": 0.0, "exact_match": 0.0, "f1": 0.5, "has_answer": 1.0}


def test_without_an_answer_the_episode_is_cut_off_and_scored(
    environment: SandboxedEnvironment, task: Task
) -> None:
    environment.reset(task)
    answers = [environment.step("1") for _ in range(8)]
    assert [(answer[1], answer[2]) for answer in answers] == [(False, False)] * 7 + [(False, True)]
    assert [set(answer[3].measures) for answer in answers[:7]] == [{"executed"}] * 7
    assert answers[7][3].measures["has_answer"] == answers[7][3].measures["exact_match"] == 0.0


def test_the_notepad_comes_out_after_every_cell(environment: SandboxedEnvironment, task: Task) -> None:
    _, info = environment.reset(task)
    assert state(info).notepad == {"plan": "", "facts": "", "drafts": ""}
    info = environment.step("notepad.plan.append('find the film')\nnotepad.facts = ['a', 2]")[3]
    assert state(info).notepad == {"plan": "- find the film", "facts": "- a\n- 2", "drafts": ""}
    assert environment.step("notepad")[0].startswith("plan:\n- find the film\nfacts:")


def test_a_notepad_that_its_agent_breaks_harms_nothing(environment: SandboxedEnvironment, task: Task) -> None:
    environment.reset(task)
    environment.step("notepad.facts.append('kept')")
    assert state(environment.step("notepad.plan = 5")[3]).notepad["plan"] == "- 5"
    assert state(environment.step("notepad.plan = ['\\ud800']")[3]).notepad["plan"] == "- ?"
    assert state(environment.step("notepad = None")[3]).notepad["facts"] == "- kept"
    assert len(state(environment.step("del notepad")[3]).notepad) == 3
    assert environment.step("1 + 1")[0] == "2"


def test_the_notepad_outlives_its_interpreter(environment: SandboxedEnvironment, task: Task) -> None:
    environment.reset(task)
    environment.step("notepad.facts.append('kept')\nlost = 1")
    assert "variables, files and processes are lost" in environment.step("import os\nos._exit(1)")[0]
    assert environment.step("notepad.facts")[0] == "['kept']"
    assert "NameError" in environment.step("lost")[0]


def test_short_words_are_carried_out_as_the_code_that_they_stand_for(
    environment: SandboxedEnvironment, task: Task
) -> None:
    environment.reset(task)
    info = environment.step("search entity 1")[3]
    assert info.action == "search('Silver Harbour')" and info.measures["executed"] == 1.0
    assert "read title 1" in info.admissible
    observation, _, _, info = environment.step("read title 1")
    assert "Ada Berg" in observation
    numbered = {candidate.text: number for number, candidate in enumerate(state(info).desk.answers, 1)}
    info = environment.step(f"answer candidate {numbered['Ada Berg']}")[3]
    assert info.lost == "wrong_answer" and info.action == "submit_final_answer('Ada Berg')"


def test_what_cannot_be_run_costs_its_step_and_says_why(
    environment: SandboxedEnvironment, task: Task
) -> None:
    environment.reset(task)
    for action, reason in (("  ", "nothing_to_run"), ("answer candidate 3", "not_on_the_desk")):
        _, _, _, info = environment.step(action)
        assert (info.invalid, info.action, info.measures) == (reason, None, {"executed": 0.0})
    assert state(info).steps == 2


def test_a_comparison_of_pages_becomes_an_answer_to_choose(
    environment: SandboxedEnvironment, task: Task
) -> None:
    environment.reset(task)
    environment.step("read('Night Orchard'), read('Silver Harbour')")
    observation, _, _, info = environment.step("compute earliest")
    assert observation == "compared: Silver Harbour"
    assert state(info).desk.answers[0].text == "Silver Harbour"
