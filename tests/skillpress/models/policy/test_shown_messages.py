"""Every message of a conversation is in the prompt, with the chat templates of many families, or refused."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast

from skillpress.core.chat_messages import Message, ToolCall
from skillpress.models.policy.chat_template import ChatTemplate, chat_template
from skillpress.models.policy.shown_messages import arrangements, left_out
from skillpress.rollouts.programs.requests import UnshownConversationError

TRL = find_spec("trl")
assert TRL is not None and TRL.origin is not None, "trl brings the templates of the families"
TEMPLATES = {
    path.stem: path
    for path in sorted((Path(TRL.origin).parent / "chat_templates").glob("*.jinja"))
    if not path.stem.endswith("_training")
}
WITHOUT_RESULTS = {"cohere", "cohere2", "deepseekv3", "gemma", "gemma3", "llava_next", "phi3", "phi3_5"}
"""Templates that cannot show a tool's result, or drop it without a word."""
CALL = ToolCall("look", {"at": "it"}, "call_1")
WORDS = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), min_size=1, max_size=12
).filter(lambda text: text.strip() and "<" not in text and "{" not in text)


@cache
def template_of(family: str) -> ChatTemplate:
    backend = Tokenizer(models.WordLevel({"x": 0}, unk_token="x"))
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, bos_token="<bos>", eos_token="<eos>")
    tokenizer.chat_template = TEMPLATES[family].read_text()
    found = chat_template(tokenizer)
    assert found is not None
    return found


def prompt_of(family: str, *messages: Message) -> str:
    return template_of(family).conversation([message.plain() for message in messages], ())


@pytest.mark.parametrize("family", TEMPLATES)
@settings(max_examples=15)
@given(texts=st.lists(WORDS, min_size=5, max_size=5, unique=True))
def test_system_messages_anywhere_reach_the_prompt_in_their_order(family: str, texts: list[str]) -> None:
    texts = [f"{number}: {text}" for number, text in enumerate(texts)]  # none is a part of another
    roles = ("system", "user", "assistant", "system", "user")
    prompt = prompt_of(family, *(Message(role, text) for role, text in zip(roles, texts, strict=True)))  # type: ignore[arg-type]
    places = [prompt.index(text.strip()) for text in texts]
    assert places == sorted(places)


@pytest.mark.parametrize("family", TEMPLATES)
def test_a_tools_result_reaches_the_prompt_or_is_refused(family: str) -> None:
    told = [
        Message("user", "what is it?"),
        Message("assistant", "", (CALL,)),
        Message("tool", 'a "stone"\nand é', answers=CALL.identity),
    ]
    if family in WITHOUT_RESULTS:
        with pytest.raises(UnshownConversationError, match="cannot show this conversation"):
            prompt_of(family, *told)
    else:
        assert "stone" in prompt_of(family, *told)


@pytest.mark.parametrize("family", TEMPLATES)
def test_a_prompt_with_a_later_system_message_extends_the_prompt_before_it(family: str) -> None:
    first = [Message("system", "be short"), Message("user", "hello")]
    if "System role not supported" in template_of(family).tokenizer.get_chat_template():
        pytest.skip("its first system message is the user's, in both prompts")
    before = prompt_of(family, *first)
    after = prompt_of(family, *first, Message("assistant", "a reply"), Message("system", "be long"))
    asked = before[: before.index("hello") + len("hello")]
    assert after.startswith(asked)


def test_a_message_that_is_dropped_is_found_by_its_role() -> None:
    messages = [{"role": "user", "content": "a"}, {"role": "tool", "content": "b"}]
    assert left_out(messages, "user: a") == "tool"
    assert left_out(messages, "a b") is None


def test_a_conversation_without_system_messages_has_one_form() -> None:
    messages = [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}]
    assert list(arrangements(messages)) == [messages]
