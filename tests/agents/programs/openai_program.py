from __future__ import annotations

import json

import openai
from asked import QUESTION, sum_of

NUMBERS = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}
ADD = {"type": "function", "function": {"name": "add", "description": "Add two.", "parameters": NUMBERS}}

client, messages = openai.OpenAI(), [{"role": "user", "content": QUESTION}]
while True:
    said = client.chat.completions.create(model="policy", messages=messages, tools=[ADD]).choices[0].message
    messages.append(said)
    if not said.tool_calls:
        break
    for call in said.tool_calls:
        result = sum_of(**json.loads(call.function.arguments))
        messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
print(said.content)
