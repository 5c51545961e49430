"""Prints the peak memory of one microbatch's forward and backward pass as JSON: ``memory_program.py CASE``.

CASE is a key of ``CASES``. The figure is the process's resident set: its highest value during the pass minus
its value before.
"""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path

import numpy as np
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from skillpress.core.logprobs import as_logprobs
from skillpress.core.trajectory import Step
from skillpress.experiment.estimate import imitation_memory, training_memory
from skillpress.experiment.model_shapes import ModelShape
from skillpress.experiment.params import Params, load_params
from skillpress.models.policy.lora import LoraAdapter
from skillpress.models.policy.precision import MasterWeights
from skillpress.models.policy.scorers import checkpoint_layers, choose_scorer
from skillpress.models.policy.scoring import Scorer
from skillpress.training.algorithms.batch import Batch
from skillpress.training.imitation.trainer import add_gradients
from skillpress.training.loop.model_pass import passes, scored
from skillpress.training.loop.optimizer import read_configuration
from skillpress.training.lora_parameters import LoraParameters
from tests.support.training.batches import clipped

ROOT = Path(__file__).parents[3]
CASES = {
    # name: (prompt tokens, response tokens, responses, tokens of a pass, vocabulary, width, dtype)
    "vocabulary": (8, 64, 8, 512, 30_000, 64, "float32"),
    "vocabulary in bfloat16": (8, 64, 8, 512, 30_000, 64, "bfloat16"),
    "vocabulary in chunks": (8, 64, 16, 1024, 150_000, 64, "float32"),
    "vocabulary in chunks in bfloat16": (8, 64, 16, 1024, 150_000, 64, "bfloat16"),
    "fan-out": (2040, 3, 8, 4096, 64, 256, "float32"),
    "activations": (2047, 1, 1, 2048, 64, 256, "float32"),
    "checkpointed": (2044, 3, 2, 2048, 64, 256, "float32"),
    "low-rank changes": (2047, 1, 1, 2048, 64, 256, "float32"),
    "imitation": (508, 4, 16, 1024, 64, 256, "float32"),
}
BATCH = ("activations", "keys and values fanned out", "logits")
"""Parts of imitation's memory that a pass takes; the others exist before."""


LORA = LoraParameters(rank=16, alpha=16)


def experiment(prompt: int, response: int, tokens: int, dtype: str, case: str) -> Params:
    """The default experiment with these sizes."""
    params = load_params(ROOT / "params.yaml")
    return params.model_copy(
        update={
            "policy": params.policy.model_copy(update={"context_tokens": prompt, "dtype": dtype}),
            "sampling": params.sampling.model_copy(update={"max_new_tokens": response}),
            "training": params.training.model_copy(
                update={
                    "microbatch_tokens": tokens,
                    "gradient_checkpointing": case == "checkpointed",
                    "lora": LORA if case == "low-rank changes" else None,
                }
            ),
        }
    )


def resident() -> int:
    """Resident bytes of this process now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def there_and_back(scorer: Scorer, batch: Batch, tokens: int) -> None:
    """Make one pass and its gradients, like the learner."""
    (only,) = passes(batch, tokens, "cpu", scorer.shares_prompts)
    logprobs, _ = scorer(only.responses, 1.0)
    loss, _ = clipped(0.2, 0.2, 0.0).loss(scored(only.batch, logprobs))
    loss.backward()


def imitated(model: LlamaForCausalLM, prompt: int, response: int, rows: int, tokens: int) -> None:
    """Compute the gradients of a batch of imitation whose prompts all differ."""
    scorer = choose_scorer(model.train())
    batch = [((1 + row, *(1,) * (prompt - 1)), (2,) * response) for row in range(rows)]
    add_gradients(scorer, MasterWeights(scorer.parameters()), batch, rows * response, tokens)


def samples(prompt: int, response: int, rows: int) -> Batch:
    """``rows`` responses to one prompt."""
    step = Step((1,) * prompt, (2,) * response, as_logprobs((-1.0,) * response), "", "", "", None, ())
    return Batch.of_steps((step,) * rows, np.ones(rows), np.ones(rows))


def most_resident() -> int:
    """The most bytes this program has held. (ru_maxrss also counts the process that it was forked from.)"""
    lines = Path("/proc/self/status").read_text().splitlines()
    (peak,) = (line for line in lines if line.startswith("VmHWM:"))
    return int(peak.split()[1]) * 1024


def main() -> None:
    """Measure the case and print it beside the estimate."""
    torch.set_num_threads(1)
    case = sys.argv[1]
    prompt, response, rows, tokens, vocabulary, width, dtype = CASES[case]
    config = LlamaConfig(
        vocab_size=vocabulary, hidden_size=width, intermediate_size=3 * width, num_hidden_layers=4,
        num_attention_heads=8, num_key_value_heads=2, max_position_embeddings=4096,
    )  # fmt: skip
    model = LlamaForCausalLM(config).to(getattr(torch, dtype)).eval()
    if case == "checkpointed":
        checkpoint_layers(model)
    if case == "low-rank changes":
        LoraAdapter(model, LORA.rank, LORA.alpha, seed=0)
    shape = ModelShape(0, 4, width, 2, width // 8, vocabulary, 8, 3 * width)
    name = "zero1_bf16" if dtype == "bfloat16" else "zero1_fp32"
    params = experiment(prompt, response, tokens, dtype, case)
    if case == "imitation":
        parts = imitation_memory(params, shape)
        estimate = {f"batch: {part}": parts[f"imitation: {part}"] for part in BATCH}
        imitated(model, 2, 2, 1, tokens)
        before = resident()
        imitated(model, prompt, response, rows, tokens)
    else:
        estimate = training_memory(params, shape, read_configuration(name))
        scorer = choose_scorer(model)
        there_and_back(scorer, samples(2, 2, 1), tokens)  # then gradients and work space have memory
        before = resident()
        there_and_back(scorer, samples(prompt, response, rows), tokens)
    print(json.dumps({"measured": most_resident() - before, **estimate}))


if __name__ == "__main__":
    main()
