"""Behaviour of servers that give no answer, or an answer without an action.

``STEPS`` end in steps that say why, ``LINES`` end an evaluation with one clear line.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.support.rollouts.chat_server import Manner
from tests.support.rollouts.manners import always, content, dripping, error, message


@dataclass(frozen=True)
class Step:
    """The expected step."""

    manner: Manner
    invalid: str
    thought: str = ""


def too_long(status: int, said: Any) -> Step:
    """A server that finds every prompt too long."""
    return Step(always(lambda good: (status, {}, said)), "prompt_too_long")


STEPS: Mapping[str, Step] = {
    "vLLM": too_long(
        400,
        {
            "error": {
                "message": "This model's maximum context length is 2048 tokens. However, you "
                "requested 2100 tokens.",
                "type": "BadRequestError",
                "param": "input_tokens",
                "code": 400,
            }
        },
    ),
    "older vLLM": too_long(
        400,
        {
            "object": "error",
            "message": "This model's maximum context length is 2048 tokens. However, you requested "
            "2100 tokens (2000 "
            "in the messages, 100 in the completion). Please reduce the length of the messages or "
            "completion.",
            "type": "BadRequestError",
            "param": None,
            "code": 400,
        },
    ),
    "vLLM with the response": too_long(
        400,
        {
            "error": {
                "message": "'max_tokens' or 'max_completion_tokens' is too large: 512. This model's "
                "maximum context "
                "length is 2048 tokens and your request has 2000 input tokens (512 > 2048 - 2000).",
                "code": 400,
            }
        },
    ),
    "vLLM's decoder": too_long(
        400,
        error(
            400,
            "The decoder prompt (length 40018) is longer than the maximum model length of 40960. Make sure "
            "that `max_model_len` is no smaller than the number of text tokens.",
        )[2],
    ),
    "TensorRT-LLM": too_long(
        400,
        error(
            400, "The sum of prompt length (3000.0), query length (0) max_tokens (512) should not exceed 2048"
        )[2],
    ),
    "Moonshot": too_long(
        400,
        error(400, "Invalid request: Your request exceeded model token limit: 8192 (requested: 9000)")[2],
    ),
    "DashScope": too_long(400, error(400, "InvalidParameter: Range of input length should be [1, 30720]")[2]),
    "Zhipu": too_long(400, error(400, "Prompt exceeds max length", code="1261")[2]),
    "llama.cpp": too_long(
        400,
        {
            "error": {
                "code": 400,
                "message": "the request exceeds the available context size, try increasing it",
                "type": "exceed_context_size_error",
                "n_prompt_tokens": 3000,
                "n_ctx": 2048,
            }
        },
    ),
    "SGLang": too_long(
        400,
        {
            "object": "error",
            "message": "The input (3000 tokens) is longer than the model's context length (2048 tokens).",
            "type": "BadRequestError",
        },
    ),
    "OpenAI": too_long(400, error(400, code="context_length_exceeded")[2]),
    "Anthropic": too_long(
        400,
        {
            "error": {
                "type": "invalid_request_error",
                "message": "prompt is too long: 210000 tokens > 200000 maximum",
            }
        },
    ),
    "Gemini": too_long(
        400,
        [
            {
                "error": {
                    "message": "The input token count (20) exceeds the maximum number of tokens allowed (10)."
                }
            }
        ],
    ),
    "Mistral": too_long(
        400,
        {
            "object": "error",
            "message": "Prompt contains 40000 tokens and 0 draft tokens, too large for model with "
            "32768 maximum context length",
            "code": "3051",
        },
    ),
    "TGI": too_long(
        422,
        {
            "error": "Input validation error: `inputs` must have less than 4096 tokens. Given: 5000",
            "error_type": "validation",
        },
    ),
    "Ollama": too_long(
        500, {"error": {"message": "the input length exceeds the context length", "type": "api_error"}}
    ),
    "LM Studio, in a 200": too_long(
        200,
        {
            "error": "Trying to keep the first 5000 tokens when context the overflows. However, the "
            "model is loaded with "
            "context length of only 4096 tokens, which is not enough. Try to load the model with a "
            "larger context "
            "length, or provide a shorter input."
        },
    ),
    "xAI": too_long(
        400,
        {
            "code": "invalid-argument",
            "error": "This model's maximum prompt length is 131072 but the request contains 200000 tokens.",
        },
    ),
    "Bedrock behind a gateway": too_long(
        400,
        {
            "error": {
                "message": 'litellm.BadRequestError: {"message":"Input is too long for requested model."}',
                "code": "400",
            }
        },
    ),
    "a body of no account": too_long(413, "<html>413 Request Entity Too Large</html>"),
    "cut off": Step(always(lambda good: message(good, "length", content=content(good)[:12])), "cut_off"),
    "cut off, in an object": Step(
        always(lambda good: message(good, {"type": "length"}, content=content(good)[:12])), "cut_off"
    ),
    "cut off in its thought": Step(
        always(lambda good: message(good, "length", content=None, reasoning_content="I shall")),
        "cut_off",
        "I shall",
    ),
    "refusal": Step(
        always(lambda good: message(good, content=None, refusal="I will not.")), "refused", "I will not."
    ),
    "refusal in both fields": Step(
        always(lambda good: message(good, content="I will not.", refusal="I will not.")),
        "refused",
        "I will not.",
    ),
    "a filter behind": Step(always(lambda good: message(good, "content_filter", content="")), "refused"),
    "a filter in front": Step(
        always(
            lambda good: error(
                400,
                "The response was filtered due to the prompt triggering Azure OpenAI's content "
                "management policy.",
                code="content_filter",
                param="prompt",
            )
        ),
        "refused",
    ),
    "Anthropic's filter": Step(
        always(lambda good: error(400, "Output blocked by content filtering policy")), "refused"
    ),
    "xAI's guidelines": Step(
        always(
            lambda good: (
                403,
                {},
                {"code": "permission-denied", "error": "Content violates usage guidelines."},
            )
        ),
        "refused",
    ),
    "DashScope's inspection": Step(
        always(lambda good: error(400, "Input data may contain inappropriate content.")), "refused"
    ),
    "moderation": Step(
        always(lambda good: error(403, 'Your input was flagged for "violence"', code=403)), "refused"
    ),
    "a tool call": Step(
        always(
            lambda good: message(
                good,
                "tool_calls",
                content=None,
                tool_calls=[{"id": "c", "function": {"name": "act", "arguments": "{}"}}],
            )
        ),
        "tool_call",
        '[{"id": "c", "function": {"name": "act", "arguments": "{}"}}]',
    ),
    "a tool call behind a thought": Step(
        always(
            lambda good: message(
                good,
                "tool_calls",
                content="<think>I shall.</think>",
                tool_calls=[{"id": "c", "function": {"name": "act", "arguments": "{}"}}],
            )
        ),
        "tool_call",
        "I shall.",
    ),
    "thought without an answer": Step(
        always(lambda good: message(good, content=None, reasoning_content="Hm.")), "missing_action", "Hm."
    ),
    "nothing": Step(always(lambda good: message(good)), "missing_thought"),
    "half a surrogate": Step(
        always(lambda good: message(good, content="<think>a \ud83d cat</think>")),
        "missing_action",
        "a \ufffd cat",
    ),
}


@dataclass(frozen=True)
class Line:
    """The expected end of an evaluation, and the number of seconds after which its requests are given up."""

    manner: Manner
    says: str
    deadline: float = 60.0


LINES: Mapping[str, Line] = {
    "a wrong key": Line(
        always(lambda good: error(401, "Incorrect API key provided")), "refused with HTTP 401: Incorrect"
    ),
    "a forbidden model": Line(
        always(lambda good: error(403, "no access")), "HTTP 403: no access.*--key-variable"
    ),
    "an account that is flagged": Line(
        always(lambda good: error(403, "Your account was flagged as suspicious")),
        "HTTP 403: Your account.*--key-variable",
    ),
    "no name of the limit": Line(
        lambda number, body, good: error(
            400, f"Unsupported parameter: {next(name for name in body if name.startswith('max_'))}"
        ),
        "Unsupported parameter: max_completion_tokens.*--omit max_tokens leaves it out",
    ),
    "an unknown model": Line(
        always(lambda good: error(404, "The model `toy` does not exist")), "HTTP 404: The model `toy`"
    ),
    "no credit": Line(
        always(lambda good: error(402, "Insufficient credits")), "HTTP 402: Insufficient credits"
    ),
    "no credit, in a 200": Line(
        always(lambda good: {"error": {"message": "no credits", "code": 402}}), "no credits"
    ),
    "no quota": Line(always(lambda good: error(429, "quota", code="insufficient_quota")), "HTTP 429: quota"),
    "a wrong key, in a 200": Line(
        always(lambda good: {"error": {"message": "bad key", "type": "authentication_error"}}),
        "HTTP 200: bad key.*--key-variable",
    ),
    "a redirect": Line(
        always(lambda good: (308, {"Location": "https://elsewhere/v1"}, "")),
        "redirect to https://elsewhere/v1",
    ),
    "a wrong value": Line(
        always(lambda good: error(400, "temperature must be above 0.5")),
        "value is 0.4, and --omit temperature leaves it out",
    ),
    "a response longer than the model can give": Line(
        always(
            lambda good: error(
                400, "max_tokens is too large: 512. This model supports at most 64 completion tokens"
            )
        ),
        "max_new_tokens is 512, set it lower",
    ),
    "a response longer than the context": Line(
        always(
            lambda good: error(
                400, "This model's maximum context length is 256 tokens. However, you requested 612 tokens."
            )
        ),
        "max_new_tokens is 512, set it lower",
    ),
    "always a page": Line(
        always(lambda good: (200, {"Content-Type": "text/html"}, "<html>Welcome</html>")),
        "answers, but not with a chat completion; is the address right",
    ),
    "always JSON of something else": Line(
        always(lambda good: {"status": "ok"}), "answers, but not with a chat completion; is the address right"
    ),
    "always an error in a 200": Line(
        always(lambda good: {"error": {"message": "Provider returned error"}}),
        "was not answered within 1.5 s.*HTTP 200: Provider returned error",
        deadline=1.5,
    ),
    "always empty": Line(always(lambda good: (200, {}, "")), "an empty reply", deadline=1.5),
    "always dripping": Line(always(dripping), "no complete reply within", deadline=1.5),
    "a pause beyond the deadline": Line(
        always(lambda good: (429, {"Retry-After": "3600"}, {"error": "slow down"})), "HTTP 429: slow down"
    ),
    "escapes of a terminal": Line(
        always(lambda good: error(400, "\x1b[2J\nno \ud83d")), r"HTTP 400: \[2J no \ufffd"
    ),
}
