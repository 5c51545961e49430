"""A small world for trials of skills: a program, tasks, and a model behind a URL that reads skills."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from skillpress.core.seeds import generator
from tests.support.rollouts.chat_server import Manner
from tests.support.rollouts.manners import message

PROGRAM = Path(__file__).parents[1] / "rollouts" / "reading_agent.py"
HERE = "tests.support.skills.trials"


def reads_skills(helps: str, chance: float) -> Manner:
    """A model that reads every skill that a prompt names. It is right if it has read ``helps``, and otherwise
    with a chance that depends on the request's seed and task alone."""

    def manner(number: int, body: dict[str, Any], good: dict[str, Any]) -> Any:
        first, read = (
            body["messages"][0]["content"],
            [m["content"] for m in body["messages"] if m["role"] == "tool"],
        )
        paths = re.findall(r"\S+/SKILL\.md", first)
        if paths and not read:
            calls = [
                {
                    "id": f"c{n}",
                    "type": "function",
                    "function": {"name": "read", "arguments": json.dumps({"path": p})},
                }
                for n, p in enumerate(paths)
            ]
            return message(good, "tool_calls", content=None, tool_calls=calls)
        lucky = generator(body["seed"], first.partition(";")[0]).random() < chance
        return message(good, content="right" if lucky or helps in " ".join(read) else "wrong")

    return manner


def is_right(task: dict[str, Any], printed: str, folder: str, calls: list[Any]) -> bool:
    """It succeeds by its last word; the task is as its file has it."""
    assert set(task) == {"id", "split"}, task
    return printed.strip() == "right"


def world(folder: Path, tasks: int) -> list[str]:
    """Write tasks and an overlay; returns the options of ``skillpress trial`` that name them."""
    lines = [{"id": f"thing-{n:03}", "split": "test" if n else "train"} for n in range(tasks + 1)]
    (folder / "tasks.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    overlay = f"""
environment:
  name: program
  run: [{sys.executable}, {PROGRAM}]
  tasks: {folder / "tasks.jsonl"}
  verify: {HERE}:is_right
  max_calls: 4
  seconds: 60
  isolation: none
tasks: {{test: {tasks}}}
policy: {{rendering: requests}}
imitation: {{demonstrations: 0}}
evaluation: {{votes: 1, temperature: 1.0}}
sampling: {{max_new_tokens: 64}}
"""
    (folder / "world.yaml").write_text(overlay)
    return [
        "--environment",
        "program",
        "--params",
        str(folder / "world.yaml"),
        "--output",
        str(folder / "out"),
    ]
