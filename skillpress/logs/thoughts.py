"""Thoughts that an agent writes into its words, and the words without them.

Models think between tags: ``<think>``, ``<reasoning>``, ``[THINK]``, ``<|begin_of_thought|>``, Harmony's
channel of analysis. A thought is not a step, so steps are read from the words around it. An end tag alone
ends a thought that the prompt has begun, and a thought without an end was cut off.
"""

from __future__ import annotations

import re

_INSIDE = "think|thought|reasoning|reflection|scratch_?pad|monologue|rationale|deliberation|chain_of_"
"""Words that the name of a thought's tag contains, as in ``<inner_thoughts>`` and ``<seed:think>``."""
_NAME = rf"[\w.:-]*(?:{_INSIDE})[\w.:-]*"
_WEAK = "plan|planning|analysis|analy[sz]e|reason|reflect|cot"
"""Full names of other tags that hold thoughts. Such an end tag without its start tag ends no thought."""
_TAG = re.compile(
    rf"<(?P<slash>/?)(?P<name>{_NAME}|(?P<weak>{_WEAK}))(?:\s[^<>]*)?>"
    r"|[\[◁](?P<slashed>/?)(?P<bracketed>think(?:ing)?)[\]▷]"
    r"|<\|(?P<edge>start|begin|end)_(?:of_)?(?P<token>think(?:ing)?|thoughts?|reasoning)\|>",
    re.IGNORECASE,
)
_FOLDED = re.compile(r"<details type=\"reasoning\".*?(?:</details>|\Z)", re.DOTALL)
_ANALYSIS = re.compile(
    r"(?:<\|start\|>assistant)?<\|channel\|>analysis<\|message\|>.*?(?:<\|end\|>|(?=<\|start\|>|<\|channel\|>)|\Z)"
    r"|<\|channel>thought\b.*?(?:<channel\|>|\Z)",
    re.DOTALL,
)
_FINAL = re.compile(r"(?:<\|start\|>assistant)?<\|channel\|>final<\|message\|>|<\|return\|>")
_THOUGHT = re.compile(rf"(?:{_NAME}|{_WEAK}|explanation)s?", re.IGNORECASE)


def is_thought(name: str) -> bool:
    """Whether a tag or a field of this name holds a thought."""
    return _THOUGHT.fullmatch(name) is not None


def without_thoughts(text: str) -> str:
    """The text without its thoughts; empty if it is one thought. A text without a thought is not changed."""
    if "<" not in text and "[" not in text and "◁" not in text:
        return text
    whole = text
    if "<|channel" in text:
        text = _FINAL.sub("", _ANALYSIS.sub("", text))
    if "<details" in text:
        text = _FOLDED.sub("", text)
    kept: list[str] = []
    begun, at = "", 0
    for tag in _TAG.finditer(text):
        name = (tag["name"] or tag["bracketed"] or tag["token"]).lower()
        ends = bool(tag["slash"] or tag["slashed"]) or (tag["edge"] or "").lower() == "end"
        if begun:
            if ends and name == begun:
                begun, at = "", tag.end()
        elif not ends:
            kept.append(text[at : tag.start()])
            begun = name
        elif not tag["weak"]:
            kept, at = [], tag.end()
    if not begun:
        kept.append(text[at:])
    found = "".join(kept)
    return whole if found == whole else found.strip()
