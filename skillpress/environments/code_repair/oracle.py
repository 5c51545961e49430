"""The gold patcher: it knows the correct program and edits towards it.

For a policy trained from scratch it writes the words of the compact rendering: run the tests, find the page
of the change that repairs the program, apply it, run the tests, submit. A detour is a wrong change, followed
by the tests that refute it. If no listed change is the repair, it edits the text itself, line by line, as a
language model would.
"""

from __future__ import annotations

import ast
import difflib
import json
from collections.abc import Iterator

from skillpress.core.errors import TaskError
from skillpress.core.seeds import generator
from skillpress.core.trajectory import Task
from skillpress.environments.code_repair.actions import PAGE
from skillpress.environments.code_repair.mutations import changes, repair
from skillpress.environments.code_repair.parameters import CodeRepairParameters
from skillpress.environments.code_repair.programs import Program, all_programs, find_data
from skillpress.environments.code_repair.tasks import program_of


class GoldPatcher:
    """Demonstrates within ``max_steps``."""

    def __init__(self, parameters: CodeRepairParameters) -> None:
        self._programs = all_programs(find_data(parameters.data))
        self._max_steps = parameters.max_steps

    def __call__(self, task: Task, detour_rate: float, seed: int) -> list[str]:
        """Return actions that win.

        Raises:
            TaskError: ``max_steps`` is too small for the repair.
        """
        program = program_of(task, self._programs)
        gold = repair(program.faulty, program.correct)
        if gold is None:
            actions = [*text_edits(program), '{"tool": "submit"}']
        else:
            number = changes(program.faulty).index(gold)
            actions = self._listed(number, len(changes(program.faulty)), detour_rate, seed)
        if len(actions) > self._max_steps:
            raise TaskError(
                f"task {task.task_id}: its repair takes {len(actions)} steps, but environment.max_steps is "
                f"{self._max_steps}"
            )
        return actions

    def _listed(self, gold: int, count: int, detour_rate: float, seed: int) -> list[str]:
        draws = generator(seed, "detour")
        wrong = [number for number in draws.permutation(count).tolist() if number != gold]
        actions, page = ["test"], 0
        room = self._max_steps - 5  # the tests, the page of the repair, the repair, the tests, submit
        while wrong and room >= 3 and draws.random() < detour_rate:
            tried, page = _try(wrong.pop(), page)
            actions, room = actions + tried, room - len(tried)
        tried, _ = _try(gold, page)
        return [*actions, *tried, "submit"]


def _try(number: int, page: int) -> tuple[list[str], int]:
    """Return (the words that apply and test a change, its page counted from 0). ``page`` was shown before."""
    wanted, slot = divmod(number, PAGE)
    turn = [f"view {wanted + 1}"] if wanted != page else []
    return [*turn, f"edit {slot + 1}", "test"], wanted


def text_edits(program: Program) -> list[str]:
    """``str_replace`` and ``insert`` calls that turn the faulty program's code into the correct one's."""
    path, faulty = program.file, program.faulty.splitlines()
    correct = code_lines(program.correct)
    count = len(code_lines(program.faulty, keep_blank=True))
    return [json.dumps({"tool": "edit", **edit}) for edit in _edits(path, faulty[:count], correct)]


def code_lines(source: str, keep_blank: bool = False) -> list[str]:
    """The lines of a program without a string statement at its end."""
    body = ast.parse(source).body
    last = body[-1]
    ends_in_text = len(body) > 1 and isinstance(last, ast.Expr) and isinstance(last.value, ast.Constant)
    lines = source.splitlines()[: last.lineno - 1 if ends_in_text else None]
    return lines if keep_blank else [line for line in lines if line.strip()]


def _edits(path: str, faulty: list[str], correct: list[str]) -> Iterator[dict[str, object]]:
    """Yield edits from the last line to the first, so that line numbers stay valid; each removes lines or
    adds some."""
    numbered = [(number, line) for number, line in enumerate(faulty, 1) if line.strip()]
    matcher = difflib.SequenceMatcher(None, [line.rstrip() for _, line in numbered],
                                      [line.rstrip() for line in correct], autojunk=False)  # fmt: skip
    for kind, first, last, start, end in reversed(matcher.get_opcodes()):
        if kind == "equal":
            continue
        new = "\n".join(correct[start:end])
        if first == last:
            line = numbered[first - 1][0] if first else 0
            yield {"command": "insert", "path": path, "insert_line": line, "new_str": new}
            continue
        top, bottom = numbered[first][0], numbered[last - 1][0]
        before = "\n".join(faulty[: top - 1]) + "\n" if top > 1 else ""
        old = "\n".join(faulty[top - 1 : bottom])
        whole = before + old
        yield {"command": "str_replace", "path": path, "old_str": whole, "new_str": before + new}
