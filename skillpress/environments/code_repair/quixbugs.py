"""QuixBugs (Lin et al. 2017, MIT): 40 small algorithms, each wrong in one line.

Most have their cases in a file of JSON lines with arguments and result; programs on graphs have test
functions. Both become statements that compare. Two cases take minutes even for a correct program; they are
skipped, as in the data set's own tests. All tests decide the verdict. The agent is shown every third test,
beginning with the first one, unless a table of these would win without a repair.
"""

from __future__ import annotations

import ast
import json
import tarfile
from pathlib import Path

from skillpress.core.errors import StorageError
from skillpress.environments.code_repair.programs import Check, Program

COUNT = 40
CHECKS = {
    "flatten": "assert list(flatten(*arguments)) == expected",
    "hanoi": "assert hanoi(*arguments) == [tuple(move) for move in expected]",
    "kheapsort": "assert list(kheapsort(*arguments)) == expected",
    "sqrt": "assert abs(sqrt(*arguments) - expected) <= arguments[-1]",
}
"""How a result is compared if equality is not the right comparison."""
SLOW = {"knapsack": "[[6404180,", "levenshtein": '[["amanaplanacanalpanama"'}
"""The beginning of the line of a case that is skipped."""
PATIENT = {"levenshtein": 10}
"""Programs whose correct version takes seconds, and how many times longer their calls may take."""
SHOWN_OF = 3
SHOWN_FROM = {"detect_cycle": 1, "kheapsort": 1}
"""Programs that show their second, fifth ... test, because a table of the first, fourth ... would pass all
tests (``shortcuts.py``)."""


def read_quixbugs(path: Path) -> list[Program]:
    """Read its programs, ordered by name.

    Raises:
        StorageError: the archive is damaged, or does not hold 40 programs with their tests.
    """
    try:
        with tarfile.open(path) as archive:
            files = {
                member.name.removeprefix("./"): content.read().decode()
                for member in archive
                if member.isfile() and (content := archive.extractfile(member))
            }
        names = sorted(Path(name).stem.removeprefix("test_") for name in files if "/test_" in name)
        programs = [_program(name, files) for name in names]
    except (tarfile.TarError, OSError, EOFError, KeyError, SyntaxError, ValueError) as error:
        raise StorageError(f"{path}: is not QuixBugs' Python part ({error!r})") from error
    if len(programs) != COUNT:
        raise StorageError(f"{path}: holds {len(programs)} programs; QuixBugs has {COUNT}")
    return programs


def _program(name: str, files: dict[str, str]) -> Program:
    faulty = files[f"python_programs/{name}.py"]
    cases = files.get(f"json_testcases/{name}.json")
    tests = (
        _functions(name, files[f"python_testcases/test_{name}.py"]) if cases is None else _cases(name, cases)
    )
    return Program(
        source="quixbugs",
        name=name,
        entry=name,
        faulty=faulty,
        correct=files[f"correct_python_programs/{name}.py"],
        description=(ast.get_docstring(ast.parse(faulty)) or _last_text(faulty)).strip(),
        visible=tuple(tests[SHOWN_FROM.get(name, 0) :: SHOWN_OF]),
        hidden=tuple(tests),
        patience=PATIENT.get(name, 1),
    )


def _last_text(source: str) -> str:
    """The string statement at a program's end."""
    last = ast.parse(source).body[-1]
    found = isinstance(last, ast.Expr) and isinstance(last.value, ast.Constant) and last.value.value
    return found if isinstance(found, str) else ""


def _cases(name: str, lines: str) -> list[Check]:
    check = CHECKS.get(name, f"assert {name}(*arguments) == expected")
    return [
        Check(f"arguments, expected = {json.loads(line)!r}\n{check}", (name,))
        for line in lines.splitlines()
        if line.strip() and not line.startswith(SLOW.get(name, "\0"))
    ]


def _functions(name: str, source: str) -> list[Check]:
    """The statements of each test function, preceded by the module's statements that all of them share."""
    body = ast.parse(source).body
    shared = [part for part in body if isinstance(part, (ast.Assign, ast.Expr))]
    return [
        Check(ast.unparse(ast.Module([*shared, *_without_text(part.body)], [])), (name,))
        for part in body
        if isinstance(part, ast.FunctionDef)
    ]


def _without_text(body: list[ast.stmt]) -> list[ast.stmt]:
    return [
        part for part in body if not (isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant))
    ]
