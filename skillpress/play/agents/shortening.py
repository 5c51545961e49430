"""Long texts in a prompt: both ends are kept, and what lies between is counted."""

from __future__ import annotations


def shortened(text: str, longest: int) -> str:
    """A text of at most ``longest`` characters, or its two ends around a note of how much was left out.

    The note comes on top; a text that the note would not make shorter stays whole.
    """
    head, tail = text[: longest - longest // 2], text[max(0, len(text) - longest // 2) :]
    cut = f"{head}\n[... {len(text) - longest} characters left out ...]\n{tail}"
    return cut if len(cut) < len(text) else text
