"""Detect bugs that can be won without a repair, by a table of the answers that the agent is shown.

The visible tests contain calls and their expected results, and so do the examples in a program's description.
An agent can write these answers into a table and leave the bug in place. Such a program passes every hidden
test whose calls the table answers. It wins if the faulty program, or one constant, happens to be right for
all other calls. A bug becomes a task only if that table loses.
"""

from __future__ import annotations

import doctest
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from skillpress.environments.code_repair.inside.values import Values
from skillpress.environments.code_repair.judge import Judge
from skillpress.environments.code_repair.judge_sandboxes import Answering
from skillpress.environments.code_repair.programs import Check, Program

CONSTANTS = tuple(Values().write(value) for value in (None, False, True, 0))
"""Answers, besides those in the table, that a program may give to every call that the table does not
contain."""


class Shortcuts:
    """Finds bugs that a table wins, and caches the results."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self._tables: dict[str, Mapping[str, str]] = {}
        self._before_constant: dict[str, bool] = {}
        self._before_faulty: dict[tuple[str, str], bool] = {}

    def win(self, program: Program) -> bool:
        """Whether a table wins, combined with the faulty program or with a constant for the other calls."""
        bug = (program.key, program.faulty)
        if bug not in self._before_faulty:
            self._before_faulty[bug] = self._wins(program, None)
        return self._before_faulty[bug] or self._constant_wins(program)

    def _constant_wins(self, program: Program) -> bool:
        """Whether the table wins in combination with a constant. This does not depend on the bug."""
        if program.key not in self._before_constant:
            constants = dict.fromkeys((*CONSTANTS, *self._table(program).values()))
            self._before_constant[program.key] = any(self._wins(program, constant) for constant in constants)
        return self._before_constant[program.key]

    def _wins(self, program: Program, constant: str | None) -> bool:
        """Whether the table wins. None combines it with the faulty program."""
        table = self._table(program)
        verdict = self._judge.rehearse(
            program,
            program.faulty,
            program.hidden,
            lambda behind: _Table(behind if constant is None else _Constant(constant), table),
        )
        return verdict.perfect

    def _table(self, program: Program) -> Mapping[str, str]:
        """Maps arguments to the correct program's results, for each call that the agent is shown."""
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
    except ValueError:  # a prompt without the space that doctest requires, or an example that is cut off
        return []
    return [Check(example.source, (program.entry,)) for example in found if program.entry in example.source]


@dataclass
class _Layer:
    """A layer in front of an ``Answering``."""

    behind: Answering

    @property
    def timed_out(self) -> bool:
        return self.behind.timed_out


@dataclass
class _Recorder(_Layer):
    """Records all answers."""

    answers: dict[str, str]
    """Maps arguments to answers; calls that fail are not recorded."""

    def call_all(self, asked: Sequence[str | None]) -> list[str | None]:
        answers = self.behind.call_all(asked)
        for arguments, answer in zip(asked, answers, strict=True):
            if arguments is not None and answer is not None and not answer.startswith("!"):
                self.answers[arguments] = answer
        return answers


@dataclass
class _Table(_Layer):
    """Answers the calls that it knows; the others are passed on to ``behind``."""

    known: Mapping[str, str]

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
