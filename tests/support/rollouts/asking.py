"""Programs that ask a model over HTTP, their verifiers, and the parts that play them."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import threading
from typing import Any

import httpx

HERE = "tests.support.rollouts.asking"


async def walk(task: dict[str, Any], base_url: str, api_key: str) -> dict[str, Any]:
    """Asks for a word until it is ``stop``; the words so far are the next message."""
    said = [str(task["start"])]
    async with httpx.AsyncClient(base_url=base_url, headers={"x-api-key": api_key}, timeout=120) as client:
        while said[-1] != "stop":
            body = {"messages": [{"role": "user", "content": " ".join(said)}], "max_tokens": 1}
            answer = await client.post("/chat/completions", json=body | {"temperature": 0.0})
            if answer.status_code != 200:
                break
            said.append(answer.json()["choices"][0]["message"]["content"] or "stop")
    return {"said": said}


def walked(task: dict[str, Any], printed: str, folder: str, calls: list[Any]) -> dict[str, Any]:
    """A walk of an even number of calls succeeds."""
    return {"success": len(calls) % 2 == 0, "calls": len(calls)}


async def fan_out(task: dict[str, Any], base_url: str, api_key: str) -> str:
    """Four sub-agents that ask at once."""
    async with httpx.AsyncClient(base_url=base_url, headers={"x-api-key": api_key}, timeout=120) as client:

        async def ask(number: int) -> str:
            body = {"messages": [{"role": "user", "content": str(number)}], "max_tokens": 1}
            return str(
                (await client.post("/chat/completions", json=body)).json()["choices"][0]["message"]["content"]
            )

        return " ".join(await asyncio.gather(*map(ask, range(4))))


async def thrice(task: dict[str, Any], base_url: str, api_key: str) -> list[int]:
    """Asks three times; returns the weights' versions that the answers name."""
    async with httpx.AsyncClient(base_url=base_url, headers={"x-api-key": api_key}, timeout=120) as client:
        versions = []
        for number in range(3):
            body = {"messages": [{"role": "user", "content": f"{task['start']} {number}"}], "max_tokens": 1}
            answer = await client.post("/chat/completions", json=body)
            assert answer.status_code == 200, answer.text
            versions.append(answer.json()["skillpress"]["weights"][0][0]["version"])
    return versions


async def several(task: dict[str, Any], base_url: str, api_key: str) -> list[str]:
    """Wants four responses to one request."""
    async with httpx.AsyncClient(base_url=base_url, headers={"x-api-key": api_key}, timeout=120) as client:
        body = {"messages": [{"role": "user", "content": str(task["start"])}], "max_tokens": 1, "n": 4}
        choices = (await client.post("/chat/completions", json=body)).json()["choices"]
    return [choice["message"]["content"] for choice in choices]


def always(task: dict[str, Any], printed: str, folder: str, calls: list[Any]) -> bool:
    """Every program that ends succeeds."""
    return True


def look_around(task: dict[str, Any], base_url: str, api_key: str) -> dict[str, Any]:
    """Offers one tool and answers its calls until the model says something; asks for a key in its own
    environment, which it should not find."""
    tool = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
    messages: list[dict[str, Any]] = [{"role": "user", "content": f"find {task['id']}"}]
    with httpx.Client(base_url=base_url, headers={"x-api-key": api_key}, timeout=120) as client:
        while True:
            body = {
                "messages": messages,
                "tools": [tool],
                "temperature": 0.0,
                "max_tokens": 40,
                "stop": ["END"],
            }
            answer = client.post("/chat/completions", json=body | {"temperature": 0.0})
            if answer.status_code != 200:
                raise RuntimeError(answer.text)
            choice = answer.json()["choices"][0]
            said, used = choice["message"], answer.json()["usage"]
            messages.append(said)
            if not said.get("tool_calls"):
                ended = {"text": said["content"], "finish": choice["finish_reason"], "used": used}
                return ended | {"secret": os.environ.get("A_SECRET_KEY", "")}
            for call in said["tool_calls"]:
                seen = f"seen with {call['function']['arguments']}"
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": seen})


def told(task: dict[str, Any], printed: str, folder: str, calls: list[Any]) -> dict[str, Any]:
    """It succeeds if the model's last words are ``found it``."""
    found = json.loads(printed)
    return {"success": found["text"] == "found it", "tokens": found["used"]["total_tokens"]}


def never(task: dict[str, Any], printed: str, folder: str, calls: list[Any]) -> bool:
    """A verifier without an end."""
    threading.Event().wait()
    return True


def at_a_loss(task: dict[str, Any], printed: str, folder: str, calls: list[Any]) -> bool:
    """A verifier with a fault."""
    raise LookupError("no such answer")


def crash(task: dict[str, Any], base_url: str, api_key: str) -> None:
    """Fails before it asks anything."""
    raise ValueError("a fault of its own")


def compute(task: dict[str, Any], base_url: str, api_key: str) -> None:
    """Asks nothing, and uses a second of processor time."""
    import time

    end = time.process_time() + 1
    while time.process_time() < end:
        pass


def hang(task: dict[str, Any], base_url: str, api_key: str) -> None:
    """Asks once and never ends."""
    httpx.post(
        f"{base_url}/chat/completions",
        json={"messages": [{"role": "user", "content": "1"}]},
        headers={"x-api-key": api_key},
        timeout=60,
    )
    import time

    time.sleep(3600)


def end_once(task: dict[str, Any], base_url: str, api_key: str, folder: str) -> str:
    """Asks, kills its own worker the first time it lives, and asks on in its next life."""
    mark = os.path.join(os.path.dirname(folder), "killed")
    answers = []
    for number in range(3):
        body = {"messages": [{"role": "user", "content": str(number)}], "max_tokens": 1}
        said = httpx.post(
            f"{base_url}/chat/completions", json=body, headers={"x-api-key": api_key}, timeout=60
        ).json()
        answers.append(said["choices"][0]["message"]["content"])
        if number == 1 and not os.path.exists(mark):
            open(mark, "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
    return " ".join(answers)


COMMAND = """
import json, os, subprocess, sys, urllib.request
task = json.loads(os.environ["SKILLPRESS_TASK"])
subprocess.Popen(["sleep", task["sleep"]], start_new_session=True)
open("note.txt", "w").write("a note")
try:
    urllib.request.urlopen(task["outside"], timeout=5)
    print("reached the outside")
except OSError as error:
    print("refused")
body = json.dumps({"messages": [{"role": "user", "content": "1"}], "max_tokens": 1}).encode()
headers = {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "Content-Type": "application/json"}
asked = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body, headers)
print(json.load(urllib.request.urlopen(asked))["choices"][0]["message"]["content"])
"""
"""A command in Python: it starts a process that leaves its session, writes a file, and tries the network."""


def command() -> list[str]:
    """The command that runs it."""
    return [sys.executable, "-c", COMMAND]


def noted(task: dict[str, Any], printed: str, folder: str, calls: list[Any]) -> dict[str, Any]:
    """The folder must hold the note; whether the outside was reached is a measure."""
    with open(os.path.join(folder, "note.txt")) as file:
        note = file.read()
    return {"success": note == "a note", "outside": float("reached" in printed)}


async def take_turns(task: dict[str, Any], base_url: str, api_key: str) -> list[str]:
    """Two sub-agents with histories of their own ask by turns, four times each."""
    told = [[{"role": "user", "content": str(task["start"] + number)}] for number in range(2)]
    said = []
    async with httpx.AsyncClient(base_url=base_url, headers={"x-api-key": api_key}, timeout=120) as client:
        for turn in range(8):
            history = told[turn % 2]
            answer = await client.post("/chat/completions", json={"messages": history, "max_tokens": 1})
            message = answer.json()["choices"][0]["message"]
            said.append(message["content"])
            history += [message, {"role": "user", "content": str(turn)}]
    return said


def evenly(task: dict[str, Any], printed: str, folder: str, calls: list[Any]) -> bool:
    """Succeeds by about every second draw of the responses."""
    return sum(map(ord, printed)) % 2 == 0
