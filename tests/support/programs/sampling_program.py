"""Engine ``vllm`` by itself: ``sampling_program.py smollm2-135m|FOLDER float32|bfloat16``.

Samples, changes the weights, samples again, and does the same with a second engine. Prints as JSON how far
the learner's scores of the samples differ from the engine's log-probabilities, also for the wrong weights as
a comparison. Prints also which share of a repeated prompt was computed again.
"""

from __future__ import annotations

import json
import sys

import numpy as np
import torch

from skillpress.core.engine import Completion, Sampling
from skillpress.core.trajectory import TokenIds
from skillpress.models.engines.generate import generate
from skillpress.models.engines.parameters import EngineDemand
from skillpress.models.engines.vllm import VllmParameters
from skillpress.models.engines.vllm.engine import VllmEngine
from skillpress.models.policy import Policy
from skillpress.models.policy.pretrained import load_pretrained
from skillpress.models.policy.scoring import ResponseScorer, pack_responses
from skillpress.rollouts.workers.distributed import Ranks

NEW_TOKENS = 4


@torch.no_grad()
def mean_difference(policy: Policy, prompts: list[TokenIds], completions: list[Completion]) -> float:
    """Mean difference of log-probabilities, over all tokens."""
    pairs = [(prompt, c.token_ids) for prompt, c in zip(prompts, completions, strict=True)]
    scored, _ = ResponseScorer(policy.model)(pack_responses(pairs), 1.0)
    sampled = [logprob for completion in completions for logprob in completion.logprobs]
    return float(np.abs(scored.numpy() - sampled).mean())


@torch.no_grad()
def scale(policy: Policy, by: float) -> None:
    """Multiply all weights of the policy."""
    for weight in policy.model.parameters():
        weight.mul_(by)


def main(model: str, dtype: str) -> dict[str, float]:
    """Return the differences."""
    policy = load_pretrained(model, dtype)
    random = np.random.default_rng(0)
    longest = min(64, policy.context_length)
    prompts = [
        tuple(map(int, random.integers(2, policy.model.config.vocab_size, longest - NEW_TOKENS - row % 3)))
        for row in range(16)
    ]
    section = VllmParameters(name="vllm", cache_gib=1.0)
    demand = EngineDemand(longest=longest, slots=16, ranks=Ranks())
    engine = section.make(policy, demand)
    assert isinstance(engine, VllmEngine)
    sampling = Sampling(max_new_tokens=NEW_TOKENS)
    before = generate(engine, prompts, sampling, range(16))
    differences = {"before": mean_difference(policy, prompts, before)}
    computed = engine.prefilled_tokens
    generate(engine, prompts, sampling, range(16, 32))
    differences["share computed again"] = engine.prefilled_tokens / computed - 1
    scale(policy, 1.1)
    engine.update_weights(policy.model.state_dict(), 1)
    after = generate(engine, prompts, sampling, range(16))
    differences["after"] = mean_difference(policy, prompts, after)
    differences["with the wrong weights"] = mean_difference(policy, prompts, before)
    differences["version"] = float(after[0].weight_spans[0].version)
    engine.close()
    scale(policy, 1 / 1.1)
    second = section.make(policy, demand)
    theirs = generate(second, prompts, sampling, range(16))
    differences["of a second engine"] = mean_difference(policy, prompts, theirs)
    second.close()
    return differences


if __name__ == "__main__":
    torch.set_num_threads(1)
    print(json.dumps(main(sys.argv[1], sys.argv[2])))
