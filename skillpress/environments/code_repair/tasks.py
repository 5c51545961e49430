"""Which programs are learned from, and which are held out.

A program always belongs to one split, whatever the seed is. Held out are all 40 programs of QuixBugs, every
program of HumanEvalFix whose number is a multiple of 3, and four programs that solve the same problem as one
of QuixBugs. Of the other programs, every fifth is for validation and the rest for training.

A test task is an original bug of its data set. If more tasks are requested than there are, the held-out
programs of HumanEvalFix with bugs made by listed changes are added. Training and validation tasks are bugs
that a listed change repairs: those of the data set, and bugs made by listed changes. Each of the latter fails
a hidden test and lets no test run out of time. A task names only a program and a change.

No task can be won by a table of the answers that the agent is shown (``shortcuts.py``). A program whose own
bug is won by such a table is left out completely; of the other programs, the made bugs that a table wins are
left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from skillpress.core.errors import TaskError
from skillpress.core.seeds import derive, generator
from skillpress.core.trajectory import Task
from skillpress.environments.code_repair.judge import Judge
from skillpress.environments.code_repair.mutations import changes, repair, shape
from skillpress.environments.code_repair.parameters import CodeRepairParameters
from skillpress.environments.code_repair.programs import Program, all_programs, find_data
from skillpress.environments.code_repair.shortcuts import Shortcuts
from skillpress.environments.section import SplitSizes
from skillpress.environments.splits import refuse_repetitions

ENVIRONMENT = "code_repair"
ALIKE = {
    "13": "gcd",
    "25": "get_factors",
    "56": "is_valid_parenthesization",
    "61": "is_valid_parenthesization",
}
"""Programs of HumanEvalFix that solve the same problem as one of QuixBugs."""
HELD_OUT_EVERY, VALIDATION_EVERY = 3, 5


def split_of(program: Program) -> str:
    """The only split that a program may be in."""
    if program.source == "quixbugs" or program.name in ALIKE or int(program.name) % HELD_OUT_EVERY == 0:
        return "test"
    return "validation" if int(program.name) % VALIDATION_EVERY == 0 else "train"


def make_tasks(parameters: CodeRepairParameters, sizes: SplitSizes, seed: int) -> Iterator[Task]:
    """Yield the tasks of all splits.

    Raises:
        StorageError: the programs are missing.
        TaskError: there are not enough of them.
    """
    programs = list(all_programs(find_data(parameters.data)).values())
    judge = Judge(parameters.test_seconds)
    shortcuts = Shortcuts(judge)
    try:
        for split, wanted in (("train", sizes.train), ("validation", sizes.validation), ("test", sizes.test)):
            mine = [program for program in programs if split_of(program) == split]
            source = _test_tasks if split == "test" else _listed
            made = source(mine, seed, judge, shortcuts)
            count = 0
            while count < wanted:
                task = next(made, None)
                if task is None:
                    raise TaskError(f"tasks.{split}: is {wanted}, but there are only {count} such tasks")
                yield replace(task, split=split)
                count += 1
    finally:
        judge.close()


def program_of(task: Task, programs: Mapping[str, Program]) -> Program:
    """Return a task's program, with the task's bug in it.

    Raises:
        TaskError: the task belongs to another environment, or names no existing program or change.
    """
    program = programs.get(str(task.spec.get("program")))
    number = task.spec.get("change")
    if task.environment != ENVIRONMENT or program is None:
        raise TaskError(f"task {task.task_id}: spec.program names no program of the data sets")
    if number is None:
        return program
    made = changes(program.correct)
    if not isinstance(number, int) or not 0 <= number < len(made):
        raise TaskError(
            f"task {task.task_id}: spec.change is {number!r}; {program.key} has {len(made)} changes"
        )
    return replace(program, faulty=made[number].apply(program.correct))


def check_tasks(tasks: Sequence[Task]) -> None:
    """Refuse foreign tasks, repeated tasks, and programs in the wrong split."""
    refuse_repetitions(
        tasks, ENVIRONMENT, "bug", lambda task: f"{task.spec.get('program')} {task.spec.get('change')}"
    )
    splits: dict[str, str] = {}
    for task in tasks:
        other = splits.setdefault(str(task.spec.get("program")), task.split)
        if other != task.split:
            raise TaskError(f"splits overlap: {task.spec.get('program')} is in {other} and in {task.split}")


def _test_tasks(programs: Sequence[Program], seed: int, judge: Judge, shortcuts: Shortcuts) -> Iterator[Task]:
    """The original bugs of both data sets, in mixed order, followed by made ones."""
    found = sorted(programs, key=lambda program: derive(seed, "code repair test", program.key))
    for program in found:
        if not shortcuts.win(program):
            listed = "listed" if repair(program.faulty, program.correct) else "other"
            yield _task(program, None, f"{program.source}/{listed}")
    own = [program for program in found if program.source == "humanevalfix"]
    yield from _made(own, seed, judge, shortcuts)


def _listed(programs: Sequence[Program], seed: int, judge: Judge, shortcuts: Shortcuts) -> Iterator[Task]:
    """Bugs that a listed change repairs: the data set's own, followed by made ones."""
    for program in programs:
        if repair(program.faulty, program.correct) and not shortcuts.win(program):
            yield _task(program, None, f"{program.source}/listed")
    yield from _made(programs, seed, judge, shortcuts)


def _made(programs: Sequence[Program], seed: int, judge: Judge, shortcuts: Shortcuts) -> Iterator[Task]:
    """Bugs made by listed changes: one of each program in turn, until there are no more."""
    waiting = {
        program: generator(seed, "code repair bugs", program.key)
        .permutation(len(changes(program.correct)))
        .tolist()
        for program in programs
        if not shortcuts.win(program)
    }
    while waiting:
        for program in list(waiting):
            task = None
            while task is None and waiting[program]:
                task = _made_task(program, waiting[program].pop(), judge, shortcuts)
            if task is None:
                del waiting[program]
            else:
                yield task


def _made_task(program: Program, number: int, judge: Judge, shortcuts: Shortcuts) -> Task | None:
    """The task of this change; None if the change is not a suitable bug."""
    bug = changes(program.correct)[number].apply(program.correct)
    if shape(bug) == shape(program.faulty) or repair(bug, program.correct) is None:
        return None
    verdict = judge.verdict(program, bug, hidden=True, own=True)
    if verdict.perfect or verdict.timed_out or shortcuts.win(replace(program, faulty=bug)):
        return None
    return _task(program, number, "made/listed")


def _task(program: Program, change: int | None, stratum: str) -> Task:
    name = program.key if change is None else f"{program.key}/{change}"
    return Task(
        task_id=name,
        environment=ENVIRONMENT,
        seed=0,
        spec={"program": program.key, "change": change},
        split="",
        stratum=stratum,
    )
