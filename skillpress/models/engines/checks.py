"""What is refused before it reaches an engine whose inside is not ours.

vLLM takes some mistakes in silence and dies of others: a response is cut short where prompt and limit
together are too long, an id beyond the vocabulary ends the process, a missing tensor is a line in a log.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from skillpress.core.engine import Request, StateDict
from skillpress.core.errors import UserError

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class EngineError(RuntimeError):
    """An engine did not do what it was asked for; the message names the engine and what to do."""


def refuse_multimodal(model: PreTrainedModel, engine: str) -> None:
    """Refuse a model of more than text: vLLM calls its weights otherwise, and asks for its image processor.

    Args:
        engine: its name in params.yaml.

    Raises:
        UserError: the model's configuration has parts.
    """
    if model.config.get_text_config() is not model.config:
        raise UserError(
            f"engine.name: {engine} takes models of text alone, and {type(model).__name__} is multimodal; "
            "take engine local, or another policy.model"
        )


def check_requests(requests: Iterable[Request], vocabulary: int, longest: int) -> None:
    """Refuse requests that cannot be sampled as they are meant.

    Args:
        vocabulary: ids are below this.
        longest: tokens of a prompt and its response together, at most.

    Raises:
        ValueError: names the request and what is wrong with it.
    """
    for request in requests:
        prompt, new = request.prompt, request.sampling.max_new_tokens
        if not prompt:
            raise ValueError(f"request {request.key}: its prompt is empty")
        if min(prompt) < 0 or max(prompt) >= vocabulary:
            wrong = [token for token in prompt if not 0 <= token < vocabulary]
            raise ValueError(
                f"request {request.key}: its prompt holds {wrong[:3]}; ids are 0 to {vocabulary - 1}"
            )
        if len(prompt) + new > longest:
            raise ValueError(
                f"request {request.key}: {len(prompt)} tokens of prompt and {new} of response are more than "
                f"the engine's {longest}"
            )


def shapes_of(weights: StateDict) -> dict[str, tuple[int, ...]]:
    """Parameter name to shape."""
    return {name: tuple(tensor.shape) for name, tensor in weights.items()}


def check_weights(weights: StateDict, expected: Mapping[str, tuple[int, ...]]) -> dict[str, Any]:
    """The weights as a dictionary, once their names and shapes are those of the engine's policy.

    A head that shares its tensor with the embeddings has a name of its own and is there too: left out,
    it would keep its old values in vLLM.

    Raises:
        ValueError: a parameter is missing, foreign, or of another shape.
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
