"""Both data sets as judged here: every correct program passes, every faulty one fails."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from skillpress.environments.code_repair.judge import Judge
from skillpress.environments.code_repair.programs import Program


def test_how_many_programs_and_tests_there_are(programs: dict[str, Program]) -> None:
    assert Counter(program.source for program in programs.values()) == {"quixbugs": 40, "humanevalfix": 164}
    assert sum(len(program.hidden) for program in programs.values() if program.source == "quixbugs") == 276
    assert all(program.visible and program.hidden and program.description for program in programs.values())


@pytest.mark.slow
def test_every_correct_program_passes_and_every_faulty_one_fails(
    programs: dict[str, Program], judge: Judge
) -> None:
    def judged(program: Program) -> tuple[bool, bool]:
        right, wrong = (
            judge.verdict(program, text, hidden=True, own=True) for text in (program.correct, program.faulty)
        )
        return right.perfect, wrong.perfect

    with ThreadPoolExecutor(4) as threads:
        found = dict(zip(programs, threads.map(judged, programs.values()), strict=True))
    assert not {name: verdicts for name, verdicts in found.items() if verdicts != (True, False)}
