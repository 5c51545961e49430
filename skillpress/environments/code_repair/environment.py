"""Code repair: a faulty program in a small repository, tools to look, run and edit, and ``submit``.

Submitting ends the episode: the text of the program's file is taken, and the hidden tests are run against
it (``judge.py``). All of them passed is won; anything else is lost as ``failing``, or as ``unreadable``
where there is no such file any more. Files that the agent has made or changed beside it count for nothing.

``task.spec`` names the program, and the change that makes it wrong where it is no bug of the data set.
Neither the correct program nor the hidden tests are in it.
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
from skillpress.play.sandbox import Execution, Limits, Sandbox

LIMITS = Limits(seconds=10.0, memory_mb=512, processes=64, disk_mb=32, shown_characters=8000)
"""Of the sandbox that the agent acts in."""
NOTHING: dict[str, float] = {}
MEASURES = ("unsolved", "passed", "syntax", "lint", "tests")


@dataclass(frozen=True)
class RepairState:
    """What a rendering may show; all of it was told to the agent, or can be read off the faulty program."""

    program: str
    """The name of the function."""
    description: str
    files: tuple[str, ...]
    changes: tuple[Change, ...]
    """Those listed for the program as it was found."""
    page: int = 1
    """Of the listed changes, the one that is seen."""
    applied: int = 0
    """The listed change that the program holds, counted from 1; 0 where it holds none, or something else."""
    passed: int | None = None
    """Visible tests that the program passes as it is now; None while they have not been run."""
    passed_first: int | None = None
    """The same of the program as it was found."""
    visible: int = 0
    """How many visible tests there are."""
    tried: Mapping[int, int] = field(default_factory=dict)
    """Listed change to the visible tests that it passes."""
    steps: int = 0
    max_steps: int = 0

    @property
    def pages(self) -> int:
        """How many there are."""
        return max(1, -(-len(self.changes) // PAGE))

    @property
    def shown(self) -> Sequence[tuple[int, Change]]:
        """(number, change) of the page that is seen."""
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
        """Texts of the program that are this library's own work, and no agent's."""
        self._state = RepairState(
            program=program.entry,
            description=program.description,
            files=tuple(files_of(program)),
            changes=changes(program.faulty),
            visible=len(program.visible),
            max_steps=max_steps,
        )

    def start(self) -> tuple[str, Info]:
        """The repository is there."""
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
        """(what is seen, why it was refused, what an edit measures)."""
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
                    raise AssertionError("submit is no step within an episode")
        except EditError as error:
            return str(error), "edit_refused", {}

    def _run(self, call: Bash) -> str:
        """A command may change anything, so nothing is known of the program afterwards."""
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
        """Of a program that was just edited: syntax, linter, visible tests."""
        if not self._measure_edits:
            return {}
        found, before = self._judge.lint(text), self._judge.lint(self._program.faulty)
        if found.syntax is not None:
            return {"syntax": 0.0, "lint": 0.0, "tests": 0.0}
        clean = float(found.problems <= before.problems)
        verdict = self._judge.verdict(self._program, text, hidden=False, own=text in self._made)
        return {"syntax": 1.0, "lint": clean, "tests": verdict.share}

    def _submit(self, call: Submit) -> StepResult:
        """Judge the text of the one file that counts."""
        try:
            text = self._repository.read(self._program.file)
        except EditError as error:
            info = self._info(call.wording, None, {"unsolved": 1.0, "passed": 0.0})
            return f"Submitted: {error}", True, False, replace(info, lost="unreadable")
        verdict = self._judge.verdict(self._program, text, hidden=True, own=text in self._made)
        won = verdict.perfect
        info = self._info(call.wording, None, {"unsolved": float(not won), "passed": verdict.share})
        said = "Submitted: all tests pass." if won else "Submitted: not all tests pass."
        return said, True, False, replace(info, won=won, lost=None if won else "failing")

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
    """All but ``submit`` until the program was changed."""
    assert isinstance(info.state, RepairState)
    return [action for action in info.admissible if action != "submit" or info.state.applied]


class CodeRepair(SandboxedEnvironment):
    """One episode at a time; it has a judge of its own unless it is given one."""

    def __init__(
        self, parameters: CodeRepairParameters, lease: Lease | None = None, judge: Judge | None = None
    ) -> None:
        """
        Raises:
            StorageError: the programs are not there.
            SandboxUnavailableError: this machine cannot build walls.
        """
        programs = all_programs(find_data(parameters.data))
        own_judge = judge or Judge(parameters.test_seconds)

        def begin(task: Task, sandbox: EpisodeSandbox) -> RepairEpisode:
            program = program_of(task, programs)
            return RepairEpisode(program, own_judge, sandbox, parameters.max_steps, parameters.measure_edits)

        super().__init__(begin, lease or (lambda: Sandbox.start(LIMITS)), parameters.episode_seconds)


class SharedRepairs(PooledEnvironments):
    """The environments of a process: one pool for their agents, and one judge."""

    def __init__(self, parameters: CodeRepairParameters, slots: int) -> None:
        self._judge = Judge(parameters.test_seconds)

        def make(lease: Lease) -> Environment:
            return CodeRepair(parameters, lease, self._judge)

        super().__init__(make, LIMITS, slots, parameters.episode_seconds)

    def close(self) -> None:
        """End the judge's sandboxes too."""
        super().close()
        self._judge.close()
