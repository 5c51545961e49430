"""Behaviour of servers that give no answer, or an answer without an action.

``STEPS`` end in steps that say why, ``LINES`` end an evaluation with one clear line.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.support.rollouts.chat_server import Manner
from tests.support.rollouts.manners import always, content, dripping, error, flat, message, told


@dataclass(frozen=True)
class Step:
    """The expected step."""

    manner: Manner
    invalid: str
    thought: str = ""


def too_long(said: Any, status: int = 400) -> Step:
    """A server that finds every prompt too long; a text is the message of its error."""
    body = error(status, said)[2] if isinstance(said, str) else said
    return Step(always((status, {}, body)), "prompt_too_long")


def said(invalid: str, finish: Any, thought: str = "", **fields: Any) -> Step:
    """A server whose message has these fields."""
    return Step(always(lambda good: message(good, finish, **fields)), invalid, thought)


def refused(*answer: Any, **fields: Any) -> Step:
    """A server that refuses with this error."""
    return Step(always(error(*answer, **fields)), "refused")


CALLED = [{"id": "c", "function": {"name": "act", "arguments": "{}"}}]
STEPS: Mapping[str, Step] = {
    "vLLM": too_long(
        told(
            "This model's maximum context length is 2048 tokens. However, you requested 2100 tokens.",
            type="BadRequestError", param="input_tokens", code=400,
        )
    ),
    "older vLLM": too_long(
        flat(
            "This model's maximum context length is 2048 tokens. However, you requested 2100 tokens (2000 "
            "in the messages, 100 in the completion). Please reduce the length of the messages or "
            "completion.", type="BadRequestError", param=None, code=400,
        )
    ),
    "vLLM with the response": too_long(
        told(
            "'max_tokens' or 'max_completion_tokens' is too large: 512. This model's maximum context "
            "length is 2048 tokens and your request has 2000 input tokens (512 > 2048 - 2000).", code=400,
        )
    ),
    "vLLM's decoder": too_long(
        "The decoder prompt (length 40018) is longer than the maximum model length of 40960. Make sure "
        "that `max_model_len` is no smaller than the number of text tokens."
    ),
    "TensorRT-LLM": too_long(
        "The sum of prompt length (3000.0), query length (0) max_tokens (512) should not exceed 2048"
    ),
    "Moonshot": too_long("Invalid request: Your request exceeded model token limit: 8192 (requested: 9000)"),
    "DashScope": too_long("InvalidParameter: Range of input length should be [1, 30720]"),
    "Zhipu": too_long(error(400, "Prompt exceeds max length", code="1261")[2]),
    "llama.cpp": too_long(
        told(
            "the request exceeds the available context size, try increasing it", code=400,
            type="exceed_context_size_error", n_prompt_tokens=3000, n_ctx=2048,
        )
    ),
    "SGLang": too_long(
        flat(
            "The input (3000 tokens) is longer than the model's context length (2048 tokens).",
            type="BadRequestError",
        )
    ),
    "OpenAI": too_long(error(400, code="context_length_exceeded")[2]),
    "Anthropic": too_long(
        told("prompt is too long: 210000 tokens > 200000 maximum", type="invalid_request_error")
    ),
    "Gemini": too_long(
        [told("The input token count (20) exceeds the maximum number of tokens allowed (10).")]
    ),
    "Mistral": too_long(
        flat(
            "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context "
            "length", code="3051",
        )
    ),
    "TGI": too_long(
        {
            "error": "Input validation error: `inputs` must have less than 4096 tokens. Given: 5000",
            "error_type": "validation",
        },
        422,
    ),
    "Ollama": too_long(told("the input length exceeds the context length", type="api_error"), 500),
    "LM Studio, in a 200": too_long(
        {
            "error": "Trying to keep the first 5000 tokens when context the overflows. However, the model is "
            "loaded with context length of only 4096 tokens, which is not enough. Try to load the model with "
            "a larger context length, or provide a shorter input."
        },
        200,
    ),
    "xAI": too_long(
        {
            "code": "invalid-argument",
            "error": "This model's maximum prompt length is 131072 but the request contains 200000 tokens.",
        }
    ),
    "Bedrock behind a gateway": too_long(
        told('litellm.BadRequestError: {"message":"Input is too long for requested model."}', code="400")
    ),
    "a body of no account": Step(
        always((413, {}, "<html>413 Request Entity Too Large</html>")), "prompt_too_long"
    ),
    "cut off": Step(always(lambda good: message(good, "length", content=content(good)[:12])), "cut_off"),
    "cut off, in an object": Step(
        always(lambda good: message(good, {"type": "length"}, content=content(good)[:12])), "cut_off"
    ),
    "cut off in its thought": said("cut_off", "length", "I shall", content=None, reasoning_content="I shall"),
    "refusal": said("refused", "stop", "I will not.", content=None, refusal="I will not."),
    "refusal in both fields": said(
        "refused", "stop", "I will not.", content="I will not.", refusal="I will not."
    ),
    "a filter behind": said("refused", "content_filter", content=""),
    "a filter in front": refused(
        400, "The response was filtered due to the prompt triggering Azure OpenAI's content management "
        "policy.", code="content_filter", param="prompt",
    ),
    "Anthropic's filter": refused(400, "Output blocked by content filtering policy"),
    "xAI's guidelines": Step(
        always((403, {}, {"code": "permission-denied", "error": "Content violates usage guidelines."})),
        "refused",
    ),
    "DashScope's inspection": refused(400, "Input data may contain inappropriate content."),
    "moderation": refused(403, 'Your input was flagged for "violence"', code=403),
    "a tool call": said("tool_call", "tool_calls", json.dumps(CALLED), content=None, tool_calls=CALLED),
    "a tool call behind a thought": said(
        "tool_call", "tool_calls", "I shall.", content="<think>I shall.</think>", tool_calls=CALLED
    ),
    "thought without an answer": said("missing_action", "stop", "Hm.", content=None, reasoning_content="Hm."),
    "nothing": said("missing_thought", "stop"),
    "half a surrogate": said(
        "missing_action", "stop", "a \ufffd cat", content="<think>a \ud83d cat</think>"
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Line:
    """The expected end of an evaluation, and the number of seconds after which its requests are given up."""

    manner: Manner
    says: str
    deadline: float = 60.0


LINES: Mapping[str, Line] = {
    "a wrong key": Line(always(error(401, "Incorrect API key provided")), "refused with HTTP 401: Incorrect"),
    "a forbidden model": Line(always(error(403, "no access")), "HTTP 403: no access.*--key-variable"),
    "an account that is flagged": Line(
        always(error(403, "Your account was flagged as suspicious")),
        "HTTP 403: Your account.*--key-variable",
    ),
    "no name of the limit": Line(
        lambda number, body, good: error(
            400, f"Unsupported parameter: {next(name for name in body if name.startswith('max_'))}"
        ),
        "Unsupported parameter: max_completion_tokens.*--omit max_tokens leaves it out",
    ),
    "an unknown model": Line(
        always(error(404, "The model `toy` does not exist")), "HTTP 404: The model `toy`"
    ),
    "no credit": Line(always(error(402, "Insufficient credits")), "HTTP 402: Insufficient credits"),
    "no credit, in a 200": Line(always(told("no credits", code=402)), "no credits"),
    "no quota": Line(always(error(429, "quota", code="insufficient_quota")), "HTTP 429: quota"),
    "a wrong key, in a 200": Line(
        always(told("bad key", type="authentication_error")),
        "HTTP 200: bad key.*--key-variable",
    ),
    "a redirect": Line(
        always((308, {"Location": "https://elsewhere/v1"}, "")),
        "redirect to https://elsewhere/v1",
    ),
    "a wrong value": Line(
        always(error(400, "temperature must be above 0.5")),
        "value is 0.4, and --omit temperature leaves it out",
    ),
    "a response longer than the model can give": Line(
        always(error(400, "max_tokens is too large: 512. This model supports at most 64 completion tokens")),
        "max_new_tokens is 512, set it lower",
    ),
    "a response longer than the context": Line(
        always(
            error(
                400, "This model's maximum context length is 256 tokens. However, you requested 612 tokens."
            )
        ),
        "max_new_tokens is 512, set it lower",
    ),
    "always a page": Line(
        always((200, {"Content-Type": "text/html"}, "<html>Welcome</html>")),
        "answers, but not with a chat completion; is the address right",
    ),
    "always JSON of something else": Line(
        always({"status": "ok"}), "answers, but not with a chat completion; is the address right"
    ),
    "always an error in a 200": Line(
        always(told("Provider returned error")),
        "was not answered within 1.5 s.*HTTP 200: Provider returned error",
        deadline=1.5,
    ),
    "always empty": Line(always((200, {}, "")), "an empty reply", deadline=1.5),
    "always dripping": Line(always(dripping), "no complete reply within", deadline=1.5),
    "a pause beyond the deadline": Line(
        always((429, {"Retry-After": "3600"}, {"error": "slow down"})), "HTTP 429: slow down"
    ),
    "escapes of a terminal": Line(always(error(400, "\x1b[2J\nno \ud83d")), r"HTTP 400: \[2J no \ufffd"),
}
