"""HumanEvalFix (Muennighoff et al. 2023, MIT): 164 short functions, each with a bug inserted by a person.

Its tests are one function of assertions. Each assertion, with the preceding statements that assert nothing,
becomes a separate test. Other code that a test needs comes from the data set, not from the agent's file. The
agent is shown the examples of the docstring or, if there are none, the first test.
"""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

from skillpress.core.errors import StorageError
from skillpress.environments.code_repair.programs import Check, Program

COUNT = 164


def read_humanevalfix(path: Path) -> list[Program]:
    """Read its programs, ordered by number.

    Raises:
        StorageError: the file is damaged, or does not hold 164 programs.
    """
    try:
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        programs = [_program(row) for row in rows]
    except (OSError, ValueError, KeyError, SyntaxError) as error:
        raise StorageError(f"{path}: is not HumanEvalFix ({error!r})") from error
    if len(programs) != COUNT:
        raise StorageError(f"{path}: holds {len(programs)} programs; HumanEvalFix has {COUNT}")
    return programs


def _program(row: dict[str, Any]) -> Program:
    entry, correct = row["entry_point"], row["prompt"] + row["canonical_solution"]
    helpers = _without(entry, correct)
    hidden = _tests(row["test"], entry, helpers)
    return Program(
        source="humanevalfix",
        name=row["task_id"].partition("/")[2],
        entry=entry,
        faulty=row["prompt"] + row["buggy_solution"],
        correct=correct,
        description=row["docstring"].strip(),
        visible=_tests(row["example_test"], entry, helpers) or hidden[:1],
        hidden=hidden,
    )


def _without(entry: str, source: str) -> str:
    """The program's imports and helper functions: everything except the function under test."""
    parts = [part for part in ast.parse(source).body if getattr(part, "name", "") != entry]
    return ast.unparse(ast.Module(parts, []))


def _tests(source: str, entry: str, helpers: str) -> tuple[Check, ...]:
    """One test per assertion of the function ``check``."""
    _, found, rest = f"\n{source}".rpartition("\ndef check(")  # one task has a part of a solution before it
    if not found:
        return ()
    check = ast.parse(f"def check({rest}").body[0]
    assert isinstance(check, ast.FunctionDef)
    names = tuple(dict.fromkeys([check.args.args[0].arg, entry]))
    tests: list[Check] = []
    before: list[ast.stmt] = []
    for statement in check.body:
        if any(isinstance(node, ast.Assert) for node in ast.walk(statement)):
            if not _always_true(statement):
                tests.append(Check(ast.unparse(ast.Module([*before, statement], [])), names, helpers))
        else:
            before.append(statement)
    return tuple(tests)


def _always_true(statement: ast.stmt) -> bool:
    """Whether the statement is ``assert True``, which some tests contain to hold a note."""
    return isinstance(statement, ast.Assert) and isinstance(statement.test, ast.Constant)
