from __future__ import annotations

from asked import QUESTION, TASK, sum_of
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel

# Chat completions in the first episode, responses in the second.
agent = Agent(OpenAIResponsesModel("policy") if TASK["id"] == "second" else OpenAIChatModel("policy"))


@agent.tool_plain
def add(a: int, b: int) -> str:
    """Add two."""
    return sum_of(a, b)


print(agent.run_sync(QUESTION).output)
