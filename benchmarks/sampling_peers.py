"""The forms that sample from a policy: the local engine with and without static shapes, transformers' own
``generate``, and vLLM."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, cast

import numpy as np
import torch

from skillpress.core.engine import Completion, Engine, Sampling
from skillpress.core.logprobs import as_logprobs
from skillpress.core.trajectory import TokenIds
from skillpress.models.engines.generate import generate
from skillpress.models.engines.local.decoding import GrowingDecoder
from skillpress.models.engines.local.engine import LocalEngine
from skillpress.models.engines.parameters import EngineDemand
from skillpress.models.engines.vllm import VllmParameters
from skillpress.models.policy import Policy
from skillpress.models.policy.policy import copy_model
from skillpress.rollouts.workers.distributed import Ranks

if TYPE_CHECKING:
    from transformers._typing import GenerativePreTrainedModel

Sampler = Callable[[Sequence[TokenIds], int], list[Completion]]
"""Samples a fixed number of tokens after each prompt, with the prompt's number as its seed."""

VLLM_CACHE_GIB = 16.0


FORMS = ("local", "transformers", "growing", "vllm")
"""``growing`` is the local engine without static shapes."""


def samplers(policy: Policy, forms: Sequence[str], longest: int, rows: int) -> dict[str, Sampler]:
    """Some of ``FORMS``, such that no token ends a response.

    Args:
        longest: tokens of a prompt and its response.
        rows: prompts at once.
    """
    makers: dict[str, Callable[[], Sampler]] = {
        "local": lambda: _never_stopped(LocalEngine(policy)),
        "transformers": lambda: _transformers(policy),
        "growing": lambda: _growing(policy),
        "vllm": lambda: _vllm(policy, longest, rows),
    }
    return {form: makers[form]() for form in forms}


def _growing(policy: Policy) -> Sampler:
    engine = LocalEngine(policy)
    engine.decoder = GrowingDecoder()
    return _never_stopped(engine)


def _never_stopped(engine: LocalEngine) -> Sampler:
    engine.stop = np.array([], np.int64)
    return lambda prompts, new: engine.generate(prompts, Sampling(max_new_tokens=new), range(len(prompts)))


def _transformers(policy: Policy) -> Sampler:
    """``generate`` over all rows at once; it reports no log-probabilities."""
    model = copy_model(policy.model)
    assert model.generation_config is not None
    model.generation_config.eos_token_id = None
    generating = cast("GenerativePreTrainedModel", model)

    def sample(prompts: Sequence[TokenIds], new: int) -> list[Completion]:
        width = max(map(len, prompts))
        rows = torch.tensor([[0] * (width - len(prompt)) + list(prompt) for prompt in prompts])
        lengths = torch.tensor([len(prompt) for prompt in prompts])
        mask = torch.arange(width) >= (width - lengths)[:, None]
        found = generating.generate(
            rows.to(model.device), attention_mask=mask.to(model.device), do_sample=True, temperature=1.0,
            top_k=0, top_p=1.0, min_new_tokens=new, max_new_tokens=new, pad_token_id=0,
        )  # fmt: skip
        assert isinstance(found, torch.Tensor)
        nothing = as_logprobs((float("nan"),) * new)
        return [
            Completion(token_ids=tuple(row), logprobs=nothing, finish_reason="length")
            for row in found[:, width:].tolist()
        ]

    return sample


def _vllm(policy: Policy, longest: int, rows: int) -> Sampler:
    """The engine ``vllm``, with a policy that has no stop token."""
    endless = Policy(copy_model(policy.model), policy.tokenizer)
    assert endless.model.generation_config is not None
    endless.model.generation_config.eos_token_id = []
    section = VllmParameters(name="vllm", cache_gib=VLLM_CACHE_GIB)
    engine: Engine = section.make(endless, EngineDemand(longest=longest, slots=rows, ranks=Ranks()))
    return lambda prompts, new: generate(engine, prompts, Sampling(max_new_tokens=new), range(len(prompts)))
