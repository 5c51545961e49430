"""What the plan names, as the page needs it."""

BENCHMARK = "smollm2"
QUESTION = "q1_learns"
NAMES = {"grpo": "GRPO, 40 steps", "segcost": "SegCost, 40 steps"}
"""Methods that train, as a reader knows them."""
