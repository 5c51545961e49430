from __future__ import annotations

from asked import QUESTION
from smolagents import ToolCallingAgent
from smolagents_parts import MODEL, add

print(ToolCallingAgent([add], MODEL, max_steps=3).run(QUESTION))
