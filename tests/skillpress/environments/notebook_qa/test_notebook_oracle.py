"""Demonstrators: short actions win every task that they can solve, and code wins every task."""

from __future__ import annotations

from dataclasses import replace

import pytest

from skillpress.core.errors import TaskError
from skillpress.core.trajectory import Task
from skillpress.environments.notebook_qa.parameters import NotebookQaParameters
from skillpress.environments.sandboxed import SandboxedEnvironment
from skillpress.environments.section import SplitSizes


def gold_cells(task: Task) -> list[str]:
    """Cells that plan, search and read the gold pages, take a note, and submit the first alias."""
    titles, answer = task.spec["supporting_titles"], task.spec["answers"][0]
    cells = [f"notepad.plan.append('find {len(titles)} pages')\nsearch({task.spec['question']!r})"]
    for title in titles:
        cells += [f"search({title!r}, 3)", f"page = read({title!r})\nprint(page[:300])"]
    return [*cells, f"notepad.facts.append({answer!r})", f"submit_final_answer({answer!r})"]


def test_short_words_win(
    parameters: NotebookQaParameters, environment: SandboxedEnvironment, task: Task
) -> None:
    oracle = parameters.make_oracle()
    for seed in range(3):
        words = oracle(task, 0.5, seed)
        environment.reset(task)
        answers = [environment.step(word) for word in words]
        assert answers[-1][3].won and not any(answer[3].invalid for answer in answers)
        assert sum(word.startswith("read ") for word in words) >= 2
        assert len(words) <= parameters.max_steps
    assert len({tuple(oracle(task, 0.5, seed)) for seed in range(8)}) > 1, "detours are drawn by seed"
    assert len({tuple(oracle(task, 0.0, seed)) for seed in range(8)}) == 1


def test_what_short_words_cannot_answer_is_refused(parameters: NotebookQaParameters, task: Task) -> None:
    unheard = replace(task, spec={**task.spec, "answers": ["a town by the sea"]})
    with pytest.raises(
        TaskError, match=r"cannot be answered in short action words; set environment.reachable"
    ):
        parameters.make_oracle()(unheard, 0.0, 0)


def test_code_that_knows_the_pages_wins_every_task(
    parameters: NotebookQaParameters, environment: SandboxedEnvironment
) -> None:
    for task in parameters.make_tasks(SplitSizes(1, 1, 1), 0):
        environment.reset(task)
        answers = [environment.step(cell) for cell in gold_cells(task)]
        assert answers[-1][3].won and all(answer[3].measures["executed"] for answer in answers)
