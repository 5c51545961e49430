from __future__ import annotations

import asyncio
import os

from asked import QUESTION, sum_of
from inspect_ai.model import get_model
from inspect_ai.tool import tool


@tool
def add():
    async def execute(a: int, b: int) -> str:
        """Add two.

        Args:
            a: The first.
            b: The second.
        """
        return sum_of(a, b)

    return execute


async def play() -> None:
    address, key = os.environ["OPENAI_BASE_URL"], os.environ["OPENAI_API_KEY"]
    model = get_model("openai-api/skillpress/policy", base_url=address, api_key=key)
    _, output = await model.generate_loop(QUESTION, tools=[add()])
    print(output.completion)


asyncio.run(play())
