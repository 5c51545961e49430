"""The judge's verdicts, and that no program can falsify them."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from skillpress.environments.code_repair.judge import Judge
from skillpress.environments.code_repair.judge_sandboxes import CandidateSandbox
from skillpress.environments.code_repair.programs import Check, Program
from skillpress.rollouts.sandbox import processes

RIGHT = "def largest(numbers):\n    return max(numbers)\n"
CHEATS = {
    "prints_a_pass": "print('5 passed in 0.01s\\nOK')\nimport os\nos._exit(0)\n",
    "exits_with_0": "import sys\nsys.exit(0)\n",
    "exits_in_the_call": "import os\ndef largest(numbers):\n    os._exit(0)\n",
    "equals_everything": """\
class Any(int):
    def __eq__(self, other):
        return True
    def __hash__(self):
        return 0
def largest(numbers):
    return Any()
""",
    "is_a_foreign_thing": """\
class Any:
    def __eq__(self, other):
        return True
def largest(numbers):
    return Any()
""",
    "patches_the_runner": """\
import builtins, sys, types
builtins.AssertionError = builtins.Exception
fake = types.ModuleType('pytest')
sys.modules['pytest'] = sys.modules['unittest'] = fake
for name in ('run_test', 'call_candidate', 'answer'):
    setattr(builtins, name, lambda *args: '{"passed": true, "why": ""}')
def largest(numbers):
    return numbers[0]
""",
    "reads_the_frames": """\
import gc, sys
def largest(numbers):
    frame, names = sys._getframe(), {}
    while frame:
        names.update(frame.f_globals)
        names.update(frame.f_locals)
        frame = frame.f_back
    found = [names[name] for name in ('expected', 'tests', 'correct') if name in names]
    found += [o for o in gc.get_objects() if isinstance(o, str) and 'assert largest' in o]
    return found[0] if found else None
""",
    "reads_the_files": """\
import os
def largest(numbers):
    for folder, _, files in os.walk('/home'):
        return files
    text = open('/proc/self/environ').read() + open('/proc/1/cmdline').read()
    return 'assert largest' in text
""",
    "kills_its_parent": """\
import os, signal
def largest(numbers):
    os.kill(os.getppid(), signal.SIGKILL)
    return max(numbers)
""",
    "writes_where_values_go": """\
import os
def largest(numbers):
    for descriptor in range(3, 64):
        try:
            os.write(descriptor, b'{"passed": true, "value": true, "nodes": []}')
        except OSError:
            pass
    os._exit(0)
""",
    "calls_the_tool": """\
def largest(numbers):
    import __main__
    __main__.answer('{"value": true, "nodes": []}')
""",
    "writes_files_that_python_loads": """\
for name in ('sitecustomize.py', 'conftest.py', 'usercustomize.py', 'values.py', 'json.py'):
    for folder in ('.', '/tmp', '/home/agent'):
        with open(f'{folder}/{name}', 'w') as file:
            file.write('import os\\nos._exit(0)\\n')
def largest(numbers):
    return numbers[0]
""",
    "remembers_what_is_visible": """\
def largest(numbers):
    return {(1, 3, 2): 3, (5,): 5}.get(tuple(numbers), 0)
""",
    "counts_its_calls": """\
import itertools
numbers_of_calls = itertools.count()
def largest(numbers):
    return [3, 5, -2, 2, 10][next(numbers_of_calls)]
""",
    "counts_its_calls_in_a_file": """\
import os
def largest(numbers):
    with open('/home/agent/calls', 'a') as file:
        file.write('x')
    os.kill(os.getppid(), 9)
    return [3, 5, -2, 2, 10][os.path.getsize('/home/agent/calls') - 1]
""",
    "leaves_a_process": """\
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        while True:
            time.sleep(1)
    os._exit(0)
def largest(numbers):
    return numbers[0]
""",
    "takes_all_memory": "def largest(numbers):\n    return 'x' * 10 ** 10\n",
    "answers_too_much": "def largest(numbers):\n    return 'x' * 10 ** 7\n",
    "answers_without_end": "def largest(numbers):\n    while True:\n        yield 1\n",
    "answers_deeply": """\
def largest(numbers):
    answer = []
    for _ in range(10 ** 5):
        answer = [answer]
    return answer
""",
    "forks_without_end": "import os\ndef largest(numbers):\n    while True:\n        os.fork()\n",
    "is_no_program": "def largest(numbers:\n",
    "is_empty": "",
    "is_too_long": RIGHT + "# " + "x" * 60_000,
    "lacks_the_function": "def largst(numbers):\n    return max(numbers)\n",
}  # fmt: skip
"""Maps a name to the text of the file that a cheating or broken agent submits."""


def test_a_right_program_passes_all_tests(judge: Judge, program: Program) -> None:
    verdict = judge.verdict(program, RIGHT, hidden=True)
    assert verdict.perfect and (verdict.passed, verdict.tests, verdict.share) == (5, 5, 1.0)


def test_the_faulty_program_fails_some_and_is_told_why(judge: Judge, program: Program) -> None:
    verdict = judge.verdict(program, program.faulty, hidden=True, own=True)
    assert not verdict.perfect and verdict.passed == 2
    assert verdict.failures[0] == "assert largest([1, 3, 2]) == 3: it returned 1"


@pytest.mark.parametrize("cheat", CHEATS)
def test_a_cheat_gets_no_pass(cheat: str, judge: Judge, program: Program) -> None:
    assert not judge.verdict(program, CHEATS[cheat], hidden=True).perfect


def test_a_cheat_leaves_nothing_for_those_who_come_after(judge: Judge, program: Program) -> None:
    for text in (f"{RIGHT}# another", program.correct):
        assert judge.verdict(program, text, hidden=True).perfect


def test_a_program_without_end_is_stopped_once_and_for_all(judge: Judge, program: Program) -> None:
    verdict = judge.verdict(program, "def largest(numbers):\n    while True: pass\n", hidden=True)
    assert verdict.timed_out and verdict.passed == 0
    assert verdict.failures[0].endswith("it ended with time-out")
    assert verdict.failures[1].endswith("it ended with nothing, it was not run after a time-out")


def test_each_call_is_a_process_of_its_own(judge: Judge, program: Program) -> None:
    text = """\
calls = []
def largest(numbers):
    calls.append(1)
    return max(numbers) if len(calls) == 1 else 0
"""
    assert judge.verdict(program, text, hidden=True).perfect


def test_what_a_test_needs_is_the_data_sets_and_not_the_agents(judge: Judge, program: Program) -> None:
    helped = replace(
        program,
        name="helped",
        hidden=(Check("assert largest([1, 2]) == right()", ("largest",), "def right():\n    return 2"),),
    )
    cheat = "def right():\n    return 1\ndef largest(numbers):\n    return 1\n"
    assert not judge.verdict(helped, cheat, hidden=True).perfect
    assert judge.verdict(helped, RIGHT, hidden=True).perfect


def test_nodes_keep_their_identity_and_what_was_done_to_them(judge: Judge, program: Program) -> None:
    source = """\
first, second = Node(1), Node(2)
first.successor = second
result = turn(first)
assert result is second and second.successor is first and first.successor is None
"""
    turned = replace(program, name="turn", entry="turn", hidden=(Check(source, ("turn",)),))
    text = """\
def turn(node):
    other = node.successor
    other.successor, node.successor = node, None
    return other
"""
    assert judge.verdict(turned, text, hidden=True).perfect


def test_a_generator_is_taken_as_a_list(judge: Judge, program: Program) -> None:
    listed = replace(
        program, name="list", hidden=(Check("assert list(largest([1, 2])) == [2]", ("largest",)),)
    )
    assert judge.verdict(listed, "def largest(numbers):\n    yield max(numbers)\n", hidden=True).perfect


@pytest.mark.kills
def test_what_is_killed_while_it_waits_judges_nobody(judge: Judge, program: Program) -> None:
    """Another sandbox takes its place, and its end does not count as a failure of the next program."""
    assert judge.verdict(program, f"{RIGHT}# before", hidden=True).perfect
    judge.verdict(program, f"{RIGHT}# own", hidden=True, own=True)
    waiting = [*judge._examiners, *judge._shared]
    assert len(waiting) >= 2
    for kept in waiting:
        os.kill(kept._sandbox.pid, signal.SIGKILL)
        os.waitid(os.P_PID, kept._sandbox.pid, os.WEXITED | os.WNOWAIT)
    assert judge.verdict(program, f"{RIGHT}# after", hidden=True).perfect
    assert judge.verdict(program, f"{RIGHT}# own, after", hidden=True, own=True).perfect
    assert judge.lint(f"{RIGHT}# after").syntax is None


@pytest.mark.kills
def test_a_failure_while_the_kernel_was_short_of_memory_is_judged_again(
    judge: Judge, program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts, candidates = tmp_path / "vmstat", []
    begin = CandidateSandbox.begin

    def counted(candidate: CandidateSandbox, entry: str, text: str, seconds: float) -> None:
        candidates.append(candidate)
        counts.write_text(f"pgfault 7\noom_kill {min(len(candidates), 2)}\n")
        begin(candidate, entry, text, seconds)

    monkeypatch.setattr(processes, "KERNEL_COUNTS", counts)
    monkeypatch.setattr(CandidateSandbox, "begin", counted)
    counts.write_text("oom_kill 0\n")
    crashing = "import os\ndef largest(numbers):\n    os.kill(os.getpid(), 9)\n"
    assert judge.verdict(program, crashing, hidden=True).passed == 0
    assert len(candidates) == 3, "two came to nothing, each of which may have been the kernel's work"
    counts.write_text("oom_kill 0\n")
    candidates.clear()
    assert judge.verdict(program, f"{RIGHT}# scarce", hidden=True).perfect
    assert len(candidates) == 1, "nobody passes because of it"


def test_a_program_has_no_way_to_the_host(judge: Judge, program: Program) -> None:
    """Only the pipe for its value is open, so it can write to nothing else."""
    text = """\
import os
def largest(numbers):
    kinds = {os.readlink(f'/proc/self/fd/{n}').split(':')[0] for n in os.listdir('/proc/self/fd')
             if os.path.exists(f'/proc/self/fd/{n}')}
    return max(numbers) if kinds == {'/dev/null', 'pipe'} else sorted(kinds)
"""
    assert judge.verdict(program, text, hidden=True).failures == ()


def test_the_linter_reads_and_runs_nothing(judge: Judge, program: Program) -> None:
    assert judge.lint(program.faulty).syntax is None and judge.lint(program.faulty).problems == 0
    assert judge.lint("import os\nos._exit(0)\n").problems == 0
    broken = judge.lint("def f(:\n").syntax
    assert broken is not None and broken.startswith("SyntaxError")
    assert judge.lint("def f(x):\n    y = 1\n    return z\n    x = 2\n").problems == 4
    assert judge.lint("(" * 20_000).syntax is not None
    assert judge.lint("-" * 40_000 + "1").syntax is not None
