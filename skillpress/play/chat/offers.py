"""What a server says about its models before any of them is asked (``GET models``)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from skillpress.play.chat.answers import parsed
from skillpress.play.chat.connection import Reply
from skillpress.play.chat.outcomes import readable


@dataclass(frozen=True)
class Offer:
    """One model of a server."""

    name: str
    context: int | None
    """Maximum number of tokens of a prompt and its response together, if the server says so (vLLM,
    SGLang)."""
    own_defaults: bool
    """Whether the server replaces sampling parameters that are not sent by those of the model's
    ``generation_config.json``, as vLLM and SGLang do."""


def read_offers(reply: Reply) -> tuple[Offer, ...] | None:
    """The models of a server; None if the reply lists none."""
    found = parsed(reply.body)
    listed = found.get("data") if isinstance(found, Mapping) and reply.status == 200 else None
    if not isinstance(listed, list):
        return None
    models = [each for each in listed if isinstance(each, Mapping) and isinstance(each.get("id"), str)]
    return tuple(_offer(readable(model["id"]), model) for model in models)


def _offer(name: str, model: Mapping[str, object]) -> Offer:
    context = model.get("max_model_len")
    stated = context if isinstance(context, int) and context > 1 else None  # True is an int too
    return Offer(name, stated, stated is not None or model.get("owned_by") in ("vllm", "sglang"))
