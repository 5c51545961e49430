"""Make saved model folders readable for other programs, with the same meaning as here.

transformers 5 writes some settings under names that transformers 4, and programs built on it, do not know.
transformers 4 does not report all missing names: without the base of the rotary embeddings it uses a default,
and the model gives other responses. transformers 5 reads the older names too, so both are written.

    config.json             rope_theta, rope_scaling and others, in addition to rope_parameters
                            a family's own names, in addition to the common ones of transformers 5
    tokenizer_config.json   additional_special_tokens, for a list of extra_special_tokens
                            tokenizer_class: PreTrainedTokenizerFast, for TokenizersBackend. It uses
                            tokenizer.json as it is, while the classes of families rebuild parts of it.

transformers 5 does not save every model that it loads. It refuses generation settings that contradict each
other, and generation settings in config.json, where earlier versions kept them.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from transformers import GenerationConfig, PretrainedConfig, PreTrainedModel

from skillpress.core.storage import read_json, write_json

BASE_BY_LAYER = {"full_attention": "rope_theta", "sliding_attention": "rope_local_base_freq"}
"""Kind of layer to transformers 4's name for its rotary base, in families with two bases."""
BESIDE_SCALING = ("rope_theta", "partial_rotary_factor")
"""Settings that transformers 4 keeps outside ``rope_scaling``."""


def make_savable(model: PreTrainedModel) -> None:
    """Correct, in place, the generation settings that transformers refuses to save; others stay unchanged."""
    for name in model.config._get_generation_parameters():  # transformers ignores them there
        delattr(model.config, name)
    if model.generation_config is not None:
        model.generation_config = _mended(model.generation_config)


def _mended(found: GenerationConfig) -> GenerationConfig:
    """The settings with the fewest changes that make them valid."""
    if _valid(found):
        return found
    config = copy.deepcopy(found)
    if config.pad_token_id is not None and config.pad_token_id < 0:
        config.pad_token_id = None
    if config.temperature == 0:
        config.temperature = None
    if not _valid(config):
        config.do_sample = True  # temperature, top_p and others are set, so sampling is meant
    if not _valid(config):
        ends = {name: getattr(config, name) for name in ("bos_token_id", "eos_token_id", "pad_token_id")}
        config = GenerationConfig(**ends)
    return config


def _valid(config: GenerationConfig) -> bool:
    try:
        config.validate(strict=True)
    except ValueError:
        return False
    return True


def name_for_older_readers(folder: Path, config: PretrainedConfig) -> None:
    """Add the names of transformers 4 to a folder that transformers 5 has written."""
    path = folder / "config.json"
    write_json(path, _with_older_names(config, read_json(path)))
    path = folder / "tokenizer_config.json"
    tokenizer = {**read_json(path), "tokenizer_class": "PreTrainedTokenizerFast"}
    if isinstance(tokenizer.get("extra_special_tokens"), list):
        tokenizer["additional_special_tokens"] = tokenizer.pop("extra_special_tokens")
    write_json(path, tokenizer)


def _with_older_names(config: PretrainedConfig, written: Mapping[str, Any]) -> dict[str, Any]:
    """The contents of a configuration file, and of its parts, with the names of transformers 4 added."""
    found = dict(written)
    for part in config.sub_configs:
        if isinstance(found.get(part), dict):
            found[part] = _with_older_names(getattr(config, part), found[part])
    for older, name in config.attribute_map.items():
        if name in found:
            found.setdefault(older, found[name])
    return found | _older_rope(found.get("rope_parameters") or {})


def _older_rope(rope: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of rotary embeddings under transformers 4's names."""
    found = {
        name: rope[layer]["rope_theta"]
        for layer, name in BASE_BY_LAYER.items()
        if isinstance(rope.get(layer), dict)
    }
    settings: Mapping[str, Any] = (rope.get("full_attention") or {}) if found else rope
    found |= {name: settings[name] for name in BESIDE_SCALING if name in settings}
    scaling = {name: value for name, value in settings.items() if name not in BESIDE_SCALING}
    if scaling.get("rope_type", "default") != "default":
        found["rope_scaling"] = scaling
    return found
