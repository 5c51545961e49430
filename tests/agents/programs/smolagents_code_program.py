from __future__ import annotations

import os

from asked import QUESTION, sum_of
from smolagents import CodeAgent, OpenAIServerModel, tool


@tool
def add(a: int, b: int) -> str:
    """Add two.

    Args:
        a: The first.
        b: The second.
    """
    return sum_of(a, b)


model = OpenAIServerModel("policy", os.environ["OPENAI_BASE_URL"], api_key=os.environ["OPENAI_API_KEY"])
print(CodeAgent([add], model, max_steps=3).run(QUESTION))
