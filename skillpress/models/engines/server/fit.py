"""Check once, before anything else is sent to a server, whether the experiment can sample from it.

Mismatches that would otherwise go unnoticed are refused here: another version of vLLM (results depend on it,
and the fingerprints of stages that sample name this one), another type than the policy's, and responses that
would be cut short.
"""

from __future__ import annotations

import torch

from skillpress.core.errors import UserError
from skillpress.models.engines.server import VLLM
from skillpress.models.engines.server.connection import (
    CONNECT_SECONDS,
    RefusedError,
    Server,
    ServerFailedError,
)


async def refuse_unfit(server: Server, longest: int, dtype: torch.dtype) -> None:
    """Return if the server fits.

    Args:
        longest: maximum number of tokens of a prompt and its response together.
        dtype: the policy's type.

    Raises:
        UserError: it does not answer or does not fit; the message says how to start one that does.
    """
    version, takes, types = await _what_it_is(server)
    if version.partition("+")[0] != VLLM:  # the part after the plus names a build
        raise UserError(
            f"engine.urls: {server.url} runs vLLM {version}; results are recorded as those of {VLLM}, and "
            "its calls are meant: install that one there"
        )
    wanted = str(dtype).removeprefix("torch.")
    if set(types) != {wanted}:
        raise UserError(
            f"engine.urls: {server.url} samples in {', '.join(sorted(set(types)))}, policy.dtype is "
            f"{wanted}: start it with --dtype {wanted}"
        )
    if takes < longest:
        raise UserError(
            f"engine.urls: {server.url} takes {takes} tokens of prompt and response; the experiment needs "
            f"{longest}: start it with --longest {longest}"
        )


async def _what_it_is(server: Server) -> tuple[str, int, list[str]]:
    """Return (vLLM's version, the maximum number of tokens, the type in which each of its workers
    samples)."""
    try:
        version = await server.get("/version", CONNECT_SECONDS)
        models = await server.get("/v1/models", CONNECT_SECONDS)
        workers = await server.post("/collective_rpc", {"method": "served_dtype"}, CONNECT_SECONDS)
        return str(version["version"]), int(models["data"][0]["max_model_len"]), list(workers["results"])
    except (ServerFailedError, RefusedError, KeyError, IndexError, TypeError) as error:
        raise UserError(
            f"engine.urls: {server.url} is not a vLLM server that answers as `skillpress serve-model` starts "
            f"them ({error}); start one: skillpress serve-model --model FOLDER"
        ) from error
