"""Peak memory of scoring responses under a large vocabulary: logits in chunks, or whole.

    python -m benchmarks.scoring_memory [--tokens 2048] [--vocabulary 150000] [--device cuda --dtype bfloat16]

A model of 2 layers of width 256 computes the tokens' log-probabilities and entropies and the gradients of all
its weights, on one thread. *Whole* is the form before chunks: one chunk that holds every token, which is the
same computation bit for bit. Each form runs in its own process, twice. The peak is what the second pass adds
to the process's resident memory, or on a GPU to its tensors, so weights and gradients do not count. The
log-probabilities and gradients of both forms are compared.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from transformers import LlamaConfig, LlamaForCausalLM

from benchmarks.device import add_options, device_name, finish, most_held, status_bytes
from skillpress.models.policy import token_scores
from skillpress.models.policy.scoring import ResponseScorer, pack_responses

FORMS = ("whole", "chunks")
RESPONSE, PROMPT = 64, 32


def made_model(vocabulary: int) -> LlamaForCausalLM:
    """Small layers below a large vocabulary; the same weights in every process."""
    torch.manual_seed(0)
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=vocabulary, hidden_size=256, intermediate_size=1024, num_hidden_layers=2,
            num_attention_heads=4, num_key_value_heads=4,
        )
    )  # fmt: skip
    model.eval()
    return model


def held(device: torch.device) -> int:
    """Bytes held now; on a GPU, also resets the peak."""
    if device.type == "cuda":
        finish(device)
        torch.cuda.reset_peak_memory_stats(device)
        return torch.cuda.memory_allocated(device)
    return status_bytes("VmRSS")


def measure(
    form: str, tokens: int, vocabulary: int, values: Path, device: torch.device, dtype: torch.dtype
) -> dict[str, int]:
    """The peak of one form; its results are written to ``values``."""
    if form == "whole":
        token_scores.CHUNK_LOGITS = tokens * vocabulary
    scorer = ResponseScorer(torch.nn.Module.to(made_model(vocabulary), device, dtype))
    random = np.random.default_rng(0)

    def there_and_back(responses: int) -> torch.Tensor:
        prompt = tuple(random.integers(0, vocabulary, PROMPT).tolist())
        rows = [(prompt, tuple(random.integers(0, vocabulary, RESPONSE).tolist())) for _ in range(responses)]
        scorer.zero_grad(set_to_none=False)
        logprobs: torch.Tensor
        logprobs, _ = scorer(pack_responses(rows, device), 1.0)
        (logprobs * torch.linspace(-1, 1, len(logprobs), device=device)).sum().backward()
        return logprobs.detach()

    there_and_back(1)  # allocates the gradients
    before = held(device)
    logprobs = there_and_back(tokens // RESPONSE)
    peak = most_held(device) - before
    gradients = [weight.grad for weight in scorer.model.parameters() if weight.grad is not None]
    norms = torch.stack([gradient.norm() for gradient in gradients])
    found = {"logprobs": logprobs, "gradients": gradients[0], "norms": norms}
    torch.save({name: tensor.cpu().float() for name, tensor in found.items()}, values)
    return {"peak_bytes": peak}


def compare(tokens: int, vocabulary: int, device: str, dtype: str) -> dict[str, Any]:
    """Both forms, and the difference between their values."""
    found: dict[str, Any] = {}
    values: dict[str, dict[str, torch.Tensor]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for form in FORMS:
            output = Path(folder) / form
            command = [sys.executable, "-m", "benchmarks.scoring_memory", "--form", form]
            command += ["--tokens", str(tokens), "--vocabulary", str(vocabulary), "--values", str(output)]
            command += ["--device", device, "--dtype", dtype]
            finished = subprocess.run(command, capture_output=True, text=True, check=True)
            found[form] = json.loads(finished.stdout.splitlines()[-1])
            values[form] = torch.load(output)
    whole, chunks = (values[form] for form in FORMS)
    return {
        **found,
        "whole_over_chunks": found["whole"]["peak_bytes"] / found["chunks"]["peak_bytes"],
        "largest_difference": {
            "logprobs_nats": float((whole["logprobs"] - chunks["logprobs"]).abs().max()),
            "gradients_relative": float(
                (whole["gradients"] - chunks["gradients"]).norm() / whole["gradients"].norm()
            ),
            "gradient_norms_relative": float((whole["norms"] / chunks["norms"] - 1).abs().max()),
        },
    }


def main() -> None:
    """Print the comparison as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--tokens", type=int, default=2048, help="response tokens in the pass")
    parser.add_argument("--vocabulary", type=int, default=150_000)
    parser.add_argument("--form", choices=FORMS, help="measure one form only, as --values' file is for")
    parser.add_argument("--values", type=Path)
    add_options(parser)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    if chosen.form:
        device, dtype = torch.device(chosen.device), getattr(torch, chosen.dtype)
        found = measure(chosen.form, chosen.tokens, chosen.vocabulary, chosen.values, device, dtype)
        print(json.dumps(found))
        return
    print(json.dumps({
        **compare(chosen.tokens, chosen.vocabulary, chosen.device, chosen.dtype),
        "setting": {
            "tokens": chosen.tokens,
            "vocabulary": chosen.vocabulary,
            "chunk_logits": token_scores.CHUNK_LOGITS,
            "device": device_name(torch.device(chosen.device)),
            "dtype": chosen.dtype,
            "threads": 1,
        },
        "versions": {module.__name__: module.__version__ for module in (transformers, torch)},
        "machine": {"python": platform.python_version(), "load": os.getloadavg()[0]},
    }, indent=2))  # fmt: skip


if __name__ == "__main__":
    main()
