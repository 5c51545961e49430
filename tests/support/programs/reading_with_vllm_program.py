"""Reads saved policies with vLLM alone: ``reading_with_vllm_program.py FOLDER ...``.

Prints as JSON, for each folder, the tokens of its prompt and the likeliest following tokens. Only the folder
says what texts begin with, how a chat is written and where responses end.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from skillpress.models.engines.vllm.engine import CPU_OPTIONS, CPU_SETTINGS, SETTINGS

for name, value in {**SETTINGS, **CPU_SETTINGS}.items():
    os.environ.setdefault(name, value)

from vllm import LLM, SamplingParams  # noqa: E402  it reads the settings


def read(folder: str) -> dict[str, Any]:
    """The tokens."""
    asked = json.loads((Path(folder) / "asked.json").read_text())
    model = LLM(
        model=folder, dtype="float32", max_num_seqs=2, max_model_len=asked["context"],
        max_num_batched_tokens=2048, kv_cache_memory_bytes=1 << 26, disable_log_stats=True, **CPU_OPTIONS,
    )  # fmt: skip
    sampling = SamplingParams(temperature=0, max_tokens=asked["new"])
    if model.get_tokenizer().chat_template:
        (answer,) = model.chat([{"role": "user", "content": asked["content"]}], sampling)
    else:
        (answer,) = model.generate(asked["content"], sampling)
    found = {"prompt": list(answer.prompt_token_ids), "response": list(answer.outputs[0].token_ids)}
    model.llm_engine.engine_core.shutdown()
    return found


if __name__ == "__main__":
    print(json.dumps({folder: read(folder) for folder in sys.argv[1:]}))
