"""Tokens in, tokens out: build the request to a vLLM server for one response, and read its answer.

All functions are pure. An answer is refused if it lacks what a training step needs: a log-probability for
every token, the full length that was requested, and the weights that sampled it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skillpress.core.engine import Completion, Request
from skillpress.core.logprobs import as_logprobs
from skillpress.core.trajectory import WeightSpan

GENERATE = "/inference/v1/generate"
MISSING_LOGPROB = -9999.0
"""vLLM's value for a log-probability that it does not have."""


class BadAnswerError(Exception):
    """An answer that cannot be used; the message says why. Another server may give a better one."""


def request_body(request: Request, stop: list[int], request_id: str, *, seeded: bool) -> dict[str, Any]:
    """The JSON of one request: ``stop`` ends responses, ``request_id`` is unique on the server. If it is not
    ``seeded``, the server draws from a generator of its own."""
    sampling = request.sampling
    return {
        "request_id": request_id,
        "token_ids": list(request.prompt),
        "sampling_params": {
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "top_k": sampling.top_k,
            "max_tokens": sampling.max_new_tokens,
            **({"seed": request.seed} if seeded else {}),
            "logprobs": 0,  # only that of the sampled token
            "stop_token_ids": stop,
            "ignore_eos": True,  # only the policy's own stop tokens
            "detokenize": False,
            "n": 1,
        },
    }


def read_answer(answer: Mapping[str, Any], request: Request, versions: Mapping[str, int]) -> Completion:
    """The completion, or ``BadAnswerError``; ``versions`` maps the server's names of weights to versions."""
    try:
        (choice,) = answer["choices"]
        tokens = tuple(int(token) for token in choice["token_ids"])
        logprobs = np.array([float(entry["logprob"]) for entry in choice["logprobs"]["content"]])
        reason, spans = choice["finish_reason"], choice["weight_versions"]
        named = [(str(span["version"]), int(span["start"]), int(span["end"])) for span in spans]
    except (KeyError, TypeError, ValueError) as error:
        raise BadAnswerError(
            f"the answer lacks what vLLM's {GENERATE} gives ({type(error).__name__}: {error})"
        ) from error
    _check_tokens(tokens, logprobs, reason, request)
    if request.sampling.temperature == 0:  # the distribution that it was drawn from has one token
        logprobs = np.zeros(len(tokens))
    return Completion(
        token_ids=tokens,
        logprobs=as_logprobs(logprobs),
        finish_reason=reason,
        weight_spans=_weight_spans(named, len(tokens), versions),
    )


def _check_tokens(
    tokens: tuple[int, ...], logprobs: NDArray[np.float64], reason: str, request: Request
) -> None:
    asked = request.sampling.max_new_tokens
    if reason not in ("stop", "length"):
        raise BadAnswerError(f"the response was not finished ({reason})")
    if not tokens or len(tokens) != len(logprobs):
        raise BadAnswerError(f"{len(tokens)} tokens with {len(logprobs)} log-probabilities")
    if reason == "length" and len(tokens) != asked:
        raise BadAnswerError(f"the response was cut after {len(tokens)} tokens; {asked} were requested")
    if not np.all((logprobs > MISSING_LOGPROB) & (logprobs <= 0)):  # nor is NaN
        raise BadAnswerError("a token has no log-probability")


def _weight_spans(
    named: list[tuple[str, int, int]], tokens: int, versions: Mapping[str, int]
) -> tuple[WeightSpan, ...]:
    foreign = [name for name, _, _ in named if name not in versions]
    if foreign:
        raise BadAnswerError(
            f"the response was sampled from weights {foreign[0]!r}, not from {list(versions)[-1]!r}: the "
            "server was restarted, or it also serves another run"
        )
    edges = [0, *(end for _, _, end in named)]
    if [start for _, start, _ in named] != edges[:-1] or edges[-1] != tokens:
        raise BadAnswerError(f"the response's weight versions {named} do not cover its {tokens} tokens")
    return tuple(WeightSpan(versions[name], start, end) for name, start, end in named)
