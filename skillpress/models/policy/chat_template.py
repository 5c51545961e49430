"""What a model's chat template makes of a prompt, a response and the turn after it.

A template is a small program that comes with the model, and what it does wrong makes no sound. Four things
differ between templates and are found out by rendering a known message:

    content     Most take a message's content as text. Those of multimodal models may want a list of parts,
                and write nothing where they get text. A template that drops both forms is refused.
    thought     Some end the prompt with ``<think>``, so that the response begins inside a thought.
    turn's end  The special token that they write behind a response is the one that ends the model's turn.
    date        Some write today's date. They always get the same day here, or prompts would change at
                midnight.

Where a template knows a thinking mode (Qwen3), it is off: prompts ask for a thought in tags of their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, lru_cache
from typing import Any

import jinja2
from transformers import PreTrainedTokenizerFast

from skillpress.core.errors import PolicyError
from skillpress.core.markup import opened_thought

QUESTION = "How much is 6 times 7?\nAnswer with a number."
"""A message that is rendered to see what becomes of it."""
ANSWER = "(any response)"
"""The response that is rendered for the same reason."""
DAY = datetime(2024, 7, 26)
"""Today, in templates that write the date. Llama's write this day where they are not told another."""
WRONG = (jinja2.TemplateError, TypeError, ValueError, LookupError, ArithmeticError, AttributeError)
"""What a template raises that cannot be rendered; it may divide by zero as any program."""


@dataclass(frozen=True)
class ChatTemplate:
    """A tokenizer's chat template, in the form that shows a message's content."""

    tokenizer: PreTrainedTokenizerFast
    in_parts: bool
    """Whether it wants content as a list of parts."""

    def prompt(self, text: str) -> str:
        """A prompt that asks for a response to this text."""
        return self._rendered([("user", text)], asks=True)

    @cached_property
    def opening(self) -> str:
        """What prompts end with that belongs to the response: an opened thought, or nothing."""
        return opened_thought(self.prompt(QUESTION).rpartition(QUESTION)[2])

    def after_response(self, turn: str) -> str:
        """What stands between the text of a response and that of the next one, with a turn of the user.

        Raises:
            PolicyError: the template does not show the response, so that no prompt can go on from it.
        """
        reason = "does not show earlier responses"
        try:
            text = self._rendered([("user", QUESTION), ("assistant", ANSWER), ("user", turn)], asks=True)
        except WRONG as error:
            text, reason = "", f"takes no second turn ({error})"
        _, shown, behind = text.partition(ANSWER)
        if not shown:
            raise PolicyError(
                f"{self.tokenizer.name_or_path}: its chat template {reason}, so prompts cannot go on from "
                "earlier ones: choose a policy.state_update that does not grow, or another "
                "chat_template.jinja"
            )
        return behind

    @cached_property
    def turn_end(self) -> int | None:
        """The token that the template writes behind a response, None where it writes none: the first special
        one, or the first that was added to the vocabulary and is not mere space."""
        try:
            text = self._rendered([("user", QUESTION), ("assistant", ANSWER)], asks=False)
        except WRONG:  # it wants the last turn to be the user's
            return None
        behind = text.partition(ANSWER)[2]
        backend = self.tokenizer.backend_tokenizer
        added = backend.get_added_tokens_decoder()
        found = [
            number
            for number in backend.encode(behind, add_special_tokens=False).ids
            if number in added and added[number].content.strip()
        ]
        return next((number for number in found if added[number].special), found[0] if found else None)

    def _rendered(self, turns: list[tuple[str, str]], asks: bool) -> str:
        """The turns as the template writes them, with the beginning of the model's next one where it is asked
        for that."""
        messages: list[dict[str, Any]] = [
            {"role": role, "content": [{"type": "text", "text": text}] if self.in_parts else text}
            for role, text in turns
        ]
        return str(
            self.tokenizer.apply_chat_template(
                messages,
                add_generation_prompt=asks,
                tokenize=False,
                enable_thinking=False,
                strftime_now=DAY.strftime,  # in place of transformers' own, which tells today's date
            )
        )


def chat_template(tokenizer: PreTrainedTokenizerFast) -> ChatTemplate | None:
    """The tokenizer's template; None where it has none.

    Raises:
        PolicyError: it cannot be rendered, or drops what the user says.
    """
    if not tokenizer.chat_template:
        return None
    named = tokenizer.chat_template
    if isinstance(named, dict) and "default" not in named:
        raise PolicyError(
            f"{tokenizer.name_or_path}: its chat templates are called {', '.join(sorted(named))}; call the "
            "one to use `default` in tokenizer_config.json"
        )
    return _readable(tokenizer, tokenizer.get_chat_template())


@lru_cache(maxsize=4)
def _readable(tokenizer: PreTrainedTokenizerFast, source: str) -> ChatTemplate:
    """The template, by the form of content that it shows. ``source`` tells an exchanged template apart."""
    reason = "its chat template drops what the user says, as text and as a list of parts"
    for in_parts in (False, True):
        template = ChatTemplate(tokenizer, in_parts)
        try:
            if QUESTION in template.prompt(QUESTION):
                return template
        except WRONG as error:  # such as a list in place of a text
            reason = reason if in_parts else f"its chat template cannot be rendered: {error}"
    raise PolicyError(
        f"{tokenizer.name_or_path}: {reason}; mend its chat_template.jinja (or chat_template in "
        "tokenizer_config.json), or remove the template if this is a base model"
    )
