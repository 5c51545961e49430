"""A recorded answer as the tokens that a policy would have sampled for it."""

from __future__ import annotations

import pytest
from trl.chat_template_utils import qwen2_5_chat_template, qwen3_chat_template

from skillpress.core.chat_messages import Message, ToolCall
from skillpress.core.errors import PolicyError
from skillpress.models.policy import Policy
from skillpress.models.policy.chat_template import without_tools
from skillpress.rollouts.programs.requests import ModelRequest, UnshownConversationError
from skillpress.rollouts.programs.tool_calls import hermes
from tests.support.models.chatting import END, chat_policy
from tests.support.models.tiny import tiny_policy

CALL = ToolCall("bash", {"command": "ls 'a b'", "seconds": 3}, "1")
TOOL = {"type": "function", "function": {"name": "bash", "description": "", "parameters": {}}}
ASKED = ModelRequest(
    (
        Message("system", "Mend."),
        Message("user", "gcd"),
        Message("assistant", "I look.", (CALL,)),
        Message("tool", "gcd.py", answers="1"),
    ),
    (TOOL,),
)
ANSWERS = [Message("assistant", "", (CALL, CALL)), Message("assistant", "It is mended.")]


@pytest.mark.parametrize("template", [qwen2_5_chat_template, qwen3_chat_template], ids=["2.5", "3"])
@pytest.mark.parametrize("answer", ANSWERS, ids=["calls", "words"])
def test_prompt_and_response_are_what_the_template_writes_and_the_reader_reads(
    template: str, answer: Message
) -> None:
    policy = chat_policy(template)
    prompt, response = policy.encode_exchange(ASKED, answer)
    assert prompt == policy.encode_request(ASKED)
    assert response[-1] in policy.stop_token_ids and not set(response[:-1]) & policy.stop_token_ids
    said = hermes(policy.decode(response))
    assert said.content == answer.content and said.thought == ""
    assert [(call.name, call.arguments) for call in said.calls] == [
        (call.name, call.arguments) for call in answer.calls
    ]
    if answer.calls == ():
        assert policy.tokenizer.decode(response) == f"It is mended.{END}"


def test_what_the_template_cannot_show_or_shows_otherwise_is_refused() -> None:
    strict = "{% for m in messages %}{{ m.content if m.role != 'assistant' else no() }}{% endfor %}"
    with pytest.raises(UnshownConversationError):
        chat_policy(strict).encode_exchange(ModelRequest(ASKED.messages[:2]), ANSWERS[1])
    counting = "{{ messages | length }}{% for m in messages %}{{ m.content }}{% endfor %}"
    with pytest.raises(UnshownConversationError, match="in another way when an answer follows"):
        chat_policy(counting).encode_exchange(ModelRequest(ASKED.messages[:2]), ANSWERS[1])


def test_without_a_template_words_are_learned_and_calls_have_no_form() -> None:
    policy = tiny_policy()
    asked = ModelRequest((Message("user", "1 2"),))
    prompt, response = policy.encode_exchange(asked, Message("assistant", "up"))
    assert prompt == policy.encode_request(asked) and policy.decode(response).split() == ["up", "stop"]
    with pytest.raises(PolicyError, match="cannot show tool calls"):
        policy.encode_exchange(asked, Message("assistant", "", (CALL,)))


@pytest.mark.parametrize(
    ("policy", "reason"),
    [
        (chat_policy(qwen2_5_chat_template), None),
        (
            chat_policy("{% for m in messages %}{{ m.content }}{% endfor %}"),
            "its chat template does not show tools",
        ),
        (tiny_policy(), "without a chat template it cannot be shown tools"),
    ],
    ids=["shown", "ignored", "no template"],
)
def test_a_policy_that_cannot_be_shown_tools_is_known_before_it_refuses_them(
    policy: Policy, reason: str | None
) -> None:
    said = without_tools(policy.tokenizer)
    if reason is None:
        assert said is None and policy.encode_request(ASKED)
        return
    assert said is not None and reason in said
    assert policy.encode_request(ModelRequest(ASKED.messages[:2])), "without tools it is shown"
    with pytest.raises(PolicyError, match=reason):
        policy.encode_request(ASKED)
