"""φ for programs: the skills of a response are those of its calls, in order, by the section's table of rules.

``skillpress skills ROLLOUTS --rules FILE`` gives the same skills, and ``skillpress rules ROLLOUTS`` drafts a
table.
"""

from __future__ import annotations

from itertools import chain

from skillpress.core.errors import ParamsError, UserError
from skillpress.core.trajectory import Skills, Task, Trajectory
from skillpress.environments.calls.rules import RuleProjection, read_rules
from skillpress.environments.calls.steps import acted
from skillpress.environments.program.section import ProgramSection


class ProgramProjection:
    """φ(τ): the skills of each step, one for each call (or command of a shell) that fits a rule.

    A response without calls is read as its own words. Side calls have no skills.
    """

    def __init__(self, table: RuleProjection) -> None:
        self._table = table
        self.alphabet: Skills = table.alphabet

    def __call__(self, task: Task, trajectory: Trajectory) -> tuple[Skills, ...]:
        said = [
            [] if step.kind == "side" else acted(step.action, "", step.invalid is not None)
            for step in trajectory.steps
        ]
        found = iter(self._table([*chain.from_iterable(said)]))
        return tuple(tuple(chain.from_iterable(next(found) for _ in calls)) for calls in said)


NO_RULES = ProgramProjection(RuleProjection(()))
"""φ of a section without rules: nothing has a skill."""


def projection(section: ProgramSection) -> ProgramProjection:
    """φ by the table that ``environment.rules`` names.

    Raises:
        ParamsError: the file is missing, or is not a table of rules; the message names the error and the
        remedy.
    """
    if section.rules is None:
        return NO_RULES
    file = section.rules_file
    if not file.is_file():
        raise ParamsError(
            f"environment.rules: {section.rules}: no such file in the working directory or the lab; "
            "`skillpress rules ROLLOUTS --output FILE` drafts one from collected episodes"
        )
    try:
        return ProgramProjection(read_rules(file))
    except UserError as error:
        raise ParamsError(f"environment.rules: {error}") from error
