"""Skill sequences and the dictionary that compresses them: the paper's core.

``fit`` finds a dictionary for a corpus of successes, ``segmentation`` cuts a sequence into its phrases,
``shaping`` turns the number of segments into a penalty, ``buffer`` remembers recent successes.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from skillpress.skills.bounds import certify
    from skillpress.skills.buffer import SuccessBuffer
    from skillpress.skills.description_length import data_bits, dictionary_bits
    from skillpress.skills.dictionary import SkillDictionary, load_dictionary, save_dictionary
    from skillpress.skills.segmentation import segment, segmentation_cost
    from skillpress.skills.shaping import Shaping

__all__ = [
    "Shaping",
    "SkillDictionary",
    "SuccessBuffer",
    "certify",
    "data_bits",
    "dictionary_bits",
    "load_dictionary",
    "save_dictionary",
    "segment",
    "segmentation_cost",
]

_MODULES = {
    "Shaping": "shaping",
    "SkillDictionary": "dictionary",
    "SuccessBuffer": "buffer",
    "certify": "bounds",
    "data_bits": "description_length",
    "dictionary_bits": "description_length",
    "load_dictionary": "dictionary",
    "save_dictionary": "dictionary",
    "segment": "segmentation",
    "segmentation_cost": "segmentation",
}
"""Public name to its module, which is imported when the name is first asked for."""


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
