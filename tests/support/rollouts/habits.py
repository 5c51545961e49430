"""Programs with the ``openai`` client, one for each habit of agents that own their loop."""

from __future__ import annotations

import json
from typing import Any

import openai

LOOK: Any = {
    "type": "function",
    "function": {"name": "look", "parameters": {"type": "object", "properties": {"at": {"type": "string"}}}},
}
"""The one tool."""
TOO_LONG = "far " * 2000
"""A message that is longer than the budget of prompts."""


async def play(task: dict[str, Any], base_url: str, api_key: str) -> Any:
    """Plays as the task says; returns what the endpoint has answered."""
    client = openai.AsyncOpenAI(base_url=base_url, api_key=api_key, max_retries=0)
    return await globals()[task["habit"]](client)


async def edits_its_history(client: openai.AsyncOpenAI) -> list[Any]:
    """Asks five times. The third time it has edited its first message, the fifth time the model's answer."""
    messages: list[Any] = [{"role": "user", "content": "go on"}]
    for number in range(5):
        if number == 2:
            messages = [{"role": "user", "content": "go on, as before"}]
        if number == 4:
            messages[1]["content"] = "up, up"
        said = await client.chat.completions.create(model="any", messages=messages)
        messages.append({"role": "assistant", "content": said.choices[0].message.content})
        messages.append({"role": "user", "content": f"and on, {number}"})
    return messages


async def answers_calls(client: openai.AsyncOpenAI) -> list[Any]:
    """Offers the tool and answers calls until the model says something that begins with no call."""
    messages: list[Any] = [{"role": "user", "content": "find the door"}]
    while True:
        said = await client.chat.completions.create(model="any", messages=messages, tools=[LOOK])
        if _goes_on(messages, said.choices[0].message):
            return [message if isinstance(message, dict) else message.to_dict() for message in messages]


async def streams(client: openai.AsyncOpenAI) -> list[Any]:
    """The same with streams."""
    messages: list[Any] = [{"role": "user", "content": "find the door"}]
    while True:
        async with client.chat.completions.stream(model="any", messages=messages, tools=[LOOK]) as stream:
            said = await stream.get_final_completion()
        if _goes_on(messages, said.choices[0].message):
            return [message if isinstance(message, dict) else message.to_dict() for message in messages]


def _goes_on(messages: list[Any], message: Any) -> bool:
    """Add the model's message and what follows it; returns whether it was the last."""
    messages.append(message)
    for call in message.tool_calls or ():
        at = json.loads(call.function.arguments)["at"]
        messages.append({"role": "tool", "tool_call_id": call.id, "content": f"nothing at {at}"})
    if message.tool_calls:
        return False
    if "<tool_call>" in message.content:
        messages.append({"role": "user", "content": "That was no call."})
        return False
    return True


async def limits(client: openai.AsyncOpenAI) -> list[Any]:
    """Asks the same four times, with different limits."""
    told = []
    wishes: list[Any] = [{}, {"stop": ["oo", "!"]}, {"max_tokens": 7}, {"stop": "cool", "max_tokens": 7}]
    for wish in wishes:
        messages: Any = [{"role": "user", "content": "look"}]
        said = await client.chat.completions.create(model="any", messages=messages, **wish)
        assert said.usage is not None
        choice = said.choices[0]
        told.append([choice.message.content, choice.finish_reason, said.usage.completion_tokens])
    return told


async def asks_too_much(client: openai.AsyncOpenAI) -> dict[str, Any]:
    """Asks with too long a message, reads the refusal, and asks again with a short one."""
    try:
        await client.chat.completions.create(model="any", messages=[{"role": "user", "content": TOO_LONG}])
    except openai.BadRequestError as error:
        refused = {"status": error.status_code, "body": error.body}
    said = await client.chat.completions.create(model="any", messages=[{"role": "user", "content": "look"}])
    return {**refused, "then": said.choices[0].message.content}


def always(task: dict[str, Any], printed: str, folder: str, calls: list[Any]) -> bool:
    """Every program that ends succeeds."""
    return True
