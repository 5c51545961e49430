"""How a model's chat template writes a prompt, a response and the next turn.

A template is a small program that comes with the model, and its mistakes are silent. Templates differ in four
things, which are detected by rendering a known message:

    content     Most take a message's content as text. Those of multimodal models may require a list of parts,
                and write nothing if they get text. A template that drops both forms is refused.
    thought     Some end the prompt with ``<think>``, so the response begins inside a thought.
    turn's end  The special token that they write after a response is the one that ends the model's turn.
    date        Some write today's date. They always get the same day here; otherwise prompts would change
                at midnight.

If a template has a thinking mode (Qwen3), it is turned off: prompts ask for a thought in their own tags.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import jinja2
from transformers import PreTrainedTokenizerFast

from skillpress.core.errors import PolicyError
from skillpress.core.markup import THOUGHT, THOUGHT_END, opened_thought
from skillpress.models.policy.shown_messages import arrangements, left_out
from skillpress.rollouts.programs.requests import UnshownConversationError

QUESTION = "How much is 6 times 7?\nAnswer with a number."
"""A message that is rendered to see how the template writes it."""
TOOL = "look_up_the_answer"
"""The name of a tool that is rendered to see how the template shows tools."""
ANSWER = "(any response)"
"""A response that is rendered to see what follows it."""
DAY = datetime(2024, 7, 26)
"""The date for templates that write today's. Llama's templates write this one by default."""
WRONG = (jinja2.TemplateError, TypeError, ValueError, LookupError, ArithmeticError, AttributeError)
"""Exceptions raised by a template that cannot be rendered. Like any program, it may divide by zero."""
_THOUGHT_BEGUN = re.compile(rf"{THOUGHT}\s*(?:{THOUGHT_END}\s*)?\Z")
"""The end of a prompt that begins a thought, or leaves it out."""
_NO_THOUGHT = re.compile(rf"\A\s*{THOUGHT}\s*{THOUGHT_END}\s*")


@dataclass(frozen=True)
class ChatTemplate:
    """A tokenizer's chat template, in the form that shows a message's content."""

    tokenizer: PreTrainedTokenizerFast
    in_parts: bool
    """Whether it requires content as a list of parts."""

    def prompt(self, text: str) -> str:
        """A prompt that asks for a response to this text."""
        return self._rendered([("user", text)], asks=True)

    @cached_property
    def opening(self) -> str:
        """The end of a prompt that belongs to the response: an opened thought, or nothing."""
        return opened_thought(self.prompt(QUESTION).rpartition(QUESTION)[2])

    def after_response(self, turn: str) -> str:
        """The text between a response and the next; ``PolicyError`` if the template has none."""
        reason = "does not show earlier responses"
        try:
            text = self._rendered([("user", QUESTION), ("assistant", ANSWER), ("user", turn)], asks=True)
        except WRONG as error:
            text, reason = "", f"takes no second turn ({error})"
        _, shown, behind = text.partition(ANSWER)
        if not shown:
            raise PolicyError(
                f"{self.tokenizer.name_or_path}: its chat template {reason}, so prompts cannot continue "
                "earlier ones: choose a policy.state_update that does not grow, or another "
                "chat_template.jinja"
            )
        return behind

    @cached_property
    def turn_end(self) -> int | None:
        """The token that the template writes after a response; None if it writes none.

        It is the first special token or, if there is none, the first token that was added to the vocabulary
        and is not just whitespace.
        """
        try:
            text = self._rendered([("user", QUESTION), ("assistant", ANSWER)], asks=False)
        except WRONG:  # it requires the last turn to be the user's
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

    def conversation(self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]) -> str:
        """A prompt that asks for the next message of a conversation.

        Args:
            tools: none, if the template does not show them (``without_tools``).

        Raises:
            UnshownConversationError: the template cannot show it, or leaves a message out.
        """
        return self._arranged(messages, tools)[1]

    def _arranged(
        self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]
    ) -> tuple[Sequence[Mapping[str, Any]], str]:
        """(the messages in the first arrangement that the template shows completely, the prompt)."""
        why = ""
        for arranged in arrangements(messages):
            try:
                prompt = self._applied([self._in_its_form(message) for message in arranged], tools, asks=True)
            except WRONG as error:
                why = why or str(error)
                continue
            if (role := left_out(arranged, prompt)) is None:
                return arranged, prompt
            why = why or f"it leaves out a message of role {role}"
        raise UnshownConversationError(
            f"{self.tokenizer.name_or_path}: its chat template cannot show this conversation "
            f"(roles {', '.join(str(message['role']) for message in messages)}): {why}"
        )

    def answer(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]],
        answer: Mapping[str, Any],
    ) -> str:
        """The response that says ``answer`` after these messages, up to the turn's end and beyond. A thought
        that the prompt opens is part of it; an empty one is left out.

        Raises:
            UnshownConversationError: the template cannot show it, or shows the messages before it in another
                way than in the prompt.
        """
        arranged, prompt = self._arranged(messages, tools)
        shown = [self._in_its_form(message) for message in (*arranged, answer)]
        try:
            whole = self._applied(shown, tools, asks=False)
        except WRONG as error:
            raise UnshownConversationError(
                f"{self.tokenizer.name_or_path}: its chat template cannot show this answer: {error}"
            ) from error
        if whole.startswith(prompt):
            return self.opening + whole.removeprefix(prompt)
        bare = _THOUGHT_BEGUN.sub("", prompt)
        if not whole.startswith(bare):
            raise UnshownConversationError(
                f"{self.tokenizer.name_or_path}: its chat template shows a conversation in another way when "
                "an answer follows, so the answer's prompt would not be the one that is sampled from"
            )
        return _NO_THOUGHT.sub("", whole.removeprefix(bare))

    def _in_its_form(self, message: Mapping[str, Any]) -> dict[str, Any]:
        if not self.in_parts or not isinstance(message.get("content"), str):
            return dict(message)
        return {**message, "content": [{"type": "text", "text": message["content"]}]}

    @cached_property
    def shows_tools(self) -> bool:
        """Whether a tool's name is in the prompt."""
        described = {"name": TOOL, "description": "", "parameters": {"type": "object", "properties": {}}}
        try:
            asked = [self._in_its_form({"role": "user", "content": QUESTION})]
            return TOOL in self._applied(asked, [{"type": "function", "function": described}], asks=True)
        except WRONG:
            return False

    def _rendered(self, turns: list[tuple[str, str]], asks: bool) -> str:
        """The turns as the template writes them, with the beginning of the model's turn if ``asks``."""
        return self._applied(
            [self._in_its_form({"role": role, "content": text}) for role, text in turns], (), asks
        )

    def _applied(
        self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]], asks: bool
    ) -> str:
        shown: Any = list(messages)
        offered: Any = list(tools) or None
        return str(
            self.tokenizer.apply_chat_template(
                shown,
                tools=offered,
                add_generation_prompt=asks,
                tokenize=False,
                enable_thinking=False,
                strftime_now=DAY.strftime,  # replaces transformers' own function, which returns today's date
            )
        )


def chat_template(tokenizer: PreTrainedTokenizerFast) -> ChatTemplate | None:
    """The tokenizer's template or None; ``PolicyError`` if it fails, or drops the user's text."""
    if not tokenizer.chat_template:
        return None
    named = tokenizer.chat_template
    if isinstance(named, dict) and "default" not in named:
        raise PolicyError(
            f"{tokenizer.name_or_path}: none of its chat templates ({', '.join(sorted(named))}) is the "
            "default; rename the one to use to `default` in tokenizer_config.json"
        )
    return _readable(tokenizer, tokenizer.get_chat_template())


def without_tools(tokenizer: PreTrainedTokenizerFast) -> str | None:
    """Why a model cannot be shown tools, and what to do; None if it can."""
    chat = chat_template(tokenizer)
    if chat is None:
        return (
            f"{tokenizer.name_or_path}: without a chat template it cannot be shown tools; let the program "
            "describe them in words"
        )
    if chat.shows_tools:
        return None
    return (
        f"{tokenizer.name_or_path}: its chat template does not show tools, so the model would not know of "
        "any; use a model whose template does, or let the program describe them in words"
    )


def saved_without_tools(folder: Path) -> str | None:
    """:func:`without_tools` of a saved policy, whose weights are not read."""
    return without_tools(PreTrainedTokenizerFast.from_pretrained(str(folder)))


@lru_cache(maxsize=4)
def _readable(tokenizer: PreTrainedTokenizerFast, source: str) -> ChatTemplate:
    """The template in the form that shows content. ``source`` makes the cache notice a new one."""
    reason = "its chat template drops what the user says, as text and as a list of parts"
    for in_parts in (False, True):
        template = ChatTemplate(tokenizer, in_parts)
        try:
            if QUESTION in template.prompt(QUESTION):
                return template
        except WRONG as error:  # such as a list in place of a text
            reason = reason if in_parts else f"its chat template cannot be rendered: {error}"
    raise PolicyError(
        f"{tokenizer.name_or_path}: {reason}; correct its chat_template.jinja (or chat_template in "
        "tokenizer_config.json), or remove the template if this is a base model"
    )
