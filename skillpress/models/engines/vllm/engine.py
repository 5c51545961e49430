"""vLLM in this process, one step of its scheduler at a time.

A request joins the running batch at the next step and leaves it when it is done, so no request waits for the
longest response. The caller of ``completed`` lets vLLM compute: it runs steps until a request is finished.
vLLM draws its own random numbers: equal seeds give other tokens than the local engine's. With a generator
for every request it draws row by row: 256 rows are 256 small kernels a token. So requests have none, unless
``engine.seeded`` asks for it. A batch then begins with one seed for this process's generators.

Every rank of a training has an engine of its own, which samples for this rank alone; ``rank.py`` says how
vLLM fits into a process that is connected with others.

While the learner updates, ``sleep`` releases the GPU's memory, both weights and keys and values. The weights
are loaded again with the update. On a CPU nothing is released. vLLM allocates beside torch and cannot use
memory that torch keeps for its next tensors, so torch returns it before vLLM wakes.
"""

from __future__ import annotations

import copy
import importlib
import os
import random
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from transformers import PreTrainedModel

from skillpress.core.engine import Completion, Promises, Request, StateDict
from skillpress.core.errors import UserError
from skillpress.core.logprobs import as_logprobs
from skillpress.core.trajectory import WeightSpan
from skillpress.models.engines.checks import EngineError, check_requests, check_weights, shapes_of
from skillpress.models.engines.parameters import EngineDemand
from skillpress.models.engines.vllm import GIB, installed_version
from skillpress.models.policy.older_readers import make_savable
from skillpress.models.policy.policy import Policy

BATCH_TOKENS = 8192
"""Maximum number of tokens in one step of the scheduler, unless a prompt is longer."""
BLOCK_TOKENS = 32
"""Tokens in a block of the prefix cache. For growing prompts this finds more than vLLM's 16."""

SETTINGS = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",  # scheduler in this process: no process can outlive it
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",  # the cores are shared with environments and the learner
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_LOGGING_LEVEL": "WARNING",
}
"""Environment variables that vLLM reads when it is imported. The caller's environment takes precedence."""

CPU_SETTINGS = {
    "TORCHDYNAMO_DISABLE": "1",  # otherwise the first response waits a minute or more for a compiler
}
CPU_OPTIONS = {
    "enforce_eager": True,
    # If a prefill is cut into pieces, the CPU's sampler fails on seeded requests.
    "enable_chunked_prefill": False,
}


class VllmEngine:
    """An ``engine.Engine`` on ``vllm.LLMEngine``."""

    def __init__(
        self, policy: Policy, demand: EngineDemand, cache_gib: float, *, seeded: bool = False
    ) -> None:
        """Start vLLM (ten seconds) with ``cache_gib`` GiB for keys and values; ``UserError`` without vLLM.

        If this process is connected with other ranks, all of them make their engines at the same time.

        Args:
            seeded: whether each response has a seed of its own (``engine.seeded``).
        """
        self._seeded = seeded
        self._vllm = _import_vllm()
        from skillpress.models.engines.vllm.rank import RankExecutor  # after vLLM, which reads its settings

        dtype = policy.model.dtype
        self.promises = Promises(exact_seeds=False, exact_logprobs=dtype == torch.float32, lockstep=False)
        self.version = 0
        self.prefilled_tokens = 0
        """Number of prompt tokens computed so far, without those found in the prefix cache."""
        self._open: dict[str, Request] = {}
        self._longest, self._vocabulary = demand.longest, policy.vocabulary
        self._stop = sorted(policy.stop_token_ids)
        self._shapes = shapes_of(policy.model.state_dict())
        self._on_gpu, self._asleep = torch.cuda.is_available(), False
        with tempfile.TemporaryDirectory(prefix="skillpress-policy-") as folder:
            _save_configuration(policy.model, folder)
            arguments = self._vllm.EngineArgs(
                model=folder,
                load_format="dummy",  # the weights follow from memory: no rank writes a copy to the disk
                dtype=str(dtype).removeprefix("torch."),
                skip_tokenizer_init=True,
                generation_config="vllm",
                logprobs_mode="processed_logprobs",  # of the distribution drawn from, not of the raw logits
                distributed_executor_backend=RankExecutor,
                enable_sleep_mode=self._on_gpu,
                max_model_len=demand.longest,
                max_num_seqs=demand.slots,
                max_num_batched_tokens=max(BATCH_TOKENS, demand.longest),
                kv_cache_memory_bytes=int(cache_gib * GIB),
                block_size=BLOCK_TOKENS,
                **(_gpu_options(policy, cache_gib) if self._on_gpu else CPU_OPTIONS),
            )
            with _out_of_sight("llvmlite.binding.ffi"):
                self._engine = self._vllm.LLMEngine.from_engine_args(arguments)
        self.update_weights(policy.model.state_dict(), 0)

    def submit(self, requests: Sequence[Request]) -> None:
        """See ``engine.Engine``. ``ValueError`` for a prompt that is empty, too long, or has unknown ids."""
        check_requests(requests, self._vocabulary, self._longest)
        if requests and not self._open and not self._seeded:
            seed_generators(requests[0].seed)
        for request in requests:
            prompt = {"prompt_token_ids": list(request.prompt)}
            self._engine.add_request(str(request.key), prompt, self._parameters(request))
            self._open[str(request.key)] = request

    def completed(self, wait: float) -> list[tuple[int, Completion]]:
        """See ``engine.Engine``. A step of the scheduler that has begun is not interrupted."""
        until = time.monotonic() + wait
        while self._engine.has_unfinished_requests():
            outputs = [output for output in self._engine.step() if output.finished]
            if outputs or time.monotonic() >= until:
                return [self._completion(output) for output in outputs]
        return []

    def abort(self) -> None:
        self._engine.abort_request(list(self._open))
        self._open.clear()

    def update_weights(self, weights: StateDict, version: int) -> None:
        """See ``engine.Engine``. ``ValueError`` for other weights, or while a request is open."""
        if self._open:
            raise ValueError(f"weights {version}: vLLM still samples from weights {self.version}")
        items = check_weights(weights, self._shapes)
        if self._asleep:
            self._wake_up("weights")
        self._engine.collective_rpc("reload_weights", kwargs={"weights_iterator": iter(items.items())})
        if not self._asleep:
            self._reset_prefix_cache()
        self.version = version

    def sleep(self) -> None:
        """See ``engine.Engine``. The next call must be ``update_weights``."""
        if self._on_gpu and not self._asleep:
            self._engine.sleep(level=2)
            self._asleep = True

    def wake(self) -> None:
        if self._asleep:
            self._wake_up("kv_cache")
            self._asleep = False
            self._reset_prefix_cache()

    def close(self) -> None:
        """See ``engine.Engine``. Ranks that were connected before the engine was made stay connected."""
        if self._engine is None:
            return
        self.abort()
        self._engine.engine_core.shutdown()
        self._engine = None

    def _wake_up(self, what: str) -> None:
        """Give vLLM memory for its weights, or for keys and values."""
        torch.cuda.empty_cache()
        self._engine.wake_up(tags=[what])

    def _reset_prefix_cache(self) -> None:
        """Forget the keys and values of the old weights."""
        if not self._engine.reset_prefix_cache():
            raise EngineError("vLLM kept keys and values of the old weights: its prefix cache is in use")

    def _parameters(self, request: Request) -> Any:
        """vLLM's ``SamplingParams``."""
        sampling = request.sampling
        return self._vllm.SamplingParams(
            temperature=sampling.temperature,
            top_p=sampling.top_p,
            top_k=sampling.top_k,
            max_tokens=sampling.max_new_tokens,
            seed=request.seed if self._seeded else None,
            logprobs=0,  # only that of the sampled token
            stop_token_ids=self._stop,
            ignore_eos=True,  # only the policy's own stop tokens
            detokenize=False,
            output_kind=self._vllm.sampling_params.RequestOutputKind.FINAL_ONLY,
        )

    def _completion(self, output: Any) -> tuple[int, Completion]:
        """Return (the request's key, its completion)."""
        request = self._open.pop(output.request_id)
        (sampled,) = output.outputs
        tokens = tuple(sampled.token_ids)
        if sampled.finish_reason not in ("stop", "length") or len(sampled.logprobs) != len(tokens):
            raise EngineError(
                f"request {request.key}: vLLM ended it ({sampled.finish_reason}) with {len(tokens)} "
                f"tokens and {len(sampled.logprobs)} log-probabilities"
            )
        cached = output.num_cached_tokens
        self.prefilled_tokens += len(request.prompt) - (cached or 0)
        rows = zip(sampled.logprobs, tokens, strict=True)
        logprobs = as_logprobs([row[token].logprob for row, token in rows])
        if request.sampling.temperature == 0:  # the distribution that it was drawn from has one token
            logprobs = np.zeros_like(logprobs)
        return request.key, Completion(
            token_ids=tokens,
            logprobs=logprobs,
            finish_reason=sampled.finish_reason,
            weight_spans=(WeightSpan(self.version, 0, len(tokens)),),
            prefilled_tokens=None if cached is None else len(request.prompt) - cached,
        )


def seed_generators(seed: int) -> None:
    """Seed the generators of this process, from which vLLM draws for requests without a seed."""
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)  # of all devices


def _save_configuration(model: PreTrainedModel, folder: str) -> None:
    """Write the model's configuration, from which vLLM builds the model."""
    make_savable(model)
    config = copy.deepcopy(model.config)
    config.architectures = [type(model).__name__]
    config.save_pretrained(folder)


def _gpu_options(policy: Policy, cache_gib: float) -> dict[str, float]:
    """Options for the memory of the GPU. vLLM starts only if a share of the whole GPU is free, nine tenths by
    default. The learner uses the GPU too, so this asks for the share that vLLM will take."""
    _, total = torch.cuda.mem_get_info()
    weights = sum(weight.nbytes for weight in policy.model.parameters())
    return {"gpu_memory_utilization": min(1.0, (weights + cache_gib * GIB) / total)}


@contextmanager
def _out_of_sight(module: str) -> Iterator[None]:
    """vLLM's CPU build inspects all loaded modules and fails at this one, which answers every name."""
    hidden = sys.modules.pop(module, None)
    try:
        yield
    finally:
        if hidden is not None:
            sys.modules[module] = hidden


def _import_vllm() -> Any:
    settings = SETTINGS if torch.cuda.is_available() else {**SETTINGS, **CPU_SETTINGS}
    for name, value in settings.items():
        os.environ.setdefault(name, value)
    found = installed_version()
    try:
        return importlib.import_module("vllm")
    except ImportError as error:
        raise UserError(
            f"engine.name: vLLM {found} is installed here, but cannot be imported: {error}"
        ) from error
