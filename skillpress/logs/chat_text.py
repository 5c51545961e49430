"""Text that a chat template rendered, or a model wrote after one, as messages.

Trainers keep prompts and completions as text. The markers of ChatML, Llama, Gemma, Mistral and DeepSeek say
who speaks. If special tokens were skipped, lines that are only ``user``, ``assistant`` or ``system`` say it.
An answer of the environment in a model's text (``<tool_response>``, ``<information>``) is a turn of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from skillpress.core.chat_messages import ROLES

_SPEAKER = (
    r"<\|im_start\|>\s*(?P<chatml>\w+)[^\n]*\n?"
    r"|<\|start_header_id\|>\s*(?P<llama>\w+)\s*<\|end_header_id\|>\s*"
    r"|<start_of_turn>\s*(?P<gemma>\w+)[ \t]*\n?"
    r"|<[|｜](?P<deepseek>User|Assistant|System|user|assistant|system|observation)[|｜]>\s*"
    r"|(?P<ask>\[INST\])\s*|(?P<reply>\[/INST\])\s*"
)
_MARKED = re.compile(_SPEAKER)
_PLAIN = re.compile(r"(?:^|\n)(?P<plain>system|user|assistant)[ \t]*(?:\n|$)")
_ENDS = re.compile(
    r"<\|(?:im_end|eot_id|end_of_text|begin_of_text|endoftext|eom_id)\|>|<end_of_turn>|<[|｜]"
    r"(?:end▁of▁sentence|begin▁of▁sentence)[|｜]>|<bos>|<eos>|</?s>"
)
_ANSWERED = re.compile(
    r"<(?P<tag>tool_response|information|observation|interpreter|execution_result)>(?P<said>.*?)(?:</(?P=tag)>|\Z)",
    re.DOTALL,
)


def messages_of_text(text: str, speaker: str = "assistant") -> list[dict[str, Any]]:
    """The messages in a text.

    Args:
        speaker: who speaks before the first marker.
    """
    return [message for role, said in _spoken(text, speaker) for message in _parts(role, said)]


def opened(prompt: str) -> str:
    """The beginning of the answer that a prompt contains, such as ``<think>``; empty if it ends with
    another's turn.
    """
    *_, (speaker, begun) = _spoken(prompt, "user")
    return begun if ROLES.get(speaker) == "assistant" and not _ENDS.search(begun) else ""


def _spoken(text: str, speaker: str) -> Iterator[tuple[str, str]]:
    """Yield (speaker, words) of a text, in order; a final marker without words counts as nothing."""
    pattern = _MARKED if _MARKED.search(text) else _PLAIN
    begin = 0
    for match in pattern.finditer(text):
        yield speaker, text[begin : match.start()]
        named = {name: value for name, value in match.groupdict().items() if value is not None}
        (name, value), begin = next(iter(named.items())), match.end()
        speaker = {"ask": "user", "reply": "assistant"}.get(name, value.lower())
    yield speaker, text[begin:]


def _parts(role: str, said: str) -> Iterator[dict[str, Any]]:
    """The messages in a part of a text: its words, and the environment's answers in it."""
    said, begin = _ENDS.sub("", said), 0
    role = ROLES.get(role, "other")
    for match in _ANSWERED.finditer(said):
        if words := said[begin : match.start()].strip():
            yield {"role": role, "content": words}
        yield {"role": "user" if role == "assistant" else role, "content": match["said"].strip()}
        begin = match.end()
    if words := said[begin:].strip():
        yield {"role": role, "content": words}
