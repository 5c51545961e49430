"""The benchmark's policy: a few layers over the words of its tools, and a chat template of compact words."""

from __future__ import annotations

from pathlib import Path

from benchmarks.program_tools.agent import COMMANDS, DIGITS, FILES, FUNCTIONS
from skillpress.core.interface import ScratchVocabulary
from skillpress.models.policy import save_policy
from skillpress.models.policy.scratch import build_scratch_policy

END = "<end>"
ROLES = ("<user>", "<assistant>", "<tool>", "<tools>")
WORDS = (
    *ROLES, *FILES, *FUNCTIONS, *DIGITS, *COMMANDS, "shell", "edit", "view", "set", "repair", "done", "fail",
    "pass", "changed", "wrong", "nothing", END,
)  # fmt: skip
TEMPLATE = """\
{%- if tools %}<tools>{% for tool in tools %} {{ tool.function.name }}{% endfor %} {% endif %}
{%- for message in messages %}<{{ message.role }}> {{ message.content }}
{%- for call in message.tool_calls or [] %} {{ call.function.name }}
{%- for value in call.function.arguments.values() %} {{ value }}{% endfor %}{% endfor %}
{%- if message.role == 'assistant' %} <end>{% endif %} {% endfor %}
{%- if add_generation_prompt %}<assistant> {% endif %}"""
LONGEST = 64
"""Words of a conversation."""


def save_fresh(folder: Path, seed: int, width: int = 64, layers: int = 2, heads: int = 4) -> None:
    """Write a policy with fresh weights."""
    vocabulary = ScratchVocabulary(WORDS, (END,), numbers={}, state_words=LONGEST, end=END)
    policy = build_scratch_policy(vocabulary, width, layers, heads, response_words=8, seed=seed)
    policy.tokenizer.chat_template = TEMPLATE
    save_policy(policy, folder)
