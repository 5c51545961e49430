"""Skill sequences and the dictionary that compresses them: the paper's core.

``fit`` finds a dictionary for a corpus of successes, ``segmentation`` cuts a sequence into its phrases,
``shaping`` turns the number of segments into a penalty, ``buffer`` remembers recent successes.
"""
