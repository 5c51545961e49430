"""Checks of requests and weights before they reach an engine that is not our code.

vLLM ignores some mistakes and crashes at others. A response is cut short if prompt and limit together are too
long, an id beyond the vocabulary ends the process, and a missing tensor is only a line in a log.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from skillpress.core.engine import Request, StateDict
from skillpress.core.errors import UserError

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class EngineError(RuntimeError):
    """An engine failed to do its work; the message names the engine and the remedy."""


def refuse_multimodal(model: PreTrainedModel, engine: str) -> None:
    """Raise ``UserError`` for a multimodal model, whose weights vLLM names differently."""
    if model.config.get_text_config() is not model.config:
        raise UserError(
            f"engine.name: {engine} supports only text models, but {type(model).__name__} is multimodal; use "
            "engine local, or another policy.model"
        )


def check_requests(requests: Iterable[Request], vocabulary: int, longest: int) -> None:
    """Refuse requests that cannot be sampled as intended.

    Args:
        vocabulary: ids are below this.
        longest: maximum number of tokens of a prompt and its response together.

    Raises:
        ValueError: the message names the request and what is wrong with it.
    """
    for request in requests:
        prompt, new = request.prompt, request.sampling.max_new_tokens
        if not prompt:
            raise ValueError(f"request {request.key}: its prompt is empty")
        if min(prompt) < 0 or max(prompt) >= vocabulary:
            wrong = [token for token in prompt if not 0 <= token < vocabulary]
            raise ValueError(
                f"request {request.key}: its prompt has the ids {wrong[:3]}; ids are 0 to {vocabulary - 1}"
            )
        if len(prompt) + new > longest:
            raise ValueError(
                f"request {request.key}: {len(prompt)} tokens of prompt and {new} of response are more than "
                f"the engine's {longest}"
            )


def shapes_of(weights: StateDict) -> dict[str, tuple[int, ...]]:
    """Maps parameter names to shapes."""
    return {name: tuple(tensor.shape) for name, tensor in weights.items()}


def check_weights(weights: StateDict, expected: Mapping[str, tuple[int, ...]]) -> dict[str, Any]:
    """Return the weights as a dictionary, after checking that names and shapes are those of the engine's
    policy.

    A head that shares its tensor with the embeddings has its own name and must be included: without it, the
    head would keep its old values in vLLM.

    Raises:
        ValueError: a parameter is missing, unknown, or has another shape.
    """
    found = shapes_of(weights)
    if found == expected:
        return dict(weights)
    missing, foreign = sorted(expected.keys() - found.keys()), sorted(found.keys() - expected.keys())
    reshaped = [name for name in expected.keys() & found.keys() if found[name] != expected[name]]
    raise ValueError(
        f"these are not the weights of the engine's policy: missing {missing[:3]}, foreign {foreign[:3]}, "
        f"of another shape {sorted(reshaped)[:3]}"
    )
