"""Shorten long texts in a prompt: keep both ends and count the characters between them."""

from __future__ import annotations


def shortened(text: str, longest: int) -> str:
    """Return the text itself if it has at most ``longest`` characters, otherwise its two ends around a note.

    The note says how many characters were left out, and it is not counted in ``longest``. If the note would
    make the text longer, the text is returned unchanged.
    """
    head, tail = text[: longest - longest // 2], text[max(0, len(text) - longest // 2) :]
    cut = f"{head}\n[... {len(text) - longest} characters left out ...]\n{tail}"
    return cut if len(cut) < len(text) else text
