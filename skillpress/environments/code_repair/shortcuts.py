"""Bugs that can be won without a repair, by a table of what the agent is shown.

The visible tests name calls and what they should return, and so do the examples in a program's description.
An agent can write these answers into a table and leave the bug where it is. Such a program passes every
hidden test whose calls the table answers. It wins where the faulty program, or one constant, happens to be
right everywhere else. A bug is a task only where that table loses.
"""

from __future__ import annotations

import doctest
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from skillpress.environments.code_repair.inside.values import Values
from skillpress.environments.code_repair.judge import Judge
from skillpress.environments.code_repair.programs import Check, Program
from skillpress.environments.code_repair.verdicts import Answering

CONSTANTS = tuple(Values().write(value) for value in (None, False, True, 0))
"""Answers that a table may give to every call that it does not know, beside those that it holds."""


class Shortcuts:
    """Finds bugs that a table wins. It remembers what it found."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self._tables: dict[str, Mapping[str, str]] = {}
        self._before_constant: dict[str, bool] = {}
        self._before_faulty: dict[tuple[str, str], bool] = {}

    def win(self, program: Program) -> bool:
        """Whether a table passes all hidden tests in front of the faulty program, or of a constant.

        Raises:
            SandboxEndedError: no sandbox lasts on this machine.
        """
        bug = (program.key, program.faulty)
        if bug not in self._before_faulty:
            self._before_faulty[bug] = self._wins(program, None)
        return self._before_faulty[bug] or self._constant_wins(program)

    def _constant_wins(self, program: Program) -> bool:
        """The same whatever the bug is."""
        if program.key not in self._before_constant:
            constants = dict.fromkeys((*CONSTANTS, *self._table(program).values()))
            self._before_constant[program.key] = any(self._wins(program, constant) for constant in constants)
        return self._before_constant[program.key]

    def _wins(self, program: Program, constant: str | None) -> bool:
        """Whether the table passes; None puts it in front of the faulty program."""
        table = self._table(program)
        verdict = self._judge.rehearse(
            program,
            program.faulty,
            program.hidden,
            lambda behind: _Table(table, behind if constant is None else _Constant(constant)),
        )
        return verdict.perfect

    def _table(self, program: Program) -> Mapping[str, str]:
        """Arguments to what the correct program returns, for each call that the agent is shown."""
        if program.key not in self._tables:
            answers: dict[str, str] = {}
            shown = [*program.visible, *examples(program)]
            self._judge.rehearse(program, program.correct, shown, lambda behind: _Recorder(behind, answers))
            self._tables[program.key] = answers
        return self._tables[program.key]


def examples(program: Program) -> list[Check]:
    """The calls that a program's description shows with their results, as a Python session."""
    try:
        found = doctest.DocTestParser().get_examples(program.description)
    except ValueError:  # a prompt without the space that doctest wants, or an example that is cut off
        return []
    return [Check(example.source, (program.entry,)) for example in found if program.entry in example.source]


@dataclass
class _Recorder:
    """Notes what is answered."""

    behind: Answering
    answers: dict[str, str]
    """Arguments to answer; calls that fail are not noted."""

    @property
    def timed_out(self) -> bool:
        return self.behind.timed_out

    def call_all(self, asked: Sequence[str | None]) -> list[str | None]:
        answers = self.behind.call_all(asked)
        for arguments, answer in zip(asked, answers, strict=True):
            if arguments is not None and answer is not None and not answer.startswith("!"):
                self.answers[arguments] = answer
        return answers


@dataclass
class _Table:
    """Answers what it knows; the rest is answered behind it."""

    known: Mapping[str, str]
    behind: Answering

    @property
    def timed_out(self) -> bool:
        return self.behind.timed_out

    def call_all(self, asked: Sequence[str | None]) -> list[str | None]:
        unknown = [None if arguments in self.known else arguments for arguments in asked]
        answers = self.behind.call_all(unknown)
        return [
            None if arguments is None else self.known.get(arguments, answer)
            for arguments, answer in zip(asked, answers, strict=True)
        ]


@dataclass
class _Constant:
    """Answers every call with the same value."""

    value: str
    timed_out: bool = field(default=False, init=False)

    def call_all(self, asked: Sequence[str | None]) -> list[str | None]:
        return [None if arguments is None else self.value for arguments in asked]
