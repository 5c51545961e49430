from __future__ import annotations

import anthropic
from asked import QUESTION, sum_of

NUMBERS = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}
ADD = {"name": "add", "description": "Add two.", "input_schema": NUMBERS}

client, messages = anthropic.Anthropic(), [{"role": "user", "content": QUESTION}]
while True:
    said = client.messages.create(model="policy", max_tokens=500, messages=messages, tools=[ADD])
    messages.append({"role": "assistant", "content": said.content})
    results = [
        {"type": "tool_result", "tool_use_id": block.id, "content": sum_of(**block.input)}
        for block in said.content
        if block.type == "tool_use"
    ]
    if not results:
        break
    messages.append({"role": "user", "content": results})
print("".join(block.text for block in said.content if block.type == "text"))
