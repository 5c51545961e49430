"""The output of a call: its beginning and its end are kept, and everything between is counted."""

from __future__ import annotations


def cut_in_the_middle(text: str, characters: int) -> tuple[str, bool]:
    """(text, whether it was cut). A longer text becomes its two ends around a note of the cut."""
    if len(text) <= characters:
        return text, False
    head, tail = text[: characters - characters // 2], text[len(text) - characters // 2 :]
    left_out = len(text) - len(head) - len(tail)
    return f"{head}\n[... {left_out} characters left out ...]\n{tail}", True


class Captured:
    """One output stream of one call. Its memory does not grow with the amount printed."""

    def __init__(self, characters: int) -> None:
        """``characters`` is the maximum number of characters shown in the end."""
        self._characters = characters
        self._room = 4 * characters  # UTF-8 has at most four bytes for a character
        self._head, self._tail = bytearray(), bytearray()
        self.total = 0
        """Number of bytes printed."""

    def add(self, data: bytes) -> None:
        """Add bytes that were read from the stream."""
        self.total += len(data)
        taken = data[: max(0, self._room - len(self._head))]
        self._head += taken
        self._tail += data[len(taken) :]
        if len(self._tail) > 2 * self._room:
            del self._tail[: len(self._tail) - self._room]

    def shown(self) -> tuple[str, bool]:
        """Return (text, whether it was cut). A text that is longer than allowed is cut in the middle."""
        left_out = self.total - len(self._head) - len(self._tail)
        if not left_out:
            return cut_in_the_middle(_text(self._head + self._tail), self._characters)
        half = self._characters // 2
        head, tail = _text(self._head)[:half], _text(self._tail)[-half:]
        left_out = self.total - len(head.encode()) - len(tail.encode())
        return f"{head}\n[... {left_out} bytes left out ...]\n{tail}", True


def _text(data: bytes | bytearray) -> str:
    return data.decode(errors="replace")
