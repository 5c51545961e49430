"""Skill sequences and the dictionary that compresses them: the paper's core.

``fit`` finds a dictionary for a corpus of successes, ``segmentation`` cuts a sequence into its phrases,
``shaping`` turns the number of segments into a penalty, ``buffer`` remembers recent successes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillpress.core.lazy import lazy_names

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

__getattr__, __dir__ = lazy_names(__name__)
