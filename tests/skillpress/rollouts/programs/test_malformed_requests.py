"""Whatever a program sends, it gets a refusal in its vendor's form, and the server keeps no traceback."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillpress.rollouts.programs.endpoint import Endpoint, read_request
from skillpress.rollouts.programs.forms import Form, forms
from skillpress.rollouts.programs.requests import RefusedRequestError

FIELDS = (
    "messages", "input", "instructions", "system", "role", "content", "type", "text", "tools", "function",
    "name", "arguments", "tool_calls", "function_call", "id", "n", "stop", "stop_sequences", "max_tokens",
    "max_output_tokens", "tool_choice", "response_format", "parameters", "input_schema", "tool_use", "output",
    "call_id", "reasoning", "summary", "functions", "thinking", "logit_bias", "presence_penalty", "format",
    "contents", "parts", "systemInstruction", "generationConfig", "toolConfig", "functionDeclarations",
    "functionCall", "functionResponse", "response", "args", "thought", "candidateCount", "stop_sequences",
)  # fmt: skip
WORDS = st.sampled_from(
    ["user", "assistant", "tool", "system", "text", "function", "message", "tool_use", "", "é"]
)
LEAVES = st.none() | st.booleans() | st.integers(-3, 1 << 40) | st.floats(allow_nan=False) | WORDS
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=4),
    max_leaves=12,
)
BODIES = st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=6)
ALL = pytest.mark.parametrize("form", forms(), ids=lambda form: form.path)


@ALL
@given(body=BODIES)
def test_a_body_is_read_or_refused_in_the_vendors_form(form: Form, body: dict[str, Any]) -> None:
    with suppress(RefusedRequestError):
        assert read_request(form, body).digest


NESTED = b'{"a":' * 900 + b"1" + b"}" * 900
SAID = (
    b'{"messages": [{"role": "user", "content": "x"}], "input": "x", '
    b'"contents": [{"parts": [{"text": "x"}]}], '
)


@ALL
@pytest.mark.parametrize(
    "raw",
    [
        b"", b"\xff", b"[]", b"7", b"{" * 100_000, b"[" * 100_000, b'{"messages": {}, "input": {}}',
        b'{"messages": [{"role": "user", "content": "\\ud800"}]}', b'{"messages": [[]], "input": [[]]}',
        SAID + b'"tools": [7]}', SAID + b'"tools": 7}', SAID + b'"functions": {"a": 1}, "tools": {"a": 1}}',
        SAID + b'"n": 1e308, "max_tokens": -1, "max_output_tokens": "many", '
        b'"generationConfig": {"maxOutputTokens": "many"}}',
        SAID + b'"tools": [{"functionDeclarations": [{"name": "f", "parameters": %(n)b}], '
        b'"type": "function", "name": "f", "function": {"name": "f", "parameters": %(n)b}, '
        b'"parameters": %(n)b, "input_schema": %(n)b}]}' % {b"n": NESTED},
    ],
    ids=range(14),
)  # fmt: skip
def test_a_malformed_body_is_status_400_over_http(endpoint: Endpoint, form: Form, raw: bytes) -> None:
    session = endpoint.open()
    path = form.version + form.path.format(model="policy")
    answer = httpx.post(f"{endpoint.address}/e/{session.key}{path}", content=raw, timeout=20)
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["message"]
