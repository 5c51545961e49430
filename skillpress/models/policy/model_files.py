"""Information in a model's files that transformers does not read.

A model is a local folder or a repository of the hub in this machine's cache.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

from transformers.utils.hub import cached_file

from skillpress.core.errors import PolicyError
from skillpress.core.storage import read_json

FOR_PROCESSORS = ("chat_template.json", "processor_config.json")
"""Files with the chat template of multimodal models, which transformers reads only for processors."""
NAMING_ENDS = ("config.json", "generation_config.json")


def refuse_other_files(source: str | Path) -> None:
    """Refuse a single file, and an adapter without its model.

    transformers would load an adapter as its base model with additional layers, whose weights have names that
    no engine knows.

    Raises:
        PolicyError: the source is one of these.
    """
    if Path(source).is_file():
        raise PolicyError(f"{source}: is a file; name a folder that holds config.json and the weights")
    if _file(source, "adapter_config.json"):
        raise PolicyError(adapter_alone(source))


def adapter_alone(source: str | Path) -> str:
    """Why an adapter cannot be loaded, and the command that merges it into its base model."""
    config = read_json(Path(named)) if (named := _file(source, "adapter_config.json")) else {}
    base = config.get("base_model_name_or_path") if isinstance(config, dict) else None
    merged = f"{str(source).rstrip('/')}-merged"
    code = (
        "from transformers import AutoModelForCausalLM as M, AutoTokenizer as T; "
        f"from peft import PeftModel as P; base, to = {base or 'FOLDER OF ITS BASE MODEL'!r}, {merged!r}; "
        f"whole = P.from_pretrained(M.from_pretrained(base), {str(source)!r}).merge_and_unload(); "
        "whole.save_pretrained(to); T.from_pretrained(base).save_pretrained(to)"
    )
    return (
        f"{source}: holds adapter_config.json, so it is an adapter, not a full model; merge it into its "
        f"base model and name {merged}: python -c {shlex.quote(code)}"
    )


def named_ends(source: str | Path) -> frozenset[int]:
    """The ends that the configurations name, without class defaults; ``StorageError`` for damaged files."""
    said = [read_json(path) for path in (_file(source, name) for name in NAMING_ENDS) if path]
    parts = [part for each in said if isinstance(each, dict) for part in (each, each.get("text_config"))]
    return frozenset(
        token for part in parts if isinstance(part, dict) for token in listed(part.get("eos_token_id"))
    )


def listed(ends: Any) -> list[int]:
    """The ends as a list; the argument may be a single value. Values that are not numbers are dropped."""
    return [token for token in (ends if isinstance(ends, list) else [ends]) if isinstance(token, int)]


def template_for_processors(source: str | Path) -> str | dict[str, str] | None:
    """The chat template, or templates by name, in the files for processors; None if there is none.

    Raises:
        PolicyError: it is neither a text nor a list of named texts.
        StorageError: such a file is damaged.
    """
    for name in FOR_PROCESSORS:
        path = _file(source, name)
        said = read_json(path) if path else None
        found = said.get("chat_template") if isinstance(said, dict) else said
        if isinstance(found, list):
            found = {each.get("name"): each.get("template") for each in found if isinstance(each, dict)}
        texts = [*found, *found.values()] if isinstance(found, dict) else [found]
        if found and not all(isinstance(text, str) for text in texts):
            raise PolicyError(f"{path}: its chat_template is neither a text nor a list of named texts")
        if found:
            template: str | dict[str, str] = found
            return template
    return None


def _file(source: str | Path, name: str) -> str | None:
    """Path of one of the model's files; None if it does not exist."""
    return cached_file(
        str(source),
        name,
        _raise_exceptions_for_missing_entries=False,
        _raise_exceptions_for_connection_errors=False,
    )
