"""Reads saved policies with any version of transformers: ``reading_program.py FOLDER ...``.

Prints as JSON, for each folder, the tokens of its prompt, the likeliest following tokens, and the logits
after the prompt.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

QUESTION = "asked.json"
"""File in a folder with the message, the number of tokens that follow, and the maximum total number."""


@torch.no_grad()
def read(folder: Path) -> dict[str, Any]:
    """The tokens."""
    asked = json.loads((folder / QUESTION).read_text())
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForCausalLM.from_pretrained(folder)
    if tokenizer.chat_template:
        messages = [{"role": "user", "content": asked["content"]}]
        text = tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
        prompt = tokenizer(text, add_special_tokens=False)["input_ids"]
    else:
        prompt = tokenizer(asked["content"])["input_ids"]
    ids = torch.tensor([prompt])
    said = model.eval().generate(
        ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=asked["new"]
    )
    return {
        "prompt": prompt,
        "response": said[0, len(prompt) :].tolist(),
        "logits": model(ids).logits[0, -1, :64].float().tolist(),
    }


if __name__ == "__main__":
    torch.set_num_threads(1)
    print(json.dumps({folder: read(Path(folder)) for folder in sys.argv[1:]}))
