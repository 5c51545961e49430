"""Tags in prompts and responses: which tag a prompt has opened, and which tokens have no text.

Policies, exports and parsers all read responses. Here they agree on where a response begins and on which of
its tokens are words.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # parsers also run in processes without tokenizers
    from tokenizers import Tokenizer

THOUGHT = "<think>"
"""The tag that begins a thought."""
THOUGHT_END = "</think>"

_TAG = re.compile(r"<(/?)(\w{2,})>")
"""A tag such as ``<think>`` or ``</tool_call>``. Names of one letter are left out, because ``<s>`` and
``</s>`` begin and end texts."""


def opened_thought(prompt: str) -> str:
    """The ``<think>`` at the end of a prompt, with the white space after it; empty if there is none.

    Chat templates of reasoning models end prompts this way. The response then begins inside the thought.
    """
    _, opened, space = prompt.rpartition(THOUGHT)
    return opened + space if opened and not space.strip() else ""


def behind_thought(response: str) -> tuple[str, str | None]:
    """(thought, answer) of a response that begins with a thought.

    The thought is empty if the response begins otherwise. The answer is None if the thought does not end.
    """
    text = response.lstrip()
    if not text.startswith(THOUGHT):
        return "", response
    thought, closed, answer = text.removeprefix(THOUGHT).partition(THOUGHT_END)
    return thought.strip(), answer if closed else None


def silent_tokens(tokenizer: Tokenizer) -> frozenset[int]:
    """Ids of the special tokens that texts are read without: ends, padding, headers of turns.

    Some tokenizers also list ``<think>`` and ``</think>`` among their special tokens. Such a pair is part of
    what the model says, so it is not among these.
    """
    special = {
        token.content: number
        for number, token in tokenizer.get_added_tokens_decoder().items()
        if token.special
    }
    return frozenset(
        number for text, number in special.items() if not _is_markup(text, tokenizer.token_to_id)
    )


def _is_markup(text: str, known: Callable[[str], int | None]) -> bool:
    """Whether a token is a tag whose partner is also a token."""
    tag = _TAG.fullmatch(text)
    if tag is None:
        return False
    slash, name = tag.groups()
    return known(f"<{name}>" if slash else f"</{name}>") is not None
