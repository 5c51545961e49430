"""A scripted player that errs, whose logs are what the policy learns first.

It knows how to repair a repository, but often does something else: it browses, searches for another function,
edits a file that it has not viewed, sets another value, or stops too early. Its runs are written as another
agent's log: a line for each call of the model, with what the model was shown, and the run's reward.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from benchmarks.program_tools.agent import DIGITS, FILES, FUNCTIONS, TOOLS, Repository, called, shown

Call = tuple[str, dict[str, str]]
Message = dict[str, Any]


def write_log(path: Path, tasks: list[dict[str, Any]], errs: float, most_calls: int, seed: int) -> None:
    """A line for each call of each run.

    Args:
        errs: the share of its steps in which the player does something else than it should.
        most_calls: calls to the model in a run.
    """
    with path.open("w", encoding="utf-8") as file:
        for task in tasks:
            chance = random.Random(f"{seed} {task['id']}")
            asked, won = _run(task, errs, most_calls, chance)
            for messages, response in asked:
                record = {"session_id": task["id"], "task_id": task["id"], "reward": float(won)}
                record |= {"messages": messages, "tools": TOOLS, "response": response}
                file.write(json.dumps(record) + "\n")


def _run(
    task: dict[str, Any], errs: float, most_calls: int, chance: random.Random
) -> tuple[list[tuple[list[Message], Message]], bool]:
    """(what the model was shown and what it said, for each call; whether the run was won)."""
    repository, asked, past = (
        Repository.of(task),
        list[tuple[list[Message], Message]](),
        list[list[Message]](),
    )
    due = "shell test"
    for number in range(most_calls):
        words = _mistake(chance) if chance.random() < errs else due
        if words == "done":
            asked.append((shown(past), {"role": "assistant", "content": words}))
            return asked, not repository.failing
        tool, arguments = _call(words)
        function = {"name": tool, "arguments": json.dumps(arguments)}
        call = {"type": "function", "id": f"call-{number}", "function": function}
        said: Message = {"role": "assistant", "content": "", "tool_calls": [call]}
        asked.append((shown(past), said))
        past.append([said, *called(repository, [call])])
        if words == due:
            due = _next(words, past[-1][-1]["content"], repository)
    return asked, False


def _next(words: str, answer: str, repository: Repository) -> str:
    """What to do after this was done and answered."""
    match words.split():
        case ["shell", "test"]:
            return "done" if answer == "pass" else f"shell grep {answer.split()[1]}"
        case ["shell", "grep", _]:
            return f"edit view {answer}"
        case ["edit", "view", path]:
            wrong = [(name, value) for name, value in repository.failing if name in repository.files[path]]
            name, value = wrong[0] if wrong else ("", "")
            return f"edit set {path} {name} {value}" if wrong else "shell test"
    return "shell test"


def _mistake(chance: random.Random) -> str:
    file, name = chance.choice(FILES), chance.choice(FUNCTIONS)
    return chance.choice(
        [
            "shell ls",
            "shell test",
            f"shell cat {file}",
            f"shell grep {name}",
            f"edit view {file}",
            f"edit set {file} {name} {chance.choice(DIGITS)}",
            "done",
        ]
    )


def _call(words: str) -> Call:
    tool, *rest = words.split()
    if tool == "shell":
        return tool, {"command": " ".join(rest)}
    return tool, dict(zip(("command", "path", "name", "value"), rest, strict=False))
