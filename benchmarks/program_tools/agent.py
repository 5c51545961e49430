"""The program: an agent with a shell and an editor, its small repositories, and its verifier.

A repository has four files with two functions each, and a function is a digit. One or two functions are
wrong. The shell runs the tests, which name the first wrong function and what it should be; it lists, searches
and shows files. The editor views a file and sets a function in it, and it refuses to change a file that was
not viewed. The agent ends when it answers without a call. It knows nothing but what the tools have said.

The program owns its loop and its history: it shows its model the last three calls with their answers. It
speaks to it by chat completions over HTTP, with the two tools in the request.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import chain
from typing import Any

import httpx

from skillpress.core.chat_messages import ToolCall
from skillpress.rollouts.programs.tool_calls import BROKEN, Read

FILES = tuple(f"{letter}.py" for letter in "abcdef")
FUNCTIONS = tuple(f"f{number}" for number in range(8))
DIGITS = tuple(map(str, range(5)))
SHOWN = 3
"""The calls that the model is shown."""
COMMANDS = ("test", "ls", "grep", "cat")
TEXT = {"type": "string"}
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "shell",
            "description": "Runs test, ls, grep FUNCTION or cat FILE.",
            "parameters": {"type": "object", "properties": {"command": TEXT}},
        },
    },
    {
        "type": "function",
        "function": {
            "name": "edit",
            "description": "Views a file, or sets a function in it.",
            "parameters": {
                "type": "object",
                "properties": {"command": TEXT, "path": TEXT, "name": TEXT, "value": TEXT},
            },
        },
    },
]


def make_task(number: int, split: str) -> dict[str, Any]:
    """A repository with its wrong functions."""
    chance = random.Random(f"{split} {number}")
    names = chance.sample(FUNCTIONS, len(FUNCTIONS))
    files = {file: dict.fromkeys(names[2 * place : 2 * place + 2], "") for place, file in
             enumerate(chance.sample(FILES, len(FUNCTIONS) // 2))}  # fmt: skip
    for held in files.values():
        held.update({name: chance.choice(DIGITS) for name in held})
    wanted = {name: value for held in files.values() for name, value in held.items()}
    for name in chance.sample(names, chance.choice((1, 2))):
        wanted[name] = chance.choice([digit for digit in DIGITS if digit != wanted[name]])
    return {"id": f"{split}-{number}", "split": split, "files": files, "wanted": wanted}


@dataclass
class Repository:
    """A task's files while an agent works on them."""

    files: dict[str, dict[str, str]]
    wanted: Mapping[str, str]
    viewed: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, task: Mapping[str, Any]) -> Repository:
        """The repository of a task, as it begins."""
        return cls({file: dict(held) for file, held in task["files"].items()}, task["wanted"])

    @property
    def failing(self) -> list[tuple[str, str]]:
        """(name, wanted value) of each wrong function, in the order of the tests."""
        values = {name: value for held in self.files.values() for name, value in held.items()}
        return [(name, self.wanted[name]) for name in sorted(values) if values[name] != self.wanted[name]]

    def call(self, tool: str, arguments: Mapping[str, Any]) -> str:
        """What a tool answers."""
        if tool == "edit":
            return self._edit(arguments)
        words = str(arguments.get("command", "")).split()
        match words:
            case ["test"]:
                return f"fail {self.failing[0][0]} {self.failing[0][1]}" if self.failing else "pass"
            case ["ls"]:
                return " ".join(sorted(self.files))
            case ["grep", name]:
                return next((file for file in sorted(self.files) if name in self.files[file]), "nothing")
            case ["cat", file] if file in self.files:
                return self._shown(file)
        return "wrong"

    def _edit(self, arguments: Mapping[str, Any]) -> str:
        command, path = arguments.get("command"), str(arguments.get("path"))
        if command not in ("view", "set") or path not in self.files:
            return "wrong"
        if command == "view":
            self.viewed.add(path)
            return self._shown(path)
        name, value = str(arguments.get("name")), str(arguments.get("value"))
        if path not in self.viewed or name not in self.files[path] or value not in DIGITS:
            return "wrong"
        self.files[path][name] = value
        return "changed"

    def _shown(self, file: str) -> str:
        return " ".join(f"{name} {value}" for name, value in self.files[file].items())


@cache
def _client() -> httpx.AsyncClient:
    """One client for all episodes of a worker: making one takes longer than an episode."""
    return httpx.AsyncClient(timeout=300, limits=httpx.Limits(max_connections=None))


async def play(task: dict[str, Any], base_url: str, api_key: str) -> dict[str, Any]:
    """Work until the model answers without a call; returns what is in the files then."""
    repository = Repository.of(task)
    past: list[list[dict[str, Any]]] = []
    while True:
        answer = await _client().post(
            f"{base_url}/chat/completions",
            json={"model": "policy", "messages": shown(past), "tools": TOOLS},
            headers={"x-api-key": api_key},
        )
        answer.raise_for_status()
        message = answer.json()["choices"][0]["message"]
        if not message.get("tool_calls"):
            return {"files": repository.files}
        past.append([message, *called(repository, message["tool_calls"])])


def shown(past: list[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """The messages that the model is shown: the task, and the last calls with their answers."""
    return [{"role": "user", "content": "repair"}, *chain.from_iterable(past[-SHOWN:])]


def called(repository: Repository, calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The messages with a repository's answers to calls."""
    return [
        {
            "role": "tool",
            "tool_call_id": call["id"],
            "content": repository.call(
                call["function"]["name"], json.loads(call["function"]["arguments"] or "{}")
            ),
        }
        for call in calls
    ]


def verify(task: dict[str, Any], printed: str, folder: str, calls: list[Any]) -> dict[str, Any]:
    """The repository is repaired if no test fails; its calls are a measure."""
    left = Repository(json.loads(printed)["files"], task["wanted"]).failing
    return {"success": not left, "calls": len(calls)}


def compact(text: str) -> Read:
    """Reads calls in the words of the small policy: a tool, and its arguments behind it."""
    match text.split():
        case ["shell", command, *rest] if len(rest) <= 1:
            return Read("", (ToolCall("shell", {"command": " ".join([command, *rest])}),))
        case ["edit", "view", path]:
            return Read("", (ToolCall("edit", {"command": "view", "path": path}),))
        case ["edit", "set", path, name, value]:
            call = {"command": "set", "path": path, "name": name, "value": value}
            return Read("", (ToolCall("edit", call),))
        case ["shell" | "edit", *_]:
            return Read(text.strip(), invalid=BROKEN)
    return Read(text.strip())
