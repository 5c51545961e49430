"""Sessions of a scripted coding agent with planted routines and decoys, as records of chat completions."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Command = tuple[str, str]
"""A program, and the command line that runs it."""

PLANTED = (
    ("grep", "sed", "patch", "pytest"),
    ("hatch", "towncrier", "twine"),
    ("pip", "uv", "diff"),
)  # fmt: skip
"""The routines of fixing a test, of a release, and of an update."""
FAILING = ("rm", "cmake", "ctest")
"""A decoy: runs with it usually fail."""
RARE = ("perf", "gprof2dot", "less")
"""A decoy: it helps, and occurs in two runs."""
NOISE = ("ls", "cat", "head", "find", "git", "echo")
"""A decoy: the most frequent commands, in any order."""
_LINES = {
    "grep": "grep -rn 'def {word}' src", "sed": "sed -n '1,80p' src/{word}.py",
    "patch": "patch -p1 src/{word}.py", "pytest": "pytest tests/test_{word}.py -q",
    "hatch": "hatch version {number}.0", "towncrier": "towncrier build --yes --version {number}.0",
    "twine": "twine upload dist/*",
    "pip": "pip index versions {word}", "uv": "uv lock --upgrade-package {word}",
    "diff": "diff old.lock uv.lock", "rm": "rm -rf build/{word}", "cmake": "cmake -B build .",
    "ctest": "ctest --test-dir build", "perf": "perf record -g {word}", "gprof2dot": "gprof2dot out.{word}",
    "less": "less report.{word}", "ls": "ls {word}", "cat": "cat {word}.md", "head": "head -5 {word}.md",
    "find": "find . -name {word}", "git": "git log {word}", "echo": "echo {word}",
}  # fmt: skip
_TASKS = (
    "Please fix the failing test of {word} in the parser.",
    "Prepare the release of version {number}.0 today.",
    "Update the dependency {word} to its newest version.",
)
_WORDS = ("alpha", "beta", "gamma", "delta", "kappa", "lambda", "omega", "sigma", "theta", "zeta")


@dataclass(frozen=True)
class Session:
    """One run of the agent."""

    task: str
    message: str
    commands: tuple[Command, ...]
    success: bool

    @property
    def programs(self) -> tuple[str, ...]:
        """The programs that it ran."""
        return tuple(program for program, _ in self.commands)


def sessions(count: int, seed: int = 0, noise: float = 0.2) -> list[Session]:
    """The agent's sessions.

    Args:
        noise: the chance of a command of :data:`NOISE` between two steps of a routine.
    """
    chance = random.Random(seed)
    rare = set(chance.sample(range(count), min(2, count)))
    return [_session(number, chance, noise, number in rare) for number in range(count)]


def _session(number: int, chance: random.Random, noise: float, rare: bool) -> Session:
    kind = chance.randrange(len(PLANTED))
    word, failing = f"{chance.choice(_WORDS)}_{number}", chance.random() < 0.25
    programs = chance.choices(NOISE, k=chance.randint(2, 6))
    for routine in (*([PLANTED[kind]] * chance.randint(1, 2)), *([FAILING] * failing), *([RARE] * rare)):
        for program in routine:
            programs += [program, *chance.choices(NOISE, k=int(chance.random() < noise))]
        programs += chance.choices(NOISE, k=chance.randint(1, 4))
    lines = tuple((name, _LINES[name].format(word=word, number=number)) for name in programs)
    success = chance.random() < (0.15 if failing else 0.75)
    return Session(f"task-{number // 2}", _TASKS[kind].format(word=word, number=number), lines, success)


def record_of(session: Session, outcome: bool = True, **more: Any) -> dict[str, Any]:
    """A session as a record whose only tool is a shell."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": session.message}]
    for number, (_, line) in enumerate(session.commands):
        function = {"name": "bash", "arguments": json.dumps({"command": line})}
        messages.append({"role": "assistant", "tool_calls": [{"id": f"c{number}", "function": function}]})
        messages.append({"role": "tool", "tool_call_id": f"c{number}", "content": "done"})
    told = {"resolved": session.success} if outcome else {}
    return {"task_id": session.task, "messages": messages, **told, **more}


def write_sessions(path: Path, records: Iterable[Any]) -> Path:
    """Write records as lines."""
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def claude_code_lines(session: Session, name: str, copied: Sequence[Any] = ()) -> list[dict[str, Any]]:
    """A session as Claude Code's lines; ``copied`` are those of the session that it was forked from."""
    shared = {"sessionId": name, "version": "2.1.0", "cwd": "/", "isSidechain": False}
    lines = [{**line, "sessionId": name} for line in copied]
    if not copied:
        said = {"role": "user", "content": session.message}
        lines.append({**shared, "type": "user", "uuid": f"{name}-u", "parentUuid": None, "message": said})
    for number, (_, command) in enumerate(session.commands):
        used = {"type": "tool_use", "id": f"{name}-{number}", "name": "Bash", "input": {"command": command}}
        made = {"id": f"{name}-m{number}", "role": "assistant", "model": "scripted", "content": [used]}
        result = {"type": "tool_result", "tool_use_id": used["id"], "content": "done"}
        asked = {**shared, "type": "assistant", "uuid": f"{name}-a{number}", "message": made}
        answer = {"role": "user", "content": [result]}
        lines += [asked, {**shared, "type": "user", "uuid": f"{name}-r{number}", "message": answer}]
    return lines
