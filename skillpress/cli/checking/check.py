"""The trial of an environment: its oracle and the random explorer play it, and each check makes a finding."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property

from skillpress.cli.checking import checks
from skillpress.cli.checking.checks import CheckFinding, EpisodesRead
from skillpress.cli.checking.walks import Subject, Walk, environments
from skillpress.core.errors import UserError
from skillpress.experiment.experiment import Experiment
from skillpress.experiment.params import Params
from skillpress.models.policy import Policy
from skillpress.pipeline import exit_codes


class Trial:
    """The episodes and texts that several checks share, made when the first check needs them."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject

    @cached_property
    def explored(self) -> list[Walk]:
        """One episode of the random explorer per task."""
        environment = self.subject.make()
        return [self.subject.explore(environment, task) for task in self.subject.tasks]

    @cached_property
    def shown(self) -> list[Walk]:
        """One demonstration per task; none without an oracle."""
        return list(checks.demonstrated_walks(self.subject, 0.0)) if self.subject.section.has_oracle else []

    @cached_property
    def detours(self) -> list[Walk]:
        """Demonstrations with the experiment's share of mistakes; none if that share is 0."""
        rate = self.subject.experiment.params.imitation.detour_rate
        return list(checks.demonstrated_walks(self.subject, rate)) if rate and self.shown else []

    @property
    def walks(self) -> list[Walk]:
        """The episodes of the explorer and all demonstrations."""
        return [*self.explored, *self.shown, *self.detours]

    @cached_property
    def read(self) -> EpisodesRead:
        """The texts of the demonstrations, or of the explorer's episodes if there is no demonstration."""
        return checks.read(self.subject, self.shown or self.explored)

    @cached_property
    def policy(self) -> Policy:
        """The policy before training."""
        return self.subject.experiment.starting_policy()

    def checks(self) -> Iterator[tuple[str, Callable[[], CheckFinding]]]:
        """The name of each check, and the check. A program writes its own prompts, only its verifier knows a
        success, and the actions of its environment are replies, so it is looked at less."""
        subject, program = self.subject, self.subject.section.offers("make_reader")
        yield "tasks", lambda: checks.tasks(subject)
        yield "splits", lambda: checks.splits(subject.experiment)
        yield "random explorer", lambda: checks.explorer(self.explored)
        yield "demonstrations", lambda: checks.demonstrations(subject, self.shown, self.detours)
        if not program:
            yield "success is seen", lambda: checks.success(self.walks)
        yield "episodes end", lambda: checks.endings(subject, self.walks)
        yield "resets repeat", lambda: checks.resets(subject, self.explored)
        yield "spaces", lambda: checks.spaces(subject, self.walks)
        if program:
            yield "tools", lambda: checks.tools(self.policy)
        else:
            yield "any text is an action", lambda: checks.unreadable(subject, subject.tasks[0])
            yield "responses are read", lambda: checks.responses(subject, self.read)
            yield "prompts fit", lambda: checks.prompts(subject, self.policy, self.read)
        yield "speed", lambda: checks.speed(self.explored)

    def findings(self) -> Iterator[CheckFinding]:
        """One finding per check. An exception that several checks meet makes one finding."""
        told: set[str] = set()
        for name, check in self.checks():
            try:
                yield check()
            except Exception as error:  # noqa: BLE001  whatever the environment's code raises is the finding
                if (said := explained(error)) not in told:
                    told.add(said)
                    yield CheckFinding(name, "wrong", said, "mend it; the checks that need it were left out")


def explained(error: Exception) -> str:
    """An exception in one line, with its place in the code unless the user's input is wrong."""
    if isinstance(error, UserError):
        return str(error)
    place = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} ({place.filename}:{place.lineno})"


@contextmanager
def trial(experiment: Experiment, count: int) -> Iterator[Trial]:
    """The trial of an experiment's environment with ``count`` training tasks.

    Raises:
        UserError: the environment makes no training tasks.
    """
    section = experiment.params.environment
    tasks = checks.some_tasks(experiment, count)
    if not tasks:
        raise UserError(f"{section.name}: make_tasks makes no task of the split train; check tasks.train")
    with environments(section) as make:
        yield Trial(Subject(experiment, tasks, make))


def report(params: Params, count: int) -> int:
    """Print the findings about the environment, with so many tasks played; returns the exit code.

    Raises:
        UserError: the environment makes no training tasks.
    """
    experiment = Experiment(params)
    print(f"{params.environment.name}:")
    wrong = 0
    with trial(experiment, count) as begun:
        for finding in begun.findings():
            remedy = f": {finding.remedy}" if finding.remedy else ""
            print(f"  {finding.verdict:5}  {finding.name:21}  {finding.detail}{remedy}", flush=True)
            wrong += finding.verdict == "wrong"
        if "read" in vars(begun):
            print(f"\nA prompt:\n{begun.read.prompt}\n\nA response:\n{begun.read.response}")
    if wrong:
        exit_codes.say(f"check: {wrong} {'thing is' if wrong == 1 else 'things are'} wrong")
        return exit_codes.USER_ERROR
    return 0
