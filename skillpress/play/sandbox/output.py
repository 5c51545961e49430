"""What a call prints: its beginning and its end are kept, whatever lies between is counted."""

from __future__ import annotations


def cut_in_the_middle(text: str, characters: int) -> tuple[str, bool]:
    """The text, or its two ends around a note of how much was left out; and whether it was cut."""
    if len(text) <= characters:
        return text, False
    head, tail = text[: characters - characters // 2], text[len(text) - characters // 2 :]
    left_out = len(text) - len(head) - len(tail)
    return f"{head}\n[... {left_out} characters left out ...]\n{tail}", True


class Captured:
    """One stream of one call, in memory that does not grow with what is printed."""

    def __init__(self, characters: int) -> None:
        """``characters`` of it are shown in the end."""
        self._characters = characters
        self._room = 4 * characters  # UTF-8 has at most four bytes for a character
        self._head, self._tail = bytearray(), bytearray()
        self.total = 0
        """Bytes printed."""

    def add(self, data: bytes) -> None:
        """Take what was read from the stream."""
        self.total += len(data)
        taken = data[: max(0, self._room - len(self._head))]
        self._head += taken
        self._tail += data[len(taken) :]
        if len(self._tail) > 2 * self._room:
            del self._tail[: len(self._tail) - self._room]

    def shown(self) -> tuple[str, bool]:
        """The text, cut in the middle where it is longer than may be shown; and whether it was cut."""
        left_out = self.total - len(self._head) - len(self._tail)
        if not left_out:
            return cut_in_the_middle(_text(self._head + self._tail), self._characters)
        half = self._characters // 2
        head, tail = _text(self._head)[:half], _text(self._tail)[-half:]
        left_out = self.total - len(head.encode()) - len(tail.encode())
        return f"{head}\n[... {left_out} bytes left out ...]\n{tail}", True


def _text(data: bytes | bytearray) -> str:
    return data.decode(errors="replace")
