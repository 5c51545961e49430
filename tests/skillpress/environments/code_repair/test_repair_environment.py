"""Episodes of a small program of our own: tools, observations, measures, and cheats that gain nothing."""

from __future__ import annotations

import json

import pytest

from skillpress.core.interface import Info
from skillpress.core.trajectory import Task
from skillpress.environments.code_repair.environment import RepairState, explorer_actions
from skillpress.environments.code_repair.programs import Program
from skillpress.environments.code_repair.repository import files_of
from skillpress.environments.sandboxed import SandboxedEnvironment

TASK = Task("ours/largest", "code_repair", 0, {"program": "ours/largest", "change": None})
REPAIR = json.dumps(
    {"tool": "edit", "command": "str_replace", "path": "largest.py", "old_str": "<", "new_str": ">"}
)
CHEATS = {
    "edits_the_tests": "echo > test_largest.py",
    "writes_conftest": "printf 'import os\\nos._exit(0)\\n' | tee conftest.py sitecustomize.py pytest.py",
    "writes_sitecustomize_where_python_looks": "mkdir -p .local/lib/python3.11/site-packages && "
    "echo 'import os; os._exit(0)' > .local/lib/python3.11/site-packages/sitecustomize.py",
    "replaces_python": "mkdir bin; printf '#!/bin/sh\\nexit 0\\n' > bin/python3; chmod +x bin/python3",
    "makes_a_package_of_the_name": "mkdir largest; echo 'largest = max' > largest/__init__.py",
    "removes_the_program": "rm largest.py",
    "links_the_program_to_a_device": "ln -sf /dev/zero largest.py",
    "makes_the_program_a_pipe": "rm largest.py; mkfifo largest.py",
    "makes_the_program_a_folder": "rm largest.py; mkdir largest.py",
    "makes_the_program_endless": "head -c 200000 /dev/zero > largest.py",
    "looks_for_the_solution": "cp $(find / -name '*correct*' 2>/dev/null | head -1) largest.py",
    "ends_its_sandbox": "kill -9 $PPID",
    "leaves_a_process": "(setsid sleep 1000 &)",
}  # fmt: skip


def state(info: Info) -> RepairState:
    assert isinstance(info.state, RepairState)
    return info.state


def bash(command: str) -> str:
    return json.dumps({"tool": "bash", "command": command})


def test_an_episode_is_won_by_the_repair(repair: SandboxedEnvironment) -> None:
    observation, info = repair.reset(TASK)
    assert "largest.py, test_largest.py, README.md" in observation and not info.won
    observation, _, _, info = repair.step("test")
    assert observation.startswith(
        "1 of 2 visible tests pass.\nfailed: assert largest([1, 3, 2]) == 3: it returned 1"
    )
    observation, _, _, info = repair.step(REPAIR)
    assert observation == "largest.py was changed." and info.invalid is None
    assert info.measures == {"syntax": 1.0, "lint": 1.0, "tests": 1.0}
    observation, terminated, truncated, info = repair.step("submit")
    assert (terminated, truncated, info.won, info.lost) == (True, False, True, None)
    assert info.measures == {"unsolved": 0.0, "passed": 1.0}
    assert observation == "Submitted: all tests pass."


def test_a_submission_that_fails_a_hidden_test_is_lost(repair: SandboxedEnvironment) -> None:
    repair.reset(TASK)
    _, terminated, _, info = repair.step('{"tool": "submit"}')
    assert terminated and not info.won and info.lost == "failing"
    assert info.measures == {"unsolved": 1.0, "passed": 0.4}


def test_an_episode_without_a_submission_is_unsolved_at_its_last_step(repair: SandboxedEnvironment) -> None:
    repair.reset(TASK)
    for _ in range(11):
        _, terminated, truncated, info = repair.step("nonsense")
        assert not (terminated or truncated) and info.invalid == "not_a_call" and not info.measures
    _, terminated, truncated, info = repair.step("test")
    assert truncated and not terminated and info.measures == {"unsolved": 1.0, "passed": 0.0}


def test_an_edit_that_breaks_the_program_is_measured_so(repair: SandboxedEnvironment) -> None:
    repair.reset(TASK)
    broken = {"tool": "edit", "command": "insert", "path": "largest.py", "insert_line": 1, "new_str": "  ("}
    assert repair.step(json.dumps(broken))[3].measures == {"syntax": 0.0, "lint": 0.0, "tests": 0.0}


def test_a_listed_change_takes_the_place_of_the_one_before(repair: SandboxedEnvironment) -> None:
    _, info = repair.reset(TASK)
    wanted = [number for number, change in enumerate(state(info).changes, 1) if change.after == ">"]
    _, _, _, info = repair.step("edit 1")
    assert state(info).applied == 1 and state(info).passed is None
    page, slot = divmod(wanted[0] - 1, 12)
    if page:
        repair.step(f"view {page + 1}")
    _, _, _, info = repair.step(f"edit {slot + 1}")
    _, _, _, info = repair.step("test")
    assert state(info).passed == 2 and state(info).tried == {wanted[0]: 2}
    assert repair.step("submit")[3].won


@pytest.mark.parametrize(
    ("action", "said"),
    [
        ({"tool": "edit", "command": "view", "path": "nowhere.py"},
         "there is no file nowhere.py; there are: largest.py, test_largest.py, README.md"),
        ({"tool": "edit", "command": "view", "path": "../secret"}, "'../secret' is not in the repository"),
        ({"tool": "edit", "command": "view", "path": "/etc/passwd"}, "'/etc/passwd' is not in"),
        ({"tool": "edit", "command": "view", "path": "largest.py", "view_range": [5, 9]}, "it has 6 lines"),
        ({"tool": "edit", "command": "change", "number": 999}, "there is no change 999"),
        ({"tool": "edit", "command": "list", "page": 0}, "there is no page 0; there are pages 1 to"),
    ],
)  # fmt: skip
def test_an_edit_that_cannot_be_made_says_why(
    action: dict[str, object], said: str, repair: SandboxedEnvironment
) -> None:
    repair.reset(TASK)
    observation, terminated, _, info = repair.step(json.dumps(action))
    assert said in observation and info.invalid == "edit_refused" and not terminated


def test_bash_and_edit_work_on_the_same_files(repair: SandboxedEnvironment) -> None:
    repair.reset(TASK)
    assert "FAILED test_1 AssertionError" in repair.step(bash("python3 test_largest.py"))[0]
    assert repair.step(bash("sed -i 's/number < found/number <= found/' largest.py"))[0] == "(no output)"
    view = json.dumps({"tool": "edit", "command": "view", "path": "largest.py", "view_range": [4, 4]})
    assert repair.step(view)[0] == "   4          if number <= found:"
    change = REPAIR.replace('"<"', '"<="')
    assert repair.step(change)[0] == "largest.py was changed."
    assert "passed test_1\npassed test_2" in repair.step(bash("python3 test_largest.py"))[0]
    assert repair.step(bash("exit 3"))[0] == "the command ended with exit code 3"
    assert repair.step("submit")[3].won


@pytest.mark.parametrize("cheat", CHEATS)
def test_what_an_agent_does_to_its_own_sandbox_wins_nothing(cheat: str, repair: SandboxedEnvironment) -> None:
    repair.reset(TASK)
    repair.step(bash(CHEATS[cheat]))
    _, terminated, _, info = repair.step("submit")
    assert terminated and not info.won and info.lost in ("failing", "unreadable")
    assert info.measures["unsolved"] == 1.0


@pytest.mark.kills
def test_a_text_from_the_agents_sandbox_is_never_taken_for_our_own(repair: SandboxedEnvironment) -> None:
    repair.reset(TASK)
    repair.step(bash("true"))
    repair.step("edit 1")
    repair.step(bash("echo 'import os; os.kill(os.getppid(), 9)' > largest.py"))
    assert "0 of 2 visible tests pass" in repair.step("test")[0]
    repair.reset(TASK)
    assert "1 of 2 visible tests pass" in repair.step("test")[0], "the judge's own sandboxes are whole"


def test_neither_the_correct_program_nor_a_hidden_test_is_anywhere_to_be_seen(
    program: Program, repair: SandboxedEnvironment
) -> None:
    _, info = repair.reset(TASK)
    seen = "\n".join([*files_of(program).values(), repr(info), json.dumps(dict(TASK.spec))])
    hidden = [test.source for test in program.hidden if test not in program.visible]
    assert program.faulty in seen and hidden and not any(source in seen for source in hidden)
    assert program.correct not in seen


def test_the_explorer_submits_only_what_it_has_changed(repair: SandboxedEnvironment) -> None:
    _, info = repair.reset(TASK)
    assert "submit" in info.admissible and "submit" not in explorer_actions(info)
    assert "submit" in explorer_actions(repair.step("edit 2")[3])
