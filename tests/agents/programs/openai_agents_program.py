from __future__ import annotations

import agents
from asked import QUESTION, TASK, sum_of


@agents.function_tool
def add(a: int, b: int) -> str:
    """Add two."""
    return sum_of(a, b)


# Responses, its default, in the first episode, and chat completions in the second.
if TASK["id"] == "second":
    agents.set_default_openai_api("chat_completions")
found = agents.Runner.run_sync(agents.Agent(name="adder", model="policy", tools=[add]), QUESTION)
print(found.final_output)
