from __future__ import annotations

from asked import QUESTION
from smolagents import CodeAgent
from smolagents_parts import MODEL, add

print(CodeAgent([add], MODEL, max_steps=3).run(QUESTION))
