"""A program that offers its model one tool, to read a file, and tells it which skills it has found."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen


def asked(messages: list[dict[str, Any]]) -> dict[str, Any]:
    """The model's answer."""
    body = {"messages": messages, "tools": [{"type": "function", "function": {"name": "read"}}]}
    request = Request(
        f"{os.environ['OPENAI_BASE_URL']}/chat/completions",
        json.dumps(body).encode(),
        {"Content-Type": "application/json", "Authorization": f"Bearer {os.environ['OPENAI_API_KEY']}"},
    )
    with urlopen(request, timeout=60) as answer:
        said: dict[str, Any] = json.loads(answer.read())["choices"][0]["message"]
    return said


def main() -> None:
    """One task: calls are carried out until the model says something, which is printed."""
    task = json.loads(os.environ["SKILLPRESS_TASK"])
    found = sorted(str(path) for path in Path(".agents/skills").glob("*/SKILL.md"))
    messages = [{"role": "user", "content": f"find {task['id']}; skills: {' '.join(found)}"}]
    while (said := asked(messages)).get("tool_calls"):
        messages.append(said)
        for call in said["tool_calls"]:
            path = json.loads(call["function"]["arguments"])["path"]
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": Path(path).read_text()})
    print(said["content"])


if __name__ == "__main__":
    main()
