"""Code repair: a faulty program in a small repository, with tools to look, run and edit, and ``submit``.

Submitting ends the episode: the hidden tests are run against the text of the program's file (``judge.py``).
If all of them pass, the episode is won. Otherwise it is lost: as ``out_of_time`` if the verdict depends on a
limit of time, as ``unreadable`` if the file no longer exists, else as ``failing``. Other files that the agent
has made or changed do not count.

``task.spec`` names the program and, if the bug is not one of the data set, the change that makes it wrong. It
contains neither the correct program nor the hidden tests.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from skillpress.core.interface import Environment, Info
from skillpress.core.trajectory import Task
from skillpress.environments.code_repair.actions import (
    PAGE,
    Action,
    ApplyChange,
    Bash,
    Insert,
    Replace,
    RunTests,
    ShowPage,
    Submit,
    View,
    read_action,
)
from skillpress.environments.code_repair.edits import (
    EditError,
    insert_text,
    replace_text,
    shortened,
    view,
)
from skillpress.environments.code_repair.judge import Judge
from skillpress.environments.code_repair.mutations import Change, changes
from skillpress.environments.code_repair.parameters import CodeRepairParameters
from skillpress.environments.code_repair.programs import Program, all_programs, find_data
from skillpress.environments.code_repair.repository import Repository, files_of, within
from skillpress.environments.code_repair.tasks import program_of
from skillpress.environments.sandboxed import (
    EpisodeSandbox,
    Lease,
    PooledEnvironments,
    SandboxedEnvironment,
    StepResult,
)
from skillpress.rollouts.sandbox import Execution, Limits, Sandbox

LIMITS = Limits(seconds=10.0, memory_mb=512, processes=64, disk_mb=32, shown_characters=8000)
"""Limits of the sandbox in which the agent acts."""
NOTHING: dict[str, float] = {}


@dataclass(frozen=True)
class RepairState:
    """What a rendering may show. The agent has seen all of it or can read it in the faulty program."""

    program: str
    """The name of the function."""
    description: str
    files: tuple[str, ...]
    changes: tuple[Change, ...]
    """The changes listed for the original faulty program."""
    page: int = 1
    """The page of listed changes that is shown."""
    applied: int = 0
    """Number of the listed change that the program contains, counted from 1; 0 if it contains none, or
    something else."""
    passed: int | None = None
    """Number of visible tests that the current program passes; None if they have not been run."""
    passed_first: int | None = None
    """The same number for the original faulty program."""
    visible: int = 0
    """Number of visible tests."""
    tried: Mapping[int, int] = field(default_factory=dict)
    """Maps a listed change to the number of visible tests that it passes."""
    steps: int = 0
    max_steps: int = 0

    @property
    def pages(self) -> int:
        """Number of pages."""
        return max(1, -(-len(self.changes) // PAGE))

    @property
    def shown(self) -> Sequence[tuple[int, Change]]:
        """(number, change) for each change on the current page."""
        first = (self.page - 1) * PAGE
        return list(enumerate(self.changes[first : first + PAGE], first + 1))


class RepairEpisode:
    """One attempt (``sandboxed.Episode``)."""

    def __init__(
        self, program: Program, judge: Judge, sandbox: EpisodeSandbox, max_steps: int, measure_edits: bool
    ) -> None:
        self._program, self._judge, self._measure_edits = program, judge, measure_edits
        self._repository = Repository(program, sandbox)
        self._made = {program.faulty}
        """Texts of the program that were made by this library, not by an agent."""
        self._state = RepairState(
            program=program.entry,
            description=program.description,
            files=tuple(files_of(program)),
            changes=changes(program.faulty),
            visible=len(program.visible),
            max_steps=max_steps,
        )

    def start(self) -> tuple[str, Info]:
        """Describe the repository."""
        observation = (
            f"A repository with {', '.join(self._state.files)}. The function {self._program.entry} in "
            f"{self._program.file} has a bug."
        )
        return observation, self._info(None, None, {})

    def act(self, action: str) -> StepResult:
        """See ``Environment.step``."""
        self._state = replace(self._state, steps=self._state.steps + 1)
        call, wrong = read_action(action, self._state.page)
        out_of_steps = self._state.steps >= self._state.max_steps
        if isinstance(call, Submit):
            return self._submit(call)
        observation, invalid, measures = (
            (wrong, "not_a_call", NOTHING) if call is None else self._carry_out(call)
        )
        if out_of_steps:
            measures = {**measures, "unsolved": 1.0, "passed": 0.0}
        info = self._info(call.wording if call else None, invalid, measures)
        return shortened(observation), False, out_of_steps, info

    def _carry_out(self, call: Action) -> tuple[str, str | None, dict[str, float]]:
        """Return (observation, why it was refused, the measures of an edit)."""
        try:
            match call:
                case Bash():
                    return self._run(call), None, {}
                case View():
                    bounds = None if call.view_range is None else (call.view_range[0], call.view_range[1])
                    return view(call.path, self._repository.read(call.path), bounds), None, {}
                case ShowPage():
                    return self._show(call), None, {}
                case RunTests():
                    return self._test(), None, {}
                case Replace():
                    text = self._repository.read(call.path)
                    return self._edit(call.path, replace_text(call.path, text, call.old_str, call.new_str))
                case Insert():
                    text = self._repository.read(call.path)
                    return self._edit(call.path, insert_text(call.path, text, call.insert_line, call.new_str))
                case ApplyChange():
                    return self._change(call.number)
                case _:
                    raise AssertionError("submit is not a step within an episode")
        except EditError as error:
            return str(error), "edit_refused", {}

    def _run(self, call: Bash) -> str:
        """Run a command. It may change anything, so the program's status is unknown afterwards."""
        done = self._repository.run(call.command)
        self._state = replace(self._state, applied=0, passed=None)
        return _said(done)

    def _show(self, call: ShowPage) -> str:
        if not 1 <= call.page <= self._state.pages:
            raise EditError(f"there is no page {call.page}; there are pages 1 to {self._state.pages}")
        self._state = replace(self._state, page=call.page)
        return (
            "\n".join(f"{number}. {change}" for number, change in self._state.shown) or "No change is listed."
        )

    def _test(self) -> str:
        text = self._repository.read(self._program.file)
        verdict = self._judge.verdict(self._program, text, hidden=False, own=text in self._made)
        first = verdict.passed if text == self._program.faulty else self._state.passed_first
        tried = dict(self._state.tried)
        if self._state.applied:
            tried[self._state.applied] = verdict.passed
        self._state = replace(self._state, passed=verdict.passed, passed_first=first, tried=tried)
        head = f"{verdict.passed} of {verdict.tests} visible tests pass."
        return "\n".join([head, *(f"failed: {failure}" for failure in verdict.failures[:3])])

    def _change(self, number: int) -> tuple[str, str | None, dict[str, float]]:
        listed = self._state.changes
        if not 1 <= number <= len(listed):
            raise EditError(f"there is no change {number}; {len(listed)} are listed")
        text = listed[number - 1].apply(self._program.faulty)
        self._repository.write(self._program.file, text)
        self._made.add(text)
        self._state = replace(self._state, applied=number, passed=self._state.tried.get(number))
        return f"Applied to the program as it was found: {listed[number - 1]}", None, self._measured(text)

    def _edit(self, path: str, text: str) -> tuple[str, str | None, dict[str, float]]:
        self._repository.write(path, text)
        if within(path) != self._program.file:
            return f"{path} was changed.", None, {}
        self._state = replace(self._state, applied=0, passed=None)
        return f"{path} was changed.", None, self._measured(text)

    def _measured(self, text: str) -> dict[str, float]:
        """The measures of a program that was just edited: syntax, linter, visible tests."""
        if not self._measure_edits:
            return {}
        found, before = self._judge.lint(text), self._judge.lint(self._program.faulty)
        if found.syntax is not None:
            return {"syntax": 0.0, "lint": 0.0, "tests": 0.0}
        clean = float(found.problems <= before.problems)
        verdict = self._judge.verdict(self._program, text, hidden=False, own=text in self._made)
        return {"syntax": 1.0, "lint": clean, "tests": verdict.share}

    def _submit(self, call: Submit) -> StepResult:
        """Judge the text of the program's file."""
        try:
            text = self._repository.read(self._program.file)
        except EditError as error:
            info = self._info(call.wording, None, {"unsolved": 1.0, "passed": 0.0})
            return f"Submitted: {error}", True, False, replace(info, lost="unreadable")
        verdict = self._judge.verdict(self._program, text, hidden=True, own=text in self._made)
        won = verdict.perfect
        info = self._info(call.wording, None, {"unsolved": float(not won), "passed": verdict.share})
        said = "Submitted: all tests pass." if won else "Submitted: not all tests pass."
        lost = "out_of_time" if verdict.timed_out else "failing"
        return said, True, False, replace(info, won=won, lost=None if won else lost)

    def _info(self, action: str | None, invalid: str | None, measures: Mapping[str, float]) -> Info:
        pages = [f"view {page}" for page in range(1, self._state.pages + 1) if page != self._state.page]
        edits = [f"edit {slot}" for slot in range(1, len(self._state.shown) + 1)]
        return Info(
            action=action,
            invalid=invalid,
            admissible=(*pages, *edits, "test", "submit"),
            measures=measures,
            state=self._state,
        )


def _said(done: Execution) -> str:
    parts = [done.stdout, done.stderr, done.error or ""]
    return "\n".join(part.rstrip() for part in parts if part.strip()) or "(no output)"


def explorer_actions(info: Info) -> list[str]:
    """All actions, but ``submit`` only after the program was changed."""
    assert isinstance(info.state, RepairState)
    return [action for action in info.admissible if action != "submit" or info.state.applied]


class CodeRepair(SandboxedEnvironment):
    """One episode at a time. It makes its own judge unless it is given one."""

    def __init__(
        self, parameters: CodeRepairParameters, lease: Lease | None = None, judge: Judge | None = None
    ) -> None:
        programs = all_programs(find_data(parameters.data))
        own_judge = judge or Judge(parameters.test_seconds, parameters.isolation)

        def begin(task: Task, sandbox: EpisodeSandbox) -> RepairEpisode:
            program = program_of(task, programs)
            return RepairEpisode(program, own_judge, sandbox, parameters.max_steps, parameters.measure_edits)

        def own_lease() -> Sandbox:
            return Sandbox.start(LIMITS, isolation=parameters.isolation)

        super().__init__(begin, lease or own_lease, parameters.episode_seconds)


class SharedRepairs(PooledEnvironments):
    """The environments of a process: one pool of sandboxes for their agents, and one judge."""

    def __init__(self, parameters: CodeRepairParameters, slots: int) -> None:
        self._judge = Judge(parameters.test_seconds, parameters.isolation)

        def make(lease: Lease) -> Environment:
            return CodeRepair(parameters, lease, self._judge)

        super().__init__(make, LIMITS, slots, parameters.episode_seconds, isolation=parameters.isolation)

    def close(self) -> None:
        """End the judge's sandboxes too."""
        super().close()
        self._judge.close()
