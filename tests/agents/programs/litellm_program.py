from __future__ import annotations

import json

import litellm
from asked import QUESTION, TASK, sum_of

NUMBERS = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}
ADD = {"type": "function", "function": {"name": "add", "description": "Add two.", "parameters": NUMBERS}}

# Two of its names for servers that speak chat completions.
model = "hosted_vllm/policy" if TASK["id"] == "second" else "openai/policy"
address = litellm.get_secret("OPENAI_BASE_URL")
messages = [{"role": "user", "content": QUESTION}]
while True:
    answer = litellm.completion(model=model, messages=messages, tools=[ADD], api_base=address)
    said = answer.choices[0].message
    messages.append(said)
    if not said.tool_calls:
        break
    for call in said.tool_calls:
        result = sum_of(**json.loads(call.function.arguments))
        messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
print(said.content)
