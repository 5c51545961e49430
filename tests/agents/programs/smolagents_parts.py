"""The tool and the model of both kinds of smolagents' agents."""

from __future__ import annotations

import os

from asked import sum_of
from smolagents import OpenAIServerModel, tool


@tool
def add(a: int, b: int) -> str:
    """Add two.

    Args:
        a: The first.
        b: The second.
    """
    return sum_of(a, b)


MODEL = OpenAIServerModel("policy", os.environ["OPENAI_BASE_URL"], api_key=os.environ["OPENAI_API_KEY"])
