from __future__ import annotations

from asked import QUESTION, TASK, sum_of
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI


@tool
def add(a: int, b: int) -> str:
    """Add two."""
    return sum_of(a, b)


# Streamed in the second episode.
model = ChatOpenAI(model="policy", streaming=TASK["id"] == "second").bind_tools([add])
messages = [HumanMessage(QUESTION)]
while True:
    said = model.invoke(messages)
    messages.append(said)
    if not said.tool_calls:
        break
    messages += [add.invoke(call) for call in said.tool_calls]
print(said.content)
